"""The tests that a run has to report: a second witness beside collection, from the text alone.

Collection in the sandbox says which tests there are; it shares a process with the solution, which
could hide some. So each test that the text defines for certain must be among them, and a plain one
must be the function of that line. Where the text cannot know, collection decides: inheritance,
`__test__`, `del`, a name that is bound twice, conditions, classes with unknown decorators.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

from codetape.states.failures import base_id
from codetape.states.python_source import (
    TestFunction,
    defined_tests,
    is_fixture,
    parsed,
    syntax_error,
)
from codetape.states.values import Problem, TestReport

Function = ast.FunctionDef | ast.AsyncFunctionDef
NOT_COLLECTED = "ClassNotCollected"
"""The type of the problem of a class whose tests pytest leaves out."""

UNITTEST = {f"{module}{name}" for module in ("", "unittest.") for name in
            ("TestCase", "IsolatedAsyncioTestCase")}  # fmt: skip
CONSTRUCTORS = ("__init__", "__new__")
WARNED = re.compile(r"cannot collect test class '(\w+)' because it has a (__\w+__) ")
DYNAMIC = re.compile(r"\b(globals|setattr|exec|locals|vars)\(|\bimport \*")


@lru_cache(maxsize=256)
def certain_tests(source: str) -> tuple[TestFunction, ...]:
    """Return the tests that pytest finds in `source`, whatever the code does that it imports."""
    if syntax_error(source) is not None:
        return ()
    tree = parsed(source)
    if "__test__" in _bound(tree.body):
        return ()
    return tuple(_certain(tree.body, ""))


def replaced_tests(source: str, report: TestReport) -> tuple[str, ...]:
    """Return the tests for which pytest ran another function than the file defines."""
    lines = {test.id: test.first_line for test in certain_tests(source) if test.plain}
    found = zip(report.collected, report.lines, strict=False)
    return tuple(name for name, line in found if lines.get(base_id(name), line) != line)


def uncollected_class(source: str, report: TestReport) -> Problem | None:
    """Return the first class whose tests never run because it has a constructor, as a problem."""
    if syntax_error(source) is not None:
        return None
    classes = {n.name: n for n in _module_level(parsed(source)) if isinstance(n, ast.ClassDef)}
    warned = dict(WARNED.findall("\n".join(report.warnings)))
    for name, node in classes.items():
        why = warned.get(name) or _constructor(node)
        if why and _has_tests(node, classes) and not _collected(name, classes, report):
            return Problem(
                type=NOT_COLLECTED,
                message=f"class {name} has an {why}, so pytest does not run its tests",
            )
    return None


def may_define_tests(source: str) -> bool:
    """Say whether pytest may find a test in a file that parses: only a run can tell for all."""
    if defined_tests(source) or DYNAMIC.search(source):
        return True
    nodes = list(_module_level(parsed(source)))
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    derived = (n for n in classes.values() if _bases(n) - {"object"} and not _constructor(n))
    return any(name.startswith(("test", "Test")) for name in _assigned(nodes)) or any(
        n.name.startswith("Test") or _has_tests(n, classes) for n in derived
    )


def _certain(body: list[ast.stmt], prefix: str) -> Iterator[TestFunction]:
    bound = _bound(body)
    for node in _unconditional(body):
        if not isinstance(node, Function | ast.ClassDef) or bound.count(node.name) > 1:
            continue
        if isinstance(node, ast.ClassDef):
            yield from _of_class(node, prefix)
        elif node.name.startswith("test") and not is_fixture(node) and not _property(node):
            yield TestFunction(
                id=f"{prefix}{node.name}",
                first_line=min(x.lineno for x in (node, *node.decorator_list)),
                last_line=node.end_lineno or node.lineno,
                plain=all(map(_is_mark, node.decorator_list)),
            )


def _of_class(node: ast.ClassDef, prefix: str) -> Iterator[TestFunction]:
    bases = _bases(node)
    if (
        node.keywords
        or "__test__" in _bound(node.body)
        or not all(map(_is_mark, node.decorator_list))
    ):
        return
    if bases and bases <= UNITTEST:
        flat = [child for child in node.body if not isinstance(child, ast.ClassDef)]
        yield from _certain(flat, f"{prefix}{node.name}::") if not prefix else ()
    elif bases <= {"object"} and node.name.startswith("Test") and not _constructor(node):
        yield from _certain(node.body, f"{prefix}{node.name}::")


def _unconditional(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant) and node.test.value:
            yield from _unconditional(node.body)
        else:
            yield node


def _module_level(root: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below `root` but those inside functions and classes."""
    left: deque[ast.AST] = deque([root])
    while left:
        node = left.popleft()
        yield node
        if node is root or not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            left += ast.iter_child_nodes(node)


def _bound(body: list[ast.stmt]) -> list[str]:
    """Return each name once for each place that binds, deletes or marks it."""
    nodes = list(_module_level(ast.Module(body, [])))
    defined = [node.name for node in nodes if isinstance(node, Function | ast.ClassDef)]
    return [*defined, *_assigned(nodes)]


def _assigned(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name
            case ast.alias(name=name, asname=other):
                yield (other or name).partition(".")[0]


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base) for base in node.bases}


def _constructor(node: ast.ClassDef) -> str:
    """Return the constructor that a class has in its own text; a dataclass gets one."""
    if any(base.endswith("TestCase") for base in _bases(node)):
        return ""
    own = [n.name for n in node.body if isinstance(n, Function) and n.name in CONSTRUCTORS]
    made = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    return own[0] if own else "__init__" * made


def _has_tests(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    if not node.name.startswith("Test") and not _bases(node):
        return False
    return any(
        isinstance(n, Function) and n.name.startswith("test")
        for each in _family(node, classes)
        for n in each.body
    )


def _family(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """Return a class and those of the file that it derives from."""
    found = [node]
    for each in found:
        found += [classes[b] for b in _bases(each) if b in classes and classes[b] not in found]
    return found


def _collected(name: str, classes: dict[str, ast.ClassDef], report: TestReport) -> bool:
    """Say whether tests of a class ran, as its own or as those of a class that derives from it."""
    heirs = [n for n, node in classes.items() if classes[name] in _family(node, classes)]
    return any(test.partition("::")[0] in heirs for test in report.collected)


def _property(node: Function) -> bool:
    return any(ast.unparse(d).endswith("property") for d in node.decorator_list)


def _is_mark(decorator: ast.expr) -> bool:
    return re.match(r"(pytest\.)?mark\.|unittest\.skip", ast.unparse(decorator)) is not None
