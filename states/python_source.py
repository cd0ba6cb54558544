"""What the text of a Python file says without running it."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Iterator
from functools import lru_cache

from codetape.states.newer_syntax import OLDEST, in_older_words, may_be_newer
from codetape.states.values import Value


class TestFunction(Value):
    """A test as the file defines it: `id` without parameters, lines from 1, decorators included.

    `plain` says that nothing wraps it: pytest runs the function of these lines.
    """

    __test__ = False

    id: str
    first_line: int
    last_line: int
    plain: bool = False


_PARSING = threading.Lock()

DEEPEST = 100
"""Levels of a tree that is read. Python's own walks take up to six frames for one, of a thousand."""

MOST_BITS = 14_000
"""Bits of a whole number: Python writes none of many more digits."""

LARGE = 100_000
"""Characters of a text whose tree is large: some 25 MB. Few of those are kept."""

NO_TEXT = "it has characters that no source may have"
TOO_LONG = "it has a number of too many digits"
TOO_DEEP = f"it is nested deeper than {DEEPEST} levels"


def parsed(source: str) -> ast.Module:
    """Return the syntax tree, which is shared: nobody changes it.

    Raises SyntaxError, also for what Python might parse and no rule could walk over: how deep it may be
    depends on the tree alone, and not on who asks.
    """
    text = source.rstrip("\n")  # a text and its file differ in the last line end only
    return _tree(text) if len(text) <= LARGE else _large_tree(text)


def own_tree(source: str) -> ast.Module:
    """Return a syntax tree that the caller may change; raises as `parsed` does."""
    return _tree.__wrapped__(source)


@lru_cache(maxsize=32)
def _tree(source: str) -> ast.Module:
    """Parse once for all that is asked of a text.

    Warnings of the parser ("invalid escape sequence") are left out: whether they are errors is a
    setting of the process, and no rule may depend on it. The lock is for them, filters are global.
    """
    try:
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parse(source)
    except (RecursionError, MemoryError):  # the parser's own bounds
        raise SyntaxError(TOO_DEEP) from None
    except ValueError:  # NUL, lone surrogates
        raise SyntaxError(NO_TEXT) from None
    _refuse_unreadable(tree)
    return tree


def _parse(source: str) -> ast.Module:
    """Parse by the grammar of the oldest Python, whichever one this is."""
    return ast.parse(in_older_words(source), feature_version=OLDEST)


def _refuse_unreadable(tree: ast.Module) -> None:
    if levels(tree, elifs=False) > DEEPEST:
        raise SyntaxError(TOO_DEEP)
    for node in ast.walk(tree):
        number = node.value if isinstance(node, ast.Constant) else None
        if isinstance(number, int) and number.bit_length() > MOST_BITS:
            raise SyntaxError(TOO_LONG)


_large_tree = lru_cache(maxsize=2)(_tree.__wrapped__)


def levels(tree: ast.AST, *, elifs: bool = True) -> int:
    """Count the levels of a tree; without `elifs`, all branches of a condition are on one level."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in _below(node, elifs)]
    return deepest


def _below(node: ast.AST, elifs: bool) -> Iterator[ast.AST]:
    """Yield the nodes one level below a node."""
    while not elifs and isinstance(node, ast.If) and _is_elif(node.orelse):
        yield from (node.test, *node.body)
        node = node.orelse[0]
    yield from ast.iter_child_nodes(node)


def _is_elif(orelse: list[ast.stmt]) -> bool:
    return len(orelse) == 1 and isinstance(orelse[0], ast.If)


@lru_cache(maxsize=256)
def syntax_error(source: str) -> str | None:
    """Return why `source` does not parse, or None if it does; the same on every Python.

    What Python itself says differs from version to version, and would be on the tape.
    """
    try:
        parsed(source)
    except SyntaxError as error:
        if error.msg in (TOO_DEEP, TOO_LONG, NO_TEXT):
            return error.msg
        return (
            f"line {_first_fault(source)}: the statement that begins there is not whole, or wrong"
        )
    return None


def is_broken(source: str) -> bool:
    """True if no Python can parse `source`; what is newer than the rules know may be right."""
    problem = syntax_error(source)
    return problem is not None and (problem in (TOO_DEEP, TOO_LONG, NO_TEXT) or not _unread(source))


def _unread(source: str) -> bool:
    return may_be_newer(source) and _MARGIN.search(source) is not None and "```" not in source


_MARGIN = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
"""A function or class at the margin."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w.]+))", re.MULTILINE
)
_GOES_ON = re.compile(r"[\s#)\]}]|$|(?:else|elif|except|finally)\b")
_MOST_PARTS = 200
"""Parts of a text that are parsed on the search for the one that is wrong."""


