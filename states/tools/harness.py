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
    own = set(_defined(script))
    bound = set(_defined(harness)) | set(_bound(harness)) & set(_definitions(script))
    found = [f"It redefines {name}, which it is to check." for name in sorted(own & bound)]
    found += [
        f"It calls {name}, which can change the script." for name in sorted(_meddling(harness))
    ]
    if not any(_says_something(node) for node in _nodes(harness)):
        found.append("It asserts nothing.")
    elif not any(_says_something(node) for node in _outside_of_catching(parsed(harness))):
        found.append("It catches its own assertions, so that it cannot fail.")
    used = {node.id for node in _nodes(harness) if isinstance(node, ast.Name)}
    if not own & used:
        found.append("It uses no function of the script.")
    return tuple(found)


def _nodes(source: str) -> Iterator[ast.AST]:
    return ast.walk(parsed(source))


def _defined(source: str) -> Iterator[str]:
    """The names that a file gives to functions, classes and, at its top level, to values."""
    yield from _definitions(source)
    for node in parsed(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _definitions(source: str) -> Iterator[str]:
    """The names of functions and classes."""
    for node in _nodes(source):
        if isinstance(node, _DEFINITIONS):
            yield node.name


def _bound(source: str) -> Iterator[str]:
    """The names that get another meaning anywhere: where one is a function's, that is not checked."""
    for node in _nodes(source):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name


def _meddling(source: str) -> set[str]:
    """The names of functions that are called and can give a name of the script another meaning."""
    called = {
        node.func.id
        for node in _nodes(source)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return called & {"globals", "exec", "eval", "setattr"}


def _outside_of_catching(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree but those from which a failed assertion gets no further."""
    yield node
    caught: list[ast.stmt] = []
    if isinstance(node, ast.Try | ast.TryStar) and any(map(_catches, node.handlers)):
        caught = node.body
    if isinstance(node, ast.With) and any(map(_suppresses, node.items)):
        caught = node.body
    for child in ast.iter_child_nodes(node):
        if child not in caught:
            yield from _outside_of_catching(child)


def _catches(handler: ast.ExceptHandler) -> bool:
    if any(isinstance(node, ast.Raise | ast.Assert) or _ends(node) for node in ast.walk(handler)):
        return False
    return handler.type is None or _names_assertions(handler.type)


def _ends(node: ast.AST) -> bool:
    """True if a node is a call that fails the run: sys.exit, pytest.fail."""
    return isinstance(node, ast.Call) and _called(node) in {"exit", "quit", "_exit", "fail"}


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return False
    return _called(call) in ("suppress", "raises") and any(map(_names_assertions, call.args))


def _names_assertions(expression: ast.expr) -> bool:
    """True if what is caught may be a failed assertion."""
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return bool(names & {"AssertionError", "Exception", "BaseException"})


def _says_something(node: ast.AST) -> bool:
    """An assertion that could fail: it looks at a value, or expects an exception."""
    if isinstance(node, ast.Assert):
        return any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node.test))
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "raises"
