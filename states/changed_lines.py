"""How one line of a test differs from the one that it replaces, in words."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from codetape.states.assertions import last_name
from codetape.states.lines_of_tests import Line, code
from codetape.states.strength import is_subject

LONGEST_PART = 100
"""Characters of a line, a value or a name in a fact."""

_TOLERANCES = frozenset(["rel", "abs", "rtol", "atol", "delta", "rel_tol", "abs_tol", "places"])
_TOLERANT = frozenset(["approx", "isclose", "allclose", "assertAlmostEqual", "assert_allclose"])

Path = tuple[tuple[str, int | None], ...]
"""The way to a node: a field and, in a list, a place, for each step."""


def line_change(old: Line, new: Line, *, renamed: bool) -> str:
    """Say how a line has changed: by its tolerance, its expected value, or whole.

    `renamed` says that it has other variables, too.
    """
    if old.key and new.key and old.shown and new.shown and not renamed:
        path = tuple(_way(old.key, new.key))
        if _to_tolerance(old.key, path) and path:
            return "tolerance " + _parts(_at(old.shown, path), _at(new.shown, path))
        side = _expected(old.key, new.key)
        if side is not None:
            return "expected " + _parts(_at(old.shown, side), _at(new.shown, side))
    return _now(old.text, new.text.removeprefix(new.word))


def _parts(old: ast.AST, new: ast.AST) -> str:
    return _now(code(old), code(new))


def _now(old: str, new: str) -> str:
    """Return two texts, cut so that the first difference is among what is left of them."""
    same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    same = same or min(len(old), len(new))
    start = max(0, same - LONGEST_PART // 4) if max(len(old), len(new)) > LONGEST_PART else 0
    return ", now ".join(cut("…" * bool(start) + text[start:]) for text in (old, new))


def cut(text: str) -> str:
    """Return a text of at most LONGEST_PART characters."""
    return text if len(text) <= LONGEST_PART else f"{text[: LONGEST_PART - 1]}…"


def _way(one: ast.AST, other: ast.AST) -> Iterator[tuple[str, int | None]]:
    """Yield the steps to the smallest node in which two trees differ."""
    while type(one) is type(other):
        children = list(_children(one))
        others = dict(_children(other))
        if [step for step, _ in children] != list(others) or _own(one) != _own(other):
            return
        differing = [(s, c) for s, c in children if ast.dump(c) != ast.dump(others[s])]
        if len(differing) != 1:
            return
        step, one = differing[0]
        other = others[step]
        yield step


def _children(node: ast.AST) -> Iterator[tuple[tuple[str, int | None], ast.AST]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield (field, None), value
        elif isinstance(value, list):
            found = ((n, x) for n, x in enumerate(value) if isinstance(x, ast.AST))
            yield from (((field, n), x) for n, x in found)


def _own(node: ast.AST) -> list[str]:
    """Return the fields of a node that are no nodes."""
    return [repr(v) for _, v in ast.iter_fields(node) if not isinstance(v, ast.AST | list)]


def _at(node: ast.AST, path: Path) -> ast.AST:
    for field, place in path:
        value = getattr(node, field)
        node = value if place is None else value[place]
    return node


def _to_tolerance(node: ast.AST, path: Path) -> bool:
    """Say whether a way leads to what says how far from equal a value may be."""
    for step in path:
        if isinstance(node, ast.Call) and last_name(node) in _TOLERANT and step[0] == "args":
            return (step[1] or 0) > (0 if last_name(node) == "approx" else 1)
        if isinstance(node, ast.Compare) and last_name(node.left) in {"abs", "fabs"}:
            return step[0] == "comparators" and isinstance(node.ops[0], ast.Lt | ast.LtE)
        node = _at(node, (step,))
        if isinstance(node, ast.keyword):
            return node.arg in _TOLERANCES
    return False


def _expected(old: ast.AST, new: ast.AST) -> Path | None:
    """Return the way to the one side in which two equations differ, if it is a value."""
    sides = _sides(old)
    if sides != _sides(new):
        return None
    differing = [s for s in sides if ast.dump(_at(old, s)) != ast.dump(_at(new, s))]
    if len(differing) != 1:
        return None
    (side,) = differing
    rest_is_same = _without(old, side) == _without(new, side)
    values = all(isinstance(v := _at(x, side), ast.expr) and _is_value(v) for x in (old, new))
    return side if rest_is_same and values else None


def _sides(node: ast.AST) -> tuple[Path, ...]:
    match node:
        case ast.Assert(test=ast.Compare(ops=[ast.Eq() | ast.Is()])):
            return (("test", None), ("left", None)), (("test", None), ("comparators", 0))
        case ast.Expr(value=ast.Call(args=[_, _, *_]) as call):
            if last_name(call).startswith("assert"):
                return (("value", None), ("args", 0)), (("value", None), ("args", 1))
    return ()


def _without(node: ast.AST, side: Path) -> str:
    copied = copy.deepcopy(node)
    field, place = side[-1]
    parent = _at(copied, side[:-1])
    if place is None:
        setattr(parent, field, ast.Constant(value=None))
    else:
        getattr(parent, field)[place] = ast.Constant(value=None)
    return ast.dump(copied)


def _is_value(node: ast.expr) -> bool:
    """True for a value that depends on nothing but Python's own functions, and `approx` of one."""
    if isinstance(node, ast.Call) and last_name(node) == "approx" and node.args:
        return not is_subject(node.args[0])
    return not is_subject(node)
