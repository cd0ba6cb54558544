"""A test file as lines: those of each test, of each other function, and of what stands outside."""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from dataclasses import dataclass

from codetape.states.assertions import last_name
from codetape.states.local_names import Function, Local, name_locals, take_locals
from codetape.states.python_source import own_tree

OUTSIDE = "outside of the tests"

_ASKING = ("assert", "raises", "warns", "fail")
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")
_WORDS = {"orelse": "else:", "finalbody": "finally:"}


@dataclass(frozen=True)
class Line:
    """A statement without the blocks inside it, a decorator, or one case of its parameters.

    `shown` is as it stands in the file, `key` has no names of local variables, which are in `names`.
    """

    word: str
    shown: ast.AST | None
    key: ast.AST | None
    names: tuple[Local, ...]
    form: str

    @property
    def text(self) -> str:
        """The line as Python code."""
        return self.word + (code(self.shown) if self.shown else "")

    @property
    def erased(self) -> str:
        """The form of the line in which all constants are alike."""
        if self.key is None:
            return self.form
        node = copy.deepcopy(self.key)
        for constant in (n for n in ast.walk(node) if isinstance(n, ast.Constant)):
            constant.value = 0
        return self.word + ast.dump(node)

    @property
    def kind(self) -> str:
        """The class of its statement."""
        return self.word + type(self.key).__name__

    @property
    def asks(self) -> bool:
        """True if it asserts something, or belongs to the decorators of a test."""
        nodes = ast.walk(self.key) if self.key else ()
        calls = (last_name(n) for n in nodes if isinstance(n, ast.Call))
        asserts = isinstance(self.key, ast.Assert) or any(c.startswith(_ASKING) for c in calls)
        return asserts or bool(self.word)


Units = dict[str, list[Line]]
"""The lines of each test, of each other function and class, and of what stands outside of them."""


def code(node: ast.AST) -> str:
    """Return a node as Python code, in one line."""
    return ast.unparse(node).replace("\n", "\\n")


def units_of(source: str) -> Units:
    """Return the lines of a file that parses.

    Raises RecursionError for deep nesting, ValueError for a huge number.
    """
    shown, key = _cleaned(own_tree(source)), name_locals(_cleaned(own_tree(source)))
    units: Units = defaultdict(list)
    _Reader(units).block(shown.body, key.body, OUTSIDE, 0)
    return units


def _cleaned(tree: ast.Module) -> ast.Module:
    """Take out docstrings, and what is only another way to write the same."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant():
                node.kind = None
            case ast.Delete(targets=[ast.Tuple(elts=[_, *_] as several)]):
                node.targets = several
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if ast.get_docstring(node, clean=False) is not None:
                    del node.body[0]
    return tree


class _Reader:
    """Reads two trees of one shape side by side: one to show, one without names of variables."""

    def __init__(self, units: Units) -> None:
        self.units = units

    def block(
        self,
        shown: list[ast.stmt],
        keys: list[ast.stmt],
        unit: str,
        depth: int,
        prefix: str | None = "",
    ) -> None:
        """Read statements; `prefix` is that of the tests that may be among them, None inside one."""
        for one, key in zip(shown, keys, strict=True):
            if prefix is not None and isinstance(one, Function | ast.ClassDef):
                name = f"{prefix}{one.name}"
                inner = f"{name}::" if isinstance(one, ast.ClassDef) else None
                self.node(one, key, name, 0, inner)
            else:
                self.node(one, key, unit, depth, prefix)

    def node(self, one: ast.AST, key: ast.AST, unit: str, depth: int, prefix: str | None) -> None:
        """Read a statement, a handler or a case: its own line, then the blocks inside it."""
        self.decorators(one, key, unit)
        self.add("", _head(one), _head(key), unit, depth)
        for field in _BLOCKS:
            inside = getattr(one, field, None)
            if not isinstance(inside, list) or not inside:
                continue
            keys = getattr(key, field)
            if field in {"orelse", "finalbody"}:
                self.units[unit].append(Line(_WORDS[field], None, None, (), f"{depth} {field}"))
            if field in {"handlers", "cases"}:
                for part, part_key in zip(inside, keys, strict=True):
                    self.node(part, part_key, unit, depth + 1, prefix)
            else:
                self.block(inside, keys, unit, depth + 1, prefix)

    def decorators(self, one: ast.AST, key: ast.AST, unit: str) -> None:
        pairs = zip(
            getattr(one, "decorator_list", ()), getattr(key, "decorator_list", ()), strict=True
        )
        for decorator, decorator_key in pairs:
            cases, case_keys = _take_cases(decorator), _take_cases(decorator_key)
            self.add("@", decorator, decorator_key, unit, 0)
            for case, case_key in zip(cases, case_keys, strict=True):
                self.add("case ", case, case_key, unit, 0)

    def add(self, word: str, shown: ast.AST, key: ast.AST, unit: str, depth: int) -> None:
        names = take_locals(key)
        form = f"{depth} {word}{ast.dump(key)}"
        self.units[unit].append(Line(word, shown, key, names, form))


def _head(node: ast.AST) -> ast.AST:
    """Return a statement without its decorators and the blocks inside it."""
    blocks = [f for f in (*_BLOCKS, "decorator_list") if isinstance(getattr(node, f, None), list)]
    if not blocks:
        return node
    head = copy.copy(node)
    for field in blocks:
        setattr(head, field, [])
    return head


def _take_cases(decorator: ast.AST) -> list[ast.expr]:
    """Take the sets of parameters out of a decorator that lists them; none if they are computed."""
    if not isinstance(decorator, ast.Call) or last_name(decorator) != "parametrize":
        return []
    given = [*decorator.args[1:2], *(k.value for k in decorator.keywords if k.arg == "argvalues")]
    match given:
        case [ast.List(elts=elts) | ast.Tuple(elts=elts)]:
            cases = list(elts)
            elts.clear()
            return cases
    return []
