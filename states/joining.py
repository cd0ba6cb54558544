"""Putting together code that a model has written in several blocks of one answer."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from copy import copy

from codetape.states.fences import Block
from codetape.states.python_source import defined_tests, imported_names, is_fixture, parsed

OWN_MODULES = frozenset({"solution", "test_solution"})

MOST = 40
"""Blocks that are looked at, the last ones."""

_FUTURE = re.compile(r"^from __future__ import .*\n?", re.MULTILINE)
_QUIET = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Facts:
    """Names that a block of code defines, binds and uses."""

    def __init__(self, source: str) -> None:
        body = parsed(source).body
        guards = [node for node in body if _is_guard(node)]
        definitions = [node for node in body if isinstance(node, _Definition)]
        self.are_fixtures = all(
            not isinstance(node, ast.ClassDef) and is_fixture(node) for node in definitions
        )
        self.defined = {node.name for node in definitions}
        self.has_guard = bool(guards)
        self.is_quiet = all(isinstance(n, _QUIET) or n in guards or _is_docstring(n) for n in body)
        self.bound = self.defined | {name for node in body for name in _bound(node)}
        self.used = {name for node in ast.walk(parsed(source)) for name in _used(node)}

    def with_those_of(self, other: _Facts) -> _Facts:
        """Return the facts of both in one file."""
        both = copy(self)
        both.defined, both.bound = self.defined | other.defined, self.bound | other.bound
        both.used, both.has_guard = self.used | other.used, self.has_guard or other.has_guard
        return both

    def takes(self, other: _Facts, *, is_asked_for: bool) -> bool:
        """True if another block is a part of the same file, and no other version of it."""
        if self.defined & other.defined or (self.has_guard and other.has_guard):
            return False
        starts_it = other.has_guard and bool(other.used & self.bound)
        is_used = bool(other.bound & self.used - self.bound)
        return (bool(other.defined) and is_asked_for) or starts_it or is_used


def joined(
    blocks: list[Block],
    chosen: Block,
    fits: Callable[[str], bool],
    is_extra: Callable[[Block], bool],
) -> tuple[str, int]:
    """Return the chosen code with that of the blocks that it is one file with, and their number.

    A block belongs to it that has names which it uses, that starts it as a script, or that defines
    other names, fits as well and is no extra. One that does something by itself, or has other versions
    of its names, is left out.
    """
    of_tests = bool(defined_tests(chosen.text))
    left = [
        (block, facts)
        for block in reversed(blocks[-MOST:])
        if block is not chosen and block.is_called_python >= chosen.is_called_python
        if _may_be_part(block.text, facts := _Facts(block.text), of_tests, fits)
    ]
    parts, whole, at = [chosen], _Facts(chosen.text), 0
    while at < len(left):
        block, facts = left[at]
        at += 1
        if whole.takes(facts, is_asked_for=not is_extra(block)):
            parts.append(block)
            whole = whole.with_those_of(facts)
            del left[at - 1]
            at = 0  # one that was no part may be used by this one
    return _one_file(sorted(parts, key=lambda block: block.start)), len(parts)


def _may_be_part(source: str, facts: _Facts, of_tests: bool, fits: Callable[[str], bool]) -> bool:
    if not facts.is_quiet:
        return False
    if not facts.defined:
        return of_tests or not imports_any(source, OWN_MODULES)
    return fits(source) or (of_tests and facts.are_fixtures)


def imports_any(source: str, modules: Iterable[str]) -> str:
    """Return the first of the modules that the code imports, or an empty text."""
    roots = {name.partition(".")[0] for name in imported_names(source)}
    return next((module for module in sorted(modules) if module in roots), "")


def _one_file(parts: list[Block]) -> str:
    texts = [part.text.strip("\n") for part in parts]
    if len(texts) == 1:
        return parts[0].text
    futures = [line for text in texts[1:] for line in _FUTURE.findall(text)]
    rest = [_FUTURE.sub("", text).strip("\n") for text in texts[1:]]
    head = "".join(line.rstrip("\n") + "\n" for line in futures)
    return "\n\n\n".join([head + texts[0], *rest])


def _is_guard(node: ast.stmt) -> bool:
    """True for `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and any(
        isinstance(name, ast.Name) and name.id == "__name__" for name in ast.walk(node.test)
    )


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a module binds, those of definitions left out."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        names = (x for x in ast.walk(node) if isinstance(x, ast.Name))
        return {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return set()


def _used(node: ast.AST) -> set[str]:
    """Return the names that a node reads; the arguments of a test are the names of fixtures."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return {node.id}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
        return {argument.arg for argument in node.args.args}
    return set()
