"""The harness: one test function whose assertions are over the script's own functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codetape.states.python_source import parsed

NAME = "test_logic"
"""The name of the test function that a harness is."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def as_test(source: str) -> str:
    """Return a harness as one test function; assertions that stand alone are put into it.

    Functions that the harness defines for itself move in with them.
    """
    body = parsed(source).body
    if any(isinstance(node, ast.FunctionDef) and node.name == NAME for node in body):
        return source.rstrip("\n") + "\n"
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    test = ast.FunctionDef(name=NAME, args=arguments, body=list(body), decorator_list=[])
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=[test], type_ignores=[]))) + "\n"


def appended(script: str, harness: str) -> str:
    """Return the script with its harness behind it: the file that is run."""
    return f"{script.rstrip()}\n\n\n{harness}"


def problems(script: str, harness: str) -> tuple[str, ...]:
    """Return what makes a harness worthless; nothing if it may be run."""
    own, defined = set(_defined(script)), set(_defined(harness))
    found = [f"It redefines {name}, which it is to check." for name in sorted(own & defined)]
    if not any(_says_something(node) for node in _nodes(harness)):
        found.append("It asserts nothing.")
    used = {node.id for node in _nodes(harness) if isinstance(node, ast.Name)}
    if not own & used:
        found.append("It uses no function of the script.")
    return tuple(found)


def _nodes(source: str) -> Iterator[ast.AST]:
    return ast.walk(parsed(source))


def _defined(source: str) -> Iterator[str]:
    """The names that a file gives to functions, classes and, at its top level, to values."""
    for node in _nodes(source):
        if isinstance(node, _DEFINITIONS):
            yield node.name
    for node in parsed(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _says_something(node: ast.AST) -> bool:
    """An assertion that could fail: it looks at a value, or expects an exception."""
    if isinstance(node, ast.Assert):
        return any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node.test))
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "raises"
