"""Null solutions: the solution with every function emptied, so that a test that checks nothing shows.

A test that passes with a null solution in the place of the solution does not look at what the solution
returns. The idea is extreme mutation, which finds pseudo-tested methods.

Functions are wrapped and not rewritten: importing the module does what it did, with its decorators,
constants and registrations, and only then its functions are null. Where the file is started as a
script they are null from the beginning. This module runs in the sandbox too, by the sandbox's own
grammar: it has the standard library only.
"""

from __future__ import annotations

import ast
from typing import Literal

Kind = Literal["returns_none", "returns_object", "raises"]

KINDS: tuple[Kind, ...] = ("returns_none", "returns_object", "raises")
"""Each function returns None; returns an object without a meaning; raises NotImplementedError."""

_HEAD = """
import functools as _null_functools, inspect as _null_inspect
_null_active = [__name__ == "__main__"]
_null_object = object()
def _null_result(name):
    if {kind!r} == "raises":
        raise NotImplementedError
    return None if {kind!r} == "returns_none" or name == "__init__" else _null_object
def _null(function):
    if not callable(function):
        return function
    name = getattr(function, "__name__", "")
    if _null_inspect.iscoroutinefunction(function):
        @_null_functools.wraps(function)
        async def emptied(*given, **named):
            return _null_result(name) if _null_active[-1] else await function(*given, **named)
    else:
        @_null_functools.wraps(function)
        def emptied(*given, **named):
            return _null_result(name) if _null_active[-1] else function(*given, **named)
    return emptied
"""
_TAIL = "_null_active.append(True)"


def nulled(source: str, kind: Kind) -> str | None:
    """Return the null solution of a kind; None for a text without functions, or that is no Python."""
    try:
        tree = ast.parse(source)
        wrapping = _Wrapping()
        tree = wrapping.visit(tree)
        if not wrapping.wrapped:
            return None
        start, end = _after_imports_of_the_future(tree), _before_the_script(tree)
        tree.body[end:end] = ast.parse(_TAIL).body
        tree.body[start:start] = ast.parse(_HEAD.format(kind=kind)).body
        return ast.unparse(ast.fix_missing_locations(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Wrapping(ast.NodeTransformer):
    """Wraps the functions of a module and of its classes; functions in functions go with those."""

    def __init__(self) -> None:
        self.wrapped = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Wrap a function, below all of its decorators."""
        self.wrapped += 1
        node.decorator_list.append(ast.Name("_null", ast.Load()))
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Wrap a coroutine."""
        self.wrapped += 1
        node.decorator_list.append(ast.Name("_null", ast.Load()))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Leave a lambda: it is a function of its own only where it is given a name."""
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Wrap a lambda that is given a name."""
        return self._named(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Wrap a lambda that is given a name and a type."""
        return self._named(node)

    def _named(self, node: ast.Assign | ast.AnnAssign) -> ast.AST:
        if isinstance(node.value, ast.Lambda):
            self.wrapped += 1
            node.value = ast.Call(ast.Name("_null", ast.Load()), [node.value], [])
        return node


def _after_imports_of_the_future(tree: ast.Module) -> int:
    """Return where the first statement stands that may come after others."""
    places = [
        at
        for at, node in enumerate(tree.body)
        if (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        or (at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return places[-1] + 1 if places else 0


def _before_the_script(tree: ast.Module) -> int:
    """Return where the part begins that runs only when the file is started, else the end."""
    for at, node in enumerate(tree.body):
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return at
    return len(tree.body)
