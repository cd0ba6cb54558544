"""The imports that a file cannot do without: those that no guard of its own makes optional.

Optional is a module whose absence the file itself handles (`except ImportError`, `suppress`), that it
looks for first (`find_spec`), or that is imported only for type checkers, on another platform, or on
some version of Python. If one is missed all the same, the run says so and it is added then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from codetape.states.packages import distributions_of
from codetape.states.python_source import (
    all_blocks,
    imports_at_sight,
    imports_in,
    parsed,
    syntax_error,
)

MISSING = frozenset({"ImportError", "ModuleNotFoundError"})
BROAD = frozenset({"Exception", "BaseException"})
LEAVING = frozenset({"exit", "_exit", "quit", "abort", "skip", "fail", "error", "importorskip"})
"""Functions that end what calls them: a module that is replaced by one of these is required."""

HERE = {"platform": "linux", "name": "posix", "system": "Linux"}
"""What a sandbox answers: sys.platform, os.name and platform.system()."""

DEPENDS = frozenset({"find_spec", "find_loader", "version_info", "python_version"})
"""Names of a condition that only the sandbox can decide: none of its branches is required."""

Verdict = bool | None
"""Whether a condition holds in a sandbox; None where only the sandbox can tell."""


@lru_cache(maxsize=256)
def required_names(source: str) -> tuple[str, ...]:
    """Return the dotted names that `source` has to import, sorted; none for what cannot be read."""
    if syntax_error(source) is not None:
        return imports_at_sight(source)
    tree = parsed(source)
    return tuple(sorted(set(_required(tree.body, _found_names(tree)))))


def _required(body: list[ast.stmt], found: frozenset[str]) -> Iterator[str]:
    left = list(body)
    while left:
        node = left.pop()
        match node:
            case ast.Try():
                left += _of_try(node, found)
            case ast.With() if any(map(_suppresses, node.items)):
                pass
            case ast.If():
                left += _branches(node, found)
            case _:
                yield from imports_in(node)
                left += all_blocks(node)


def _branches(node: ast.If, found: frozenset[str]) -> list[ast.stmt]:
    """Return the statements of the branches that a sandbox needs."""
    if found & _names(node.test):
        return []
    if not _names(node.test) & (DEPENDS | HERE.keys() | {"TYPE_CHECKING"}):
        return [*node.body, *node.orelse]
    holds = _holds(node.test)
    return [] if holds is None else node.body if holds else node.orelse


def _holds(test: ast.expr) -> Verdict:
    """Decide a condition on the platform or on type checkers."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return False
        case ast.Constant(value=value):
            return bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            holds = _holds(operand)
            return None if holds is None else not holds
        case ast.BoolOp(op=op, values=values):
            decisive = isinstance(op, ast.Or)
            verdicts = {_holds(value) for value in values}
            return decisive if decisive in verdicts else None if None in verdicts else not decisive
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compares(_here(left), op, _constant(right))
        case ast.Call(func=ast.Attribute(value=value, attr="startswith"), args=[prefix]):
            here, given = _here(value), _constant(prefix)
            return here.startswith(given) if here and isinstance(given, str) else None
    return None


def _compares(here: str, op: ast.cmpop, given: object) -> Verdict:
    if not here or given is None:
        return None
    match op:
        case ast.Eq() | ast.NotEq():
            return (here == given) is isinstance(op, ast.Eq)
        case ast.In() | ast.NotIn() if isinstance(given, list | tuple | set | str):
            return (here in given) is isinstance(op, ast.In)
    return None


def _here(node: ast.expr) -> str:
    """Return what a question about the platform answers in a sandbox; empty for another question."""
    match node:
        case ast.Call(func=called):
            return _here(called)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return HERE.get(name, "")
    return ""


def _constant(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _names(node: ast.AST) -> frozenset[str]:
    found = (
        n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(node)
    )
    return frozenset(found)


def _found_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that say whether a module was found: `HAS = find_spec("x") is not None`."""
    found: set[str] = set()
    left: list[ast.stmt] = list(tree.body)
    while left:
        node = left.pop()
        left += all_blocks(node)
        if isinstance(node, ast.Assign) and _names(node.value) & {"find_spec", "find_loader"}:
            found |= _assigned([node])
        elif isinstance(node, ast.Try) and any(map(_catches, node.handlers)):
            found |= _assigned([n for h in node.handlers for n in h.body])
    return frozenset(found)


def _assigned(body: list[ast.stmt]) -> set[str]:
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    return {target.id for target in targets if isinstance(target, ast.Name)}


# --- absence that is handled ----------------------------------------------------------------------


def _of_try(node: ast.Try, found: frozenset[str]) -> list[ast.stmt]:
    """Return the statements of a try that a file needs: no body without which its handlers go on.

    A handler of every error is one of a missing module only where the body does nothing but import.
    """
    only = all(
        isinstance(n, ast.Import | ast.ImportFrom | ast.Assign | ast.Pass) for n in node.body
    )
    catching = [h for h in node.handlers if _catches(h) and (only or not _is_broad(h))]
    others = [n for h in node.handlers if h not in catching for n in h.body]
    optional = bool(catching) and all(_goes_without(h, found) for h in catching)
    own = [] if optional else [*node.body, *node.orelse]
    return [*own, *others, *node.finalbody]


def _goes_without(handler: ast.ExceptHandler, found: frozenset[str]) -> bool:
    """False if the handler ends the program, or needs another distribution in the same place."""
    leaves = any(isinstance(n, ast.Raise) or _called(n) in LEAVING for n in handler.body)
    return not leaves and not distributions_of(_required(handler.body, found))


def _called(node: ast.stmt) -> str:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name
    return ""


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_names(handler.type) & (MISSING | BROAD))


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or not _names(handler.type) & MISSING


def _suppresses(item: ast.withitem) -> bool:
    match item.context_expr:
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=errors):
            return any(_names(error) & MISSING for error in errors)
    return False
