"""Whether a repaired test checks less than the one it replaces.

Each assertion of the old test needs one in the new test that holds no less, below no other conditions.
Values may change; decorators and parameters stay, and what could get round the assertions is not new.
A repair that is not understood is refused, with the reason.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from codetape.states.assertions import Check, Function, checks, last_name, own_nodes, swallows
from codetape.states.local_values import pure_names
from codetape.states.python_source import DEEPEST, levels, parsed, syntax_error
from codetape.states.replaced_names import replaced
from codetape.states.strength import loop_length

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
        *("pytestmark", "__test__", "outcomes", "raise_signal", "add_marker", "applymarker"),
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
            "attrgetter",
            "getattr_static",
            "__name__",
        ),
        *("settrace", "setprofile", "builtins"),
        *("__builtins__", "__dict__", "__globals__", "__code__", "__class__", "__eq__", "_pytest"),
        *("failureException", "__import__", "import_module", "ANY"),
    ]
)
_CALLED = frozenset(["exec", "eval", "compile", "globals", "locals", "vars", "getattr"])
"""Functions of Python's own that get round assertions; methods of these names do not."""

_HARMLESS = frozenset(["usefixtures", "filterwarnings", "asyncio", "anyio", "parametrize"])
_CHANGEABLE = frozenset(
    ["parametrize", "usefixtures", "filterwarnings", "given", "example", "patch"]
)

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
    if _ways_round(new) > _ways_round(old) or _more(_ROUNDS | _CALLED, old, new):
        return ROUND
    if not _covered(old, new, _helpers(module), _pure(module)):
        return LESS
    if not same_heads(old, new) or not _harmless_head(old, new):
        return HEAD
    if (_yields(new) and not _yields(old)) or (_is_async(new) and not _is_async(old)):
        return NEVER
    return replaced(old, new, module)


# --- assertions -----------------------------------------------------------------------------------


def _covered(old: Function, new: Function, helpers: frozenset[str], pure: frozenset[str]) -> bool:
    """True if each check of the old test has one of its own in the new test."""
    left = sorted(checks(new, helpers, pure), key=lambda check: check.strength)
    for check in sorted(checks(old, helpers, pure), key=_hardest, reverse=True):
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


def _pure(module: ast.Module | None) -> frozenset[str]:
    return frozenset(pure_names(module.body if module else ()))


# --- ways round them ------------------------------------------------------------------------------


def _more(words: frozenset[str], old: Function, new: Function) -> bool:
    """True if one of the words stands more often in the new test."""
    before, after = (Counter(w for w in _words(f) if w in words) for f in (old, new))
    return bool(after - before)


def _words(function: Function) -> Iterator[str]:
    """Yield the names in a function, also those that it imports."""
    left: list[ast.AST] = [function]
    while left:
        node = left.pop()
        left += ast.iter_child_nodes(node)
        match node:
            case ast.Call(
                func=ast.Name(id="getattr") as get, args=[_, ast.Constant(value=str(name)), *_]
            ):
                left.remove(get)
                yield name
            case ast.Attribute(attr=name) if name not in _CALLED:
                yield name
            case ast.Name(id=name):
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
        case []:
            return 0
        case [one] if loop_length(one) == 0:
            return 0
        case [ast.Call(func=ast.Name(id="range"), args=arguments)]:
            numbers = [a.value for a in arguments if isinstance(a, ast.Constant)]
            whole = [n for n in numbers if isinstance(n, int)]
            return _length(whole) if 0 < len(whole) == len(arguments) < 3 else 0
    return 1


def _length(bounds: list[int]) -> int:
    first, last = (0, *bounds)[-2:]  # len() of a range takes no more than a machine's word
    return max(last - first, 0)


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
    helpers, pure = _helpers(old) | _helpers(new), _pure(old) | _pure(new)
    had, has = (sum(len(checks(f, helpers, pure)) for f in x.values()) for x in (before, after))
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