def _first_fault(source: str) -> int:
    """Return the line of the first statement at the margin that does not parse."""
    first, part, tried = 1, list[str](), 0
    for number, line in enumerate(source.split("\n"), start=1):
        if part and not _GOES_ON.match(line) and tried < _MOST_PARTS:
            tried += 1
            if _parses("\n".join(part)):
                first, part = number, []
        if part or line.strip():
            first = first if part else number
            part.append(line)
    return first


def _parses(part: str) -> bool:
    try:
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _parse(part)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return False
    return True


def compile_error(source: str) -> str | None:
    """Return why `source` cannot be run ("line 3: 'return' outside function"), or None if it can.

    What parses may be refused all the same, for where it stands.
    """
    if problem := syntax_error(source):
        return problem
    tree = own_tree(source)
    try:
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, "-", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    except (RecursionError, MemoryError):
        return TOO_DEEP
    return None


_EXPRESSIONS = (ast.expr, ast.withitem, ast.arguments, ast.keyword)

IMPORTING = ("import_module", "importorskip")
"""Functions that import what their first argument names."""


@lru_cache(maxsize=256)
def imported_names(source: str) -> tuple[str, ...]:
    """Return the dotted names that `source` imports, sorted; also inside functions and try-blocks.

    `from a.b import c` gives "a.b.c", because the distribution may hang on any of the three.
    `importlib.import_module("x")`, `__import__("x")` and `pytest.importorskip("x")` with a literal
    count. Relative imports do not. A file that does not parse imports nothing.
    """
    if syntax_error(source) is not None:
        return imports_at_sight(source)
    names: set[str] = set()
    left: list[ast.stmt] = list(parsed(source).body)
    while left:  # a thousand elifs are as many levels
        node = left.pop()
        names.update(imports_in(node))
        left += all_blocks(node)
    return tuple(sorted(names))


def imports_at_sight(source: str) -> tuple[str, ...]:
    """Return what the lines of a text import that is too new to be read; nothing of a broken one."""
    found = () if is_broken(source) else _IMPORT.findall(source)
    return tuple(sorted({module or name for module, name in found}))


def imports_in(node: ast.stmt) -> Iterator[str]:
    """Yield the dotted names that a statement imports, those in its blocks left out."""
    yield from _names_of(node)
    left = [child for child in ast.iter_child_nodes(node) if isinstance(child, _EXPRESSIONS)]
    for child in left:
        for part in ast.walk(child):
            yield from _names_of(part)


def all_blocks(node: ast.stmt) -> list[ast.stmt]:
    """Return the statements of all blocks of a statement."""
    parts = [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    blocks = ("body", "orelse", "finalbody")
    own = [child for block in blocks for child in getattr(node, block, ())]
    return [*own, *(child for part in parts for child in part.body)]


def _names_of(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=aliases):
            return [alias.name for alias in aliases]
        case ast.ImportFrom(module=str(module), names=aliases, level=0):
            return [module if alias.name == "*" else f"{module}.{alias.name}" for alias in aliases]
        case ast.Call(
            func=ast.Name(id=function) | ast.Attribute(attr=function),
            args=[ast.Constant(value=str(name)), *_],
        ) if function in ("__import__", *IMPORTING) and not name.startswith("."):
            return [name]
    return []


def imports_of(*sources: str) -> tuple[str, ...]:
    """Return what any of the sources imports, sorted."""
    return tuple(sorted({name for source in sources for name in imported_names(source)}))


@lru_cache(maxsize=256)
def defined_tests(source: str) -> tuple[TestFunction, ...]:
    """Return the tests that `source` defines, in the order of the file; a run says which are found.

    Functions named test*, those below a condition or a try too, and methods test* of classes named
    Test* that have no `__init__`, nested classes included, and of classes that derive from a TestCase.
    Fixtures are no tests, whatever their name, nor is what the file marks by `name.__test__ = False`,
    or a class in itself. Empty for a file that does not parse.
    """
    if syntax_error(source) is not None:
        return ()
    tree = parsed(source)
    return tuple(
        x for x in _tests_in(tree.body, "") if x.id.partition("::")[0] not in _marked(tree)
    )


@lru_cache(maxsize=256)
def shadowed_tests(source: str) -> tuple[str, ...]:
    """Return the tests, and classes of tests, that another one of the same name keeps from running.

    Python knows only the last of two, so the first one would look as if it had passed.
    """
    return tuple(_shadowed(parsed(source).body, "")) if syntax_error(source) is None else ()


def _shadowed(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    classes = [n for n in body if isinstance(n, ast.ClassDef) and _tests_in([n], "")]
    names = [test.id for test in _tests_in(_functions(body), "")] + [n.name for n in classes]
    yield from (f"{prefix}{name}" for name in dict.fromkeys(names) if names.count(name) > 1)
    for node in classes:
        yield from _shadowed(node.body, f"{prefix}{node.name}::")


def _functions(body: list[ast.stmt]) -> list[ast.stmt]:
    return [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _marked(tree: ast.Module) -> set[str]:
    """The names that a file says are no tests: pytest leaves them out."""
    marked = set()
    for node in tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=name), attr="__test__")],
                value=ast.Constant(value=False),
            ):
                marked.add(name)
    return marked


