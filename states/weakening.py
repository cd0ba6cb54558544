"""Whether a repaired test checks less than the one it replaces.

Each assertion of the old test needs one in the new test that holds no less, below no other conditions.
Values may change; decorators and parameters stay, and what could get round the assertions is not new.
A repair that is not understood is refused, with the reason.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator

from codetape.states.assertions import Check, Function, checks, last_name, own_nodes, swallows
from codetape.states.python_source import DEEPEST, levels, parsed, syntax_error

_SKIPS = frozenset(
    [
        *(
            "skip",
            "skipif",
            "skipIf",
            "skipUnless",
            "xfail",
            "importorskip",
            "skipTest",
            "SkipTest",
        ),
        *("expectedFailure", "exit", "_exit", "quit", "abort", "kill", "Skipped", "Exit", "Skip"),
        *("SystemExit", "pytestmark", "__test__", "outcomes", "raise_signal", "KeyboardInterrupt"),
    ]
)
_ROUNDS = frozenset(
    [
        *(
            "suppress",
            "ExitStack",
            "AsyncExitStack",
            "__exit__",
            "__aexit__",
            "push",
            "exec",
            "eval",
        ),
        *("compile", "globals", "locals", "vars", "settrace", "setprofile", "builtins"),
        *("__builtins__", "__dict__", "__globals__", "__code__", "__class__", "__eq__", "_pytest"),
        *("failureException", "__import__", "import_module", "getattr", "ANY"),
    ]
)
_PATCHING = frozenset(["patch", "object", "setattr", "delattr", "setitem", "multiple", "spy"])
_HARMLESS = frozenset(["usefixtures", "filterwarnings", "asyncio", "anyio", "parametrize"])
_CHANGEABLE = frozenset(
    ["parametrize", "usefixtures", "filterwarnings", "given", "example", "patch"]
)
_FRAMEWORKS = frozenset(["pytest", "unittest", "builtins", "self", "cls", "solution"])
_REPLACEABLE = frozenset(["builtins.input", "builtins.open", "builtins.print"])

LESS = "the patch asserts less than the test did"
SKIPS = "the patch skips the test or expects it to fail"
ROUND = "the patch has a way round its assertions: a return, or a handler that hides them"
HEAD = "the patch changes a decorator of the test, or adds one that may hide its assertions"
DEEP = "the patch, or the test, is nested too deeply to be compared"
NEVER = "the patch makes the test one that is never run: it yields or became async"


def weakening(old: Function, new: Function, module: ast.Module | None = None) -> str | None:
    """Return the first point in which `new`, a test of `module`, checks less than `old`, or None."""
    if max(levels(old), levels(new)) > DEEPEST:  # a long row of elifs, which count here
        return DEEP
    if _more(_SKIPS, old, new):
        return SKIPS
    if _ways_round(new) > _ways_round(old) or _more(_ROUNDS, old, new):
        return ROUND
    if not _covered(old, new, _helpers(module)):
        return LESS
    if not same_heads(old, new) or not _harmless_head(old, new):
        return HEAD
    if (_yields(new) and not _yields(old)) or (_is_async(new) and not _is_async(old)):
        return NEVER
    return _replaced(old, new, module)


# --- assertions -----------------------------------------------------------------------------------


def _covered(old: Function, new: Function, helpers: frozenset[str]) -> bool:
    """True if each check of the old test has one of its own in the new test."""
    left = sorted(checks(new, helpers), key=lambda check: check.strength)
    for check in sorted(checks(old, helpers), key=_hardest, reverse=True):
        found = next((n for n, other in enumerate(left) if other.covers(check)), None)
        if found is None:
            return False
        del left[found]
    return True


def _hardest(check: Check) -> tuple[float, bool, int]:
    return check.strength, check.match, -len(check.path)


def _helpers(module: ast.Module | None) -> frozenset[str]:
    """Return the functions of a file, tests left out, that assert."""
    nodes = ast.walk(module) if module else ()
    found = (n for n in nodes if isinstance(n, Function) and not n.name.startswith("test"))
    return frozenset(f.name for f in found if any(isinstance(n, ast.Assert) for n in ast.walk(f)))


# --- ways round them ------------------------------------------------------------------------------


def _more(words: frozenset[str], old: Function, new: Function) -> bool:
    """True if one of the words stands more often in the new test."""
    before, after = (Counter(w for w in _words(f) if w in words) for f in (old, new))
    return bool(after - before)


def _words(function: Function) -> Iterator[str]:
    """Yield the names in a function, also those that it imports."""
    for node in ast.walk(function):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (part for a in node.names for part in a.name.split("."))


def _ways_round(function: Function) -> int:
    nodes = list(own_nodes(function.body))
    handlers = [n for n in nodes if isinstance(n, ast.ExceptHandler)]
    returns = sum(isinstance(n, ast.Return) for n in nodes)
    return returns + sum(map(swallows, handlers))


def _yields(function: Function) -> bool:
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(function.body))


def _is_async(function: Function) -> bool:
    return isinstance(function, ast.AsyncFunctionDef)


# --- decorators and parameters --------------------------------------------------------------------


def same_heads(old: Function, new: Function) -> bool:
    """True if the new test has each decorator of the old one, with no fewer sets of parameters."""
    before, after = (Counter(map(_decorator, f.decorator_list)) for f in (old, new))
    return not before - after and cases(new) >= cases(old)


def _decorator(node: ast.expr) -> str:
    """Return what of a decorator may not change."""
    name = last_name(node)
    if not isinstance(node, ast.Call) or name not in _CHANGEABLE:
        return ast.dump(node)
    names = [ast.dump(a) for a in node.args[:1]] if name == "parametrize" else []
    return " ".join([ast.dump(node.func), *names])


def _harmless_head(old: Function, new: Function) -> bool:
    before = [ast.dump(d) for d in old.decorator_list]
    known = set(map(_decorator, old.decorator_list))
    changed = [d for d in new.decorator_list if ast.dump(d) not in before]
    added = [d for d in changed if _decorator(d) not in known]
    fine = all(last_name(d) in _HARMLESS for d in added)
    return fine and all(_values(d) for d in changed if last_name(d) == "parametrize")


def cases(function: Function) -> int:
    """Count the different parameter sets in the decorators; a computed list counts as one."""
    return sum(_values(d) for d in function.decorator_list if last_name(d) == "parametrize")


def _values(decorator: ast.expr) -> int:
    given = decorator.args[1:2] if isinstance(decorator, ast.Call) else []
    if isinstance(decorator, ast.Call):
        given = given or [k.value for k in decorator.keywords if k.arg == "argvalues"]
    match given:
        case [ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts)]:
            return len({ast.dump(e) for e in elts})
        case [ast.Call(func=ast.Name(id="list" | "tuple" | "set"), args=[])] | []:
            return 0
        case [ast.Call(func=ast.Name(id="range"), args=arguments)]:
            numbers = [a.value for a in arguments if isinstance(a, ast.Constant)]
            whole = [n for n in numbers if isinstance(n, int)]
            return _length(whole) if 0 < len(whole) == len(arguments) < 3 else 0
    return 1


def _length(bounds: list[int]) -> int:
    first, last = (0, *bounds)[-2:]  # len() of a range takes no more than a machine's word
    return max(last - first, 0)


# --- replaced names -------------------------------------------------------------------------------


def _replaced(old: Function, new: Function, module: ast.Module | None) -> str | None:
    """Return which name of the solution or of the frame the new test puts something else for."""
    outer = (
        _bound(module.body) if module else {n.id for n in ast.walk(old) if isinstance(n, ast.Name)}
    )
    hidden = (_locals(new) - _locals(old)) & (outer | set(dir(builtins)) | {"pytest", "solution"})
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
        case ast.ClassDef() | ast.Global() | ast.Nonlocal():
            return True
        case ast.Call(args=[ast.Constant(value=str(target)), *_]) if last_name(node) in _PATCHING:
            parts = target.split(".")
            inside = len(parts) <= 2 or not parts[1].islower()
            return parts[0] in _FRAMEWORKS and inside and target not in _REPLACEABLE
        case ast.Call(args=[target, *_]) if last_name(node) in _PATCHING:
            return _root(target) in _FRAMEWORKS | _imported(module)
    return False


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


# --- whole files ----------------------------------------------------------------------------------


def weakened_source(old: str, new: str) -> list[str]:
    """Return the points in which a test file checks less than `old`; none without an old file."""
    if not old or syntax_error(old) is not None:
        return []
    if problem := syntax_error(new):
        return [f"the new file does not parse: {problem}"]
    return weakened_file(parsed(old), parsed(new))


def weakened_file(old: ast.Module, new: ast.Module) -> list[str]:
    """Return the points in which a whole test file checks less than the one it replaces."""
    if max(levels(old), levels(new)) > DEEPEST:
        return ["the file is nested too deeply to be compared with the one before"]
    before, after = dict(_tests(old.body)), dict(_tests(new.body))
    found = [SKIPS.replace("patch", "file")] if _outside(new) - _outside(old) else []
    both = {
        name: weakening(before[name], after[name], new) for name in before.keys() & after.keys()
    }
    found += [f"{n}: {w.replace('the patch', 'the new file', 1)}" for n, w in both.items() if w]
    lost = sorted(before.keys() - after.keys())
    helpers = _helpers(old) | _helpers(new)
    had, has = (sum(len(checks(f, helpers)) for f in x.values()) for x in (before, after))
    if lost and has < had:
        found.append(f"{', '.join(lost)}: lost, and the new file has {has} assertions, not {had}")
    return sorted(found)


def _tests(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, Function) and node.name.startswith("test"):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _tests(node.body, f"{prefix}{node.name}::")


def _outside(module: ast.Module) -> Counter[str]:
    """Count the words that skip or mark, outside of functions."""
    decorators = (
        d for n in ast.walk(module) if isinstance(n, ast.ClassDef) for d in n.decorator_list
    )
    words = [last_name(n) for n in own_nodes([*module.body, *decorators])]
    deleted = ["del" for n in own_nodes(module.body) if isinstance(n, ast.Delete)]
    return Counter([*(w for w in words if w in _SKIPS), *deleted])
