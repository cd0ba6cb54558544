"""The harness: a test whose assertions are over the script's own functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codetape.states.python_source import compile_error, defined_tests, parsed

NAME = "test_logic"
"""The name of the test function that a harness is asked to be."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)

_GIVEN = frozenset(
    "self request tmp_path tmp_path_factory tmpdir capsys capfd caplog monkeypatch recwarn".split()
)
"""Parameters of a test that pytest fills."""


def as_test(source: str) -> str:
    """Return a harness as test functions; assertions that stand alone are put into one.

    Functions that the harness defines for itself move in with them. Imports from `__future__` are
    left out: they may stand at the beginning of a file only, and the script's are there.
    """
    source = _without_future(source)
    if defined_tests(source):
        return source.rstrip("\n") + "\n"
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    body = parsed(source).body or [ast.Pass()]
    test = ast.FunctionDef(name=NAME, args=arguments, body=list(body), decorator_list=[], lineno=1)
    return ast.unparse(ast.Module(body=[test], type_ignores=[])) + "\n"


def _without_future(source: str) -> str:
    lines = source.split("\n")
    for node in parsed(source).body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return "\n".join(lines)


def appended(script: str, harness: str) -> str:
    """Return the script with its harness behind it: the file that is run.

    Functions of the script that pytest would take for tests are none: the harness is what is run.
    """
    own = dict.fromkeys(test.id.partition("::")[0] for test in defined_tests(script))
    marks = "".join(f"{name}.__test__ = False\n" for name in own)
    return "\n\n\n".join(part for part in (script.rstrip(), marks.rstrip(), harness) if part)


def problems(script: str, harness: str) -> tuple[str, ...]:
    """Return what makes a harness worthless; nothing if it may be run."""
    if error := compile_error(appended(script, harness)):
        return (f"Behind the script it does not compile: {error}.",)
    own = {*_defined(script), *_values(script)}
    bound = {*_definitions(_nodes(harness)), *_values(harness)}
    bound |= set(_bound(harness)) & _defined(script)
    found = [f"It redefines {name}, which it is to check." for name in sorted(own & bound)]
    found += [
        f"It calls {name}, which can change the script." for name in sorted(_meddling(harness))
    ]
    found += _unrunnable(harness)
    if not any(_says_something(node) for node in _nodes(harness)):
        found.append("It asserts nothing.")
    elif not any(_says_something(node) for node in _run(harness)):
        found.append("Its assertions are in a function that nothing calls.")
    elif not any(_says_something(node) for node in _run(harness, caught=False)):
        found.append("It catches its own assertions, so that it cannot fail.")
    used = {node.id for node in _run(harness) if isinstance(node, ast.Name)}
    if not own & used:
        found.append("It uses no function of the script.")
    return tuple(found)


def _nodes(source: str) -> Iterator[ast.AST]:
    return ast.walk(parsed(source))


def _defined(source: str) -> set[str]:
    """The names of functions and classes that a file has for all of it; methods hide nothing."""
    return _definitions(_steps(parsed(source), caught=True))


def _definitions(nodes: Iterable[ast.AST]) -> set[str]:
    nodes = list(nodes)
    methods = {child for node in nodes if isinstance(node, ast.ClassDef) for child in node.body}
    return {n.name for n in nodes if isinstance(n, _DEFINITIONS) and n not in methods}


def _values(source: str) -> Iterator[str]:
    """The names that a file gives to values at its top level."""
    for node in parsed(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _unrunnable(harness: str) -> Iterator[str]:
    """Why pytest cannot run a test as it is: it would look like a fault of the script."""
    functions = _functions(harness)
    for test in (functions[name] for name in sorted(_tests(harness))):
        if isinstance(test, ast.AsyncFunctionDef):
            yield f"{test.name} is asynchronous; it has to call asyncio.run itself."
        needed = test.args.args[: len(test.args.args) - len(test.args.defaults)]
        for arg in [] if test.decorator_list else needed:
            if arg.arg not in _GIVEN | functions.keys():
                yield f"{test.name} has a parameter {arg.arg}, which nobody fills."


def _functions(source: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    return {node.name: node for node in _nodes(source) if isinstance(node, _FUNCTIONS)}


def _tests(source: str) -> set[str]:
    return {test.id.rpartition("::")[2] for test in defined_tests(source)}


def _run(harness: str, *, caught: bool = True) -> Iterator[ast.AST]:
    """The nodes that a run comes to: those of the tests, and of the functions that they name.

    Without those that are `caught`: a failed assertion gets no further from there.
    """
    functions = _functions(harness)
    todo: list[ast.AST] = [parsed(harness), *(functions.pop(name) for name in _tests(harness))]
    while todo:
        for node in _steps(todo.pop(), caught=caught):
            yield node
            if function := functions.pop(_named(node), None):
                todo.append(function)


def _steps(node: ast.AST, *, caught: bool) -> Iterator[ast.AST]:
    """The nodes below one, but those of functions in it, and of what runs as a program only."""
    todo = [node]
    while todo:
        node = todo.pop()
        left_out = [] if caught else _caught(node)
        for child in ast.iter_child_nodes(node):
            if child not in left_out and not _is_for_programs(child):
                yield child
                todo += [] if isinstance(child, _FUNCTIONS) else [child]


def _named(node: ast.AST) -> str:
    """The name that a node uses; a parameter of a test is one of a fixture."""
    return str(getattr(node, "id", getattr(node, "attr", getattr(node, "arg", ""))))


def _is_for_programs(node: ast.AST) -> bool:
    """True for what stands behind `if __name__ == "__main__"`."""
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


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


def _caught(node: ast.AST) -> list[ast.stmt]:
    """The statements from which a failed assertion gets no further."""
    if isinstance(node, ast.Try | ast.TryStar) and any(map(_catches, node.handlers)):
        return node.body
    if isinstance(node, ast.With) and any(map(_suppresses, node.items)):
        return node.body
    return []


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
        return _looks_at_something(node.test)
    if not isinstance(node, ast.Call):
        return False
    is_one = _called(node) == "raises" or _called(node).startswith("assert")
    return is_one and any(map(_looks_at_something, node.args))


def _looks_at_something(expression: ast.expr) -> bool:
    return any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(expression))