def _tests_in(body: list[ast.stmt], prefix: str) -> list[TestFunction]:
    found: list[TestFunction] = []
    left = body[::-1]
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test") and not is_fixture(node):
                found.append(_test(node, prefix))
        elif isinstance(node, ast.ClassDef) and _collectable(node):
            found.extend(_tests_in(node.body, f"{prefix}{node.name}::"))
        elif isinstance(node, ast.If | ast.Try | ast.With) and not prefix:
            left += _blocks(node)[::-1]
    return found


def _blocks(node: ast.If | ast.Try | ast.With) -> list[ast.stmt]:
    """Return the statements of all blocks of a statement."""
    handlers = [part for handler in getattr(node, "handlers", ()) for part in handler.body]
    rest = (getattr(node, block, []) for block in ("orelse", "finalbody"))
    return [*node.body, *handlers, *(part for block in rest for part in block)]


def _test(node: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> TestFunction:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.end_lineno or node.lineno
    return TestFunction(id=f"{prefix}{node.name}", first_line=first, last_line=last)


def is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for @pytest.fixture, @fixture and @pytest.fixture(…)."""
    calls = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return any(_last_name(call) == "fixture" for call in calls)


def fixtures_of(source: str) -> frozenset[str]:
    """Return the names of the fixtures of pytest that a file which parses defines."""
    functions = _functions(parsed(source).body) if syntax_error(source) is None else []
    return frozenset(
        node.name
        for node in functions
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_fixture(node)
    )


def _last_name(node: ast.expr) -> str:
    """Return `c` for `a.b.c`, however long that is; empty for what is no name."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _says_no_test(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="__test__")], value=ast.Constant(value=False)):
            return True
    return False


def _collectable(node: ast.ClassDef) -> bool:
    if any(map(_says_no_test, node.body)):
        return False
    if any(_last_name(base).endswith("TestCase") for base in node.bases):
        return True
    methods = [child.name for child in node.body if isinstance(child, ast.FunctionDef)]
    own = {"__init__", "__new__"} & set(methods)
    return node.name.startswith("Test") and not own


def does_something(source: str) -> bool:
    """True if there is more in a file than comments, names and values. False if it is broken."""
    if syntax_error(source) is not None:
        return not is_broken(source)
    return not all(map(_is_idle, parsed(source).body))


def _is_idle(statement: ast.stmt) -> bool:
    """True for a statement that computes at most a value, which nothing takes."""
    acts = ast.Call | ast.Await | ast.NamedExpr
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr)
        and not any(isinstance(node, acts) for node in ast.walk(statement))
    )


def public_functions(source: str) -> tuple[str, ...]:
    """Return the names of the module-level functions and classes, private ones left out."""
    return tuple(name for name in defined_names(source) if not name.startswith("_"))


def defined_names(source: str) -> tuple[str, ...]:
    """Return the names of all module-level functions and classes. Empty if it is broken."""
    if syntax_error(source) is not None:
        return () if is_broken(source) else tuple(_MARGIN.findall(source))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return tuple(node.name for node in parsed(source).body if isinstance(node, kinds))
