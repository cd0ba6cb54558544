"""Putting repaired tests into a test file without losing or weakening any."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from codetape.states.failures import base_id
from codetape.states.fences import python_code
from codetape.states.python_source import TestFunction, defined_tests, syntax_error

_SKIPS = frozenset({"skip", "skipif", "xfail", "importorskip", "skipTest", "expectedFailure"})


@dataclass(frozen=True, slots=True)
class Patched:
    """A patched file, what was patched in it, and what was refused with the reason."""

    source: str
    patched: tuple[str, ...]
    refused: tuple[str, ...]


def apply_patches(
    source: str, patches: Iterable[tuple[str, str]], failing: Iterable[str]
) -> Patched:
    """Put each (test name, code) in the place of the test it names.

    Only tests that failed may be patched. A patch has to parse, to define that test once, to assert
    no less than before, to skip nothing, to keep its parameters, and to change something.
    """
    due = dict.fromkeys(base_id(test) for test in failing)
    done: list[str] = []
    refused: list[str] = []
    for name, code in patches:
        try:
            target = _target(source, name, due)
            source = _spliced(source, target, _checked(source, target, code))
            done.append(target.id)
        except ValueError as reason:
            refused.append(f"{name}: {reason}")
    return Patched(source, tuple(dict.fromkeys(done)), tuple(refused))


def _target(source: str, name: str, due: Iterable[str]) -> TestFunction:
    wanted = base_id(name).removeprefix("test_solution.py::")
    same = [test for test in due if test == wanted or test.split("::")[-1] == wanted]
    found = [test for test in defined_tests(source) if test.id in same]
    if not same:
        raise ValueError("this test did not fail")
    if len(found) != 1 or len(same) != 1:
        raise ValueError(f"the file defines {len(found)} tests of this name, not one")
    return found[0]


def _checked(source: str, target: TestFunction, code: str) -> str:
    new = textwrap.dedent(python_code(code)).strip("\n")
    if problem := syntax_error(new):
        raise ValueError(f"the patch does not parse ({problem})")
    new_function = _function(new, target)
    old_function = _function(_own_text(source, target), target)
    _not_weaker(old_function, new_function)
    if ast.dump(old_function) == ast.dump(new_function):
        raise ValueError("the patch changes nothing")
    return _text_of(new, new_function)


def _function(code: str, target: TestFunction) -> ast.FunctionDef | ast.AsyncFunctionDef:
    name = target.id.split("::")[-1]
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    functions = [n for n in ast.walk(ast.parse(code)) if isinstance(n, kinds) and n.name == name]
    if len(functions) != 1:
        raise ValueError(f"the patch defines {name} {len(functions)} times, not once")
    return functions[0]


def _not_weaker(
    old: ast.FunctionDef | ast.AsyncFunctionDef, new: ast.FunctionDef | ast.AsyncFunctionDef
) -> None:
    if _strength(new) < _strength(old):
        raise ValueError("the patch asserts less than the test did")
    if _skips(new) > _skips(old):
        raise ValueError("the patch skips the test or expects it to fail")
    if _cases(new) < _cases(old):
        raise ValueError("the patch drops parameters of the test")


def _strength(function: ast.AST) -> int:
    """Sum what a test asserts: a comparison counts two, mere truth one, a constant nothing."""
    return sum(_weight(node) for node in ast.walk(function))


def _weight(node: ast.AST) -> int:
    if isinstance(node, ast.Assert):
        return _weight_of_test(node.test)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return 2 if name in {"raises", "warns"} or name.startswith(("assert", "assert_")) else 0
    return 0


def _weight_of_test(test: ast.expr) -> int:
    if isinstance(test, ast.Constant | ast.JoinedStr):
        return 0
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return sum(_weight_of_test(value) for value in test.values)
    if isinstance(test, ast.BoolOp):
        return min(_weight_of_test(value) for value in test.values)
    if isinstance(test, ast.Compare):
        return 1 if _compares_with_none(test) or _compares_constants(test) else 2
    return 1


def _compares_with_none(test: ast.Compare) -> bool:
    return any(isinstance(o, ast.Constant) and o.value is None for o in test.comparators)


def _compares_constants(test: ast.Compare) -> bool:
    return all(isinstance(o, ast.Constant) for o in (test.left, *test.comparators))


def _skips(function: ast.AST) -> int:
    names = [n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)]
    names += [n.id for n in ast.walk(function) if isinstance(n, ast.Name)]
    return sum(name in _SKIPS for name in names)


def _cases(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the parameter sets in the decorators; a computed list counts as one."""
    cases = 0
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            values = decorator.args[1] if len(decorator.args) > 1 else None
            cases += len(values.elts) if isinstance(values, ast.List | ast.Tuple) else 1
    return cases


def _own_text(source: str, target: TestFunction) -> str:
    lines = source.split("\n")[target.first_line - 1 : target.last_line]
    return textwrap.dedent("\n".join(lines))


def _text_of(code: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Cut the function out of a patch that brought imports or a class around it."""
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    lines = code.split("\n")[first - 1 : function.end_lineno]
    return textwrap.dedent("\n".join(lines))


def _spliced(source: str, target: TestFunction, new: str) -> str:
    """Replace exactly the lines of the test; comments after it stay."""
    lines = source.rstrip("\n").split("\n")
    old = lines[target.first_line - 1]
    indent = old[: len(old) - len(old.lstrip())]
    lines[target.first_line - 1 : target.last_line] = textwrap.indent(new, indent).split("\n")
    patched = "\n".join(lines) + "\n"
    if problem := syntax_error(patched):
        raise ValueError(f"the patched file does not parse ({problem})")
    return patched
