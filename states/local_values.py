"""Local names of a test: the values that they stand for, and whether the solution has a say in them."""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Iterable, Iterator

from codetape.states.python_source import DEEPEST, levels
from codetape.states.strength import is_subject

SUBSTITUTIONS = 200
"""Limit of the local values that are put in the place of their names in one expression."""

PURE = frozenset(
    [
        *("collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum"),
        *("fractions", "functools", "itertools", "math", "operator", "pytest", "re"),
        *("statistics", "string", "types", "typing", "unittest"),
    ]
)
"""Modules of which nothing depends on what the solution did before."""

_CHANGING = frozenset(
    [
        *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
        *("reverse", "setdefault", "sort", "update", "write"),
    ]
)

_INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def pure_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that imports bind to pure modules and parts of them."""
    for node in nodes:
        if isinstance(node, ast.Import):
            found = [(alias.name, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [(node.module or "", alias.asname or alias.name) for alias in node.names]
        else:
            continue
        yield from (n.partition(".")[0] for module, n in found if module.partition(".")[0] in PURE)


class LocalValues:
    """Names of one function. Those assigned once stand for their values.

    `settle` follows the others: a name that was last given something else than an answer of the
    solution is no subject of an assertion.
    """

    def __init__(self, function: ast.AST, pure: frozenset[str]) -> None:
        nodes = list(ast.walk(function))
        stored = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        stored += [n.name for n in nodes if isinstance(n, ast.FunctionDef) and n is not function]
        self.names, self._times = set(stored), Counter(stored)
        self._pure = pure | frozenset(pure_names(nodes))
        self._settled: set[str] = set()
        found = {**dict(_defaults(function)), **dict(_bindings(nodes))}
        self._values = {n: value for n, value in found.items() if self._times[n] <= 1}
        self._in_place: set[str] = set()
        for name in set(self._changed(nodes)) & self._values.keys():
            if isinstance(self._values[name], _MUTABLE) and not self.is_subject(self._values[name]):
                del self._values[name]
                self._in_place.add(name)

    def whole(self, node: ast.expr) -> ast.expr:
        """Return an expression with local values in the place of their names."""
        return _Values(self._values).whole(node)

    def told(self, node: ast.expr) -> ast.expr:
        """Return an expression in which only what may come from the solution has a name of its own."""
        found: ast.expr = _Told(self._pure | self._settled).visit(self.whole(node))
        return found

    def is_subject(self, node: ast.expr) -> bool:
        """True if an expression may depend on the solution."""
        return is_subject(self.told(node))

    def settle(self, targets: Iterable[ast.expr], value: ast.expr) -> None:
        """Note whether names are given something that may come from the solution."""
        names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        if self.is_subject(value):
            self._settled -= names
        else:
            self._settled |= names - self._values.keys() - self._in_place

    def _changed(self, nodes: list[ast.AST]) -> Iterator[str]:
        """Yield the names whose values the solution, or the test, may change in place."""
        for node in nodes:
            within: list[ast.AST] = []
            match node:
                case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _CHANGING:
                    within = [value]
                case ast.Call(func=func) if self.is_subject(func):
                    within = [*node.args, *node.keywords]
                case ast.Subscript(ctx=ast.Store() | ast.Del(), value=value):
                    within = [value]
                case ast.AugAssign(target=target):
                    within = [target]
                case ast.withitem(context_expr=ast.Call(args=arguments)):
                    within = [*arguments]
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    body = node.body if isinstance(node.body, list) else [node.body]
                    within = [*body] if node is not nodes[0] else []
            yield from (n.id for w in within for n in ast.walk(w) if isinstance(n, ast.Name))


_MUTABLE = ast.List | ast.Dict | ast.Set | ast.Call | ast.ListComp | ast.DictComp | ast.SetComp


def _defaults(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield parameters with a default: no fixture is given for them."""
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        names, values = function.args.args, function.args.defaults
        yield from ((a.arg, v) for a, v in zip(names[::-1], values[::-1], strict=False))


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=False)
                yield from ((n.id, v) for n, v in pairs if isinstance(n, ast.Name))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, value
            case ast.withitem(
                context_expr=ast.Call(func=ast.Attribute(attr="nullcontext"), args=[value]),
                optional_vars=ast.Name(id=name),
            ):
                yield name, value
            case ast.FunctionDef(name=name, args=arguments):
                yield name, ast.Lambda(args=arguments, body=ast.Constant(value=None))


class _Values(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values, self.left = values, SUBSTITUTIONS
        self.depth = 0

    def whole(self, node: ast.expr) -> ast.expr:
        """Return an expression with its values in place, as far as it does not become too deep."""
        depth = levels(node)
        if self.depth + depth > DEEPEST:
            return node
        self.depth += depth
        found: ast.expr = self.visit(copy.deepcopy(node))
        self.depth -= depth
        return found

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.values or self.left <= 0:
            return node
        self.left -= 1
        value = self.values[node.id]
        if any(isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(value)):
            return node
        return self.whole(value)


class _Told(ast.NodeTransformer):
    def __init__(self, other: frozenset[str] | set[str]) -> None:
        self.other = other

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.other or hasattr(builtins, node.id):
            return node
        return ast.Attribute(value=ast.Constant(value=None), attr=node.id, ctx=ast.Load())
