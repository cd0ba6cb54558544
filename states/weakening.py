"""Whether a repaired test checks less than the one it replaces.

What a test is worth is counted, not understood: a patch may move assertions and change values, it may
not have fewer of them, or a way round them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef

_SKIPS = frozenset({"skip", "skipif", "xfail", "importorskip", "skipTest", "expectedFailure"})
_BROAD = frozenset({"AssertionError", "Exception", "BaseException"})


def weakening(old: Function, new: Function) -> str | None:
    """Return what `new` checks less than `old`, or None."""
    if _strength(new) < _strength(old):
        return "the patch asserts less than the test did"
    if _skips(new) > _skips(old):
        return "the patch skips the test or expects it to fail"
    if _ways_round(new) > _ways_round(old):
        return "the patch has a way round its assertions: a return, or a handler that hides them"
    return None


# --- assertions -----------------------------------------------------------------------------------


def _strength(function: Function) -> int:
    """Sum what a test asserts: a comparison counts two, mere truth one, a constant nothing."""
    return sum(_weight(node) for node in _live(function))


def _live(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the tree, but not into what stands under `if False` or `while 0`."""
    yield node
    if isinstance(node, ast.If | ast.While) and _is_constant(node.test) and not _truth(node.test):
        children: list[ast.AST] = list(node.orelse)
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _live(child)


def _weight(node: ast.AST) -> int:
    if isinstance(node, ast.Assert):
        return _weight_of_test(node.test)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _weight_of_call(node.func.attr, node.args)
    return 0


def _weight_of_call(name: str, arguments: list[ast.expr]) -> int:
    """`pytest.raises(ValueError)` counts like a comparison; that anything is raised, like truth."""
    if name in {"raises", "warns"}:
        broad = arguments and isinstance(arguments[0], ast.Name) and arguments[0].id in _BROAD
        return 1 if broad else 2
    return 2 if name.startswith("assert") else 0


def _weight_of_test(test: ast.expr) -> int:
    if _is_constant(test) or isinstance(test, ast.JoinedStr | ast.Lambda):
        return 0
    if isinstance(test, ast.BoolOp):
        weights = [_weight_of_test(value) for value in test.values]
        return sum(weights) if isinstance(test.op, ast.And) else min(weights)
    if isinstance(test, ast.Compare):
        return _weight_of_comparison(test)
    return 1


def _weight_of_comparison(test: ast.Compare) -> int:
    sides = [test.left, *test.comparators]
    if len({ast.dump(side) for side in sides}) == 1 or all(map(_is_constant, sides)):
        return 0
    return 1 if any(isinstance(s, ast.Constant) and s.value is None for s in sides) else 2


def _is_constant(test: ast.expr) -> bool:
    """True for a literal, also a filled tuple: `assert (a == b, "why")` is always true."""
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return bool(test.elts)
    return isinstance(test, ast.Constant)


def _truth(test: ast.expr) -> bool:
    return not isinstance(test, ast.Constant) or bool(test.value)


# --- ways round them ------------------------------------------------------------------------------


def _skips(function: Function) -> int:
    names = [n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)]
    names += [n.id for n in ast.walk(function) if isinstance(n, ast.Name)]
    return sum(name in _SKIPS for name in names)


def cases(function: Function) -> int:
    """Count the parameter sets in the decorators; a computed list counts as one."""
    count = 0
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            values = decorator.args[1] if len(decorator.args) > 1 else None
            count += len(values.elts) if isinstance(values, ast.List | ast.Tuple) else 1
    return count


def _ways_round(function: Function) -> int:
    inner = (node for child in function.body for node in _own(child))
    return sum(isinstance(node, ast.Return) or _hides(node) for node in inner)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the tree, but not into functions inside it: their returns are their own."""
    if isinstance(node, Function | ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _own(child)


def _hides(node: ast.AST) -> bool:
    """True for a handler that swallows an AssertionError, and for contextlib.suppress."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] == "suppress"
    if not isinstance(node, ast.ExceptHandler):
        return False
    caught = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else _BROAD
    return bool(caught & _BROAD) and not any(isinstance(n, ast.Raise) for n in ast.walk(node))
