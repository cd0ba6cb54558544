"""Whether a repaired test puts something else for a name of the solution, of pytest or of Python."""

from __future__ import annotations

import ast
import builtins

from codetape.states.assertions import Function, last_name
from codetape.states.python_source import is_fixture
from codetape.states.stdlib import STDLIB

_FRAMEWORKS = frozenset(
    ["pytest", "unittest", "builtins", "self", "cls", "solution", "test_solution"]
)
_PLAIN = frozenset(["__init__", "__repr__", "__str__", "__iter__", "__len__", "__getitem__"])
_REPLACEABLE = frozenset(["builtins.input", "builtins.open", "builtins.print"])
_PATCHING = frozenset(["patch", "object", "setattr", "delattr", "setitem", "multiple", "spy"])


def replaced(old: Function, new: Function, module: ast.Module | None) -> str | None:
    """Return which name of the solution or of the frame the new test puts something else for."""
    outer = (
        _bound(module.body) if module else {n.id for n in ast.walk(old) if isinstance(n, ast.Name)}
    )
    hidden = (_locals(new) - _locals(old)) & (outer | _builtins(new) | {"pytest", "solution"})
    hidden -= {a.arg for a in new.args.args} & _fixtures(module)
    if hidden:
        return f"the patch gives {', '.join(sorted(hidden))} another meaning"
    before = {ast.dump(n) for n in ast.walk(old)}
    for node in ast.walk(new):
        if _replaces(node, module) and ast.dump(node) not in before:
            return "the patch replaces a part of the solution or of the test's frame"
    return None


def _replaces(node: ast.AST, module: ast.Module | None) -> bool:
    match node:
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            frame = node.attr.startswith(("assert", "fail", "__"))
            return frame or _root(node) in (_FRAMEWORKS | _imported(module)) - {"self", "cls"}
        case ast.ClassDef():
            return not _is_stub(node)
        case ast.Global() | ast.Nonlocal():
            return True
        case ast.Subscript(slice=ast.Constant(value="solution" | "test_solution"), value=value):
            return last_name(value) == "modules"
        case ast.Call(args=[ast.Attribute(attr="modules"), ast.Constant(value=str(name)), *_]):
            return name in _FRAMEWORKS
        case ast.Call(args=[ast.Constant(value=str(target)), *_]) if last_name(node) in _PATCHING:
            parts = target.split(".")
            inside = len(parts) <= 2 or not parts[1].islower()
            inside = inside and not (len(parts) == 2 and parts[1] in STDLIB)
            return parts[0] in _FRAMEWORKS and inside and target not in _REPLACEABLE
        case ast.Call(args=[ast.Name(id="solution"), ast.Constant(value=attr), *_]) if (
            attr in STDLIB
        ):
            return False
        case ast.Call(args=[target, *_]) if last_name(node) in _PATCHING:
            return _root(target) in _FRAMEWORKS | _imported(module)
    return False


def _is_stub(node: ast.ClassDef) -> bool:
    """True for a class of plain data: it decides on no comparison, and swallows nothing."""
    methods = {n.name for n in node.body if isinstance(n, Function)}
    odd = {m for m in methods if m.startswith("__")} - _PLAIN
    other = [
        n for n in node.body if not isinstance(n, Function | ast.AnnAssign | ast.Assign | ast.Pass)
    ]
    return not (node.bases or node.keywords or odd or other)


def _builtins(function: Function) -> set[str]:
    """Return the names of Python's own that matter in a test: those that it calls, and exceptions."""
    called = {last_name(n) for n in ast.walk(function) if isinstance(n, ast.Call)}
    return {name for name in dir(builtins) if name in called or name[0].isupper()}


def _fixtures(module: ast.Module | None) -> set[str]:
    body = module.body if module else []
    return {n.name for n in body if isinstance(n, Function) and is_fixture(n)}


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _imported(module: ast.Module | None) -> set[str]:
    """Return the names that a file imports from the solution."""
    body = module.body if module else []
    found = [n for n in body if isinstance(n, ast.ImportFrom) and n.module == "solution"]
    return {a.asname or a.name for n in found for a in n.names}


def _bound(body: list[ast.stmt]) -> set[str]:
    """Return the names that functions, classes and imports of a module have."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = {n.name for n in body if isinstance(n, kinds)}
    imports = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
    return names | {(a.asname or a.name).partition(".")[0] for n in imports for a in n.names}


def _locals(function: Function) -> set[str]:
    """Return the names that a function binds; a plain import from the solution binds the same."""
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) if node is not function:
                found.add(name)
            case ast.ImportFrom(module=module, names=aliases):
                same = module in {"solution", "pytest"}
                found |= {a.asname or a.name for a in aliases if a.asname or not same}
            case ast.Import(names=aliases):
                found |= {a.asname for a in aliases if a.asname}
    return found
