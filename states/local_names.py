"""Local variables in a syntax tree, told from all other names by their scopes.

A variable of a function may be renamed, and nothing else has changed. Parameters are no variables
here: fixtures, cases and keywords find them by their names. Nor are functions, classes and imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

NAMING = frozenset(["locals", "vars", "eval", "exec", "dir", "globals"])
"""Functions that find variables by their names."""

_FIELDS = ("id", "name", "rest", "asname")


class Local(str):
    """The name of a local variable, with the number of its scope."""

    __slots__ = ()


def name_locals(tree: ast.Module) -> ast.Module:
    """Put a `Local` in the place of the name of each local variable of a tree, and return it."""
    found: ast.Module = _Scopes().visit(tree)
    return found


def take_locals(tree: ast.AST) -> tuple[Local, ...]:
    """Take the names of local variables out of a tree and return them, in their order."""
    found: list[Local] = []
    for node in ast.walk(tree):
        for field in _FIELDS:
            if isinstance(name := getattr(node, field, None), Local):
                found.append(name)
                setattr(node, field, "_")
        if isinstance(node, ast.Nonlocal):
            found += [name for name in node.names if isinstance(name, Local)]
            node.names = ["_" if isinstance(name, Local) else name for name in node.names]
    return tuple(found)


class _Scopes(ast.NodeTransformer):
    """Resolves names: `frames` are the scopes that enclose a node, the innermost one last."""

    def __init__(self) -> None:
        self.frames: list[dict[str, str]] = []
        self.count = 0

    def name(self, name: str) -> str:
        return next((frame[name] for frame in reversed(self.frames) if name in frame), name)

    def _frame(self, variables: Iterable[str], others: Iterable[str] = ()) -> dict[str, str]:
        self.count += 1
        frame: dict[str, str] = {name: Local(f"{self.count} {name}") for name in variables}
        return frame | {name: name for name in others}

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in _FIELDS:
            if isinstance(name := getattr(node, field, None), str):
                setattr(node, field, self.name(name))
        if isinstance(node, ast.Nonlocal):
            node.names = [self.name(name) for name in node.names]
        return super().generic_visit(node)

    def visit_alias(self, node: ast.alias) -> ast.alias:
        node.asname = self.name(node.asname) if node.asname else None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: Function) -> ast.AST:
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.args = self.visit(node.args)
        node.returns = self.visit(node.returns) if node.returns else None
        others = [*_parameters(node.args), *_kept(node.body)]
        self._within(node, self._frame(_variables(node), others))
        return node

    def _within(self, node: Function | ast.ClassDef, frame: dict[str, str]) -> None:
        self.frames.append(frame)
        node.body = [self.visit(one) for one in node.body]
        self.frames.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        for field in ("decorator_list", "bases", "keywords"):
            setattr(node, field, [self.visit(one) for one in getattr(node, field)])
        self._within(node, self._frame((), [*_bound(node.body), *_kept(node.body)]))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args = self.visit(node.args)
        self.frames.append(self._frame((), _parameters(node.args)))
        node.body = self.visit(node.body)
        self.frames.pop()
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._comprehension(node)

    def _comprehension(self, node: Comprehension) -> ast.AST:
        """The first iterable belongs to the scope around; the rest has one of its own."""
        first = node.generators[0]
        iterable = self.visit(first.iter)
        first.iter = ast.Constant(value=None)
        targets = (part for one in node.generators for part in ast.walk(one.target))
        stored = dict.fromkeys(n.id for n in targets if isinstance(n, ast.Name) and _binds(n))
        self.frames.append(self._frame(stored))
        super().generic_visit(node)
        self.frames.pop()
        first.iter = iterable
        return node


def _binds(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _parameters(arguments: ast.arguments) -> list[str]:
    return [node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)]


def _own(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of one scope; of a scope inside it, the node that opens it alone."""
    left: list[ast.AST] = list(body)
    while left:
        node = left.pop()
        yield node
        if isinstance(node, Comprehension):
            walrus = (n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            left += [node.generators[0].iter, *walrus]
        elif not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def _variables(function: Function) -> set[str]:
    """Return the local variables of a function; none if it may find them by their names."""
    names = (n.id for n in ast.walk(function) if isinstance(n, ast.Name))
    return set() if NAMING.intersection(names) else _bound(function.body)


def _bound(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that a scope binds to values of its own."""
    names: set[str] = set()
    elsewhere: set[str] = set()
    for node in _own(body):
        match node:
            case ast.Name(id=str(name)) if _binds(node):
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                names.add(name)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.add(name)
            case ast.alias(asname=str(name)):
                names.add(name)
            case ast.Global() | ast.Nonlocal():
                elsewhere.update(node.names)
    return names - elsewhere


def _kept(body: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of a scope that are no variables of its own, though it may bind them."""
    for node in _own(body):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=None):
                yield name.partition(".")[0]
            case ast.Global():
                yield from node.names
