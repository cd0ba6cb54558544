"""Putting repaired tests into a test file without losing or weakening any."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from codetape.states.assertions import Function
from codetape.states.code_text import python_code
from codetape.states.failures import base_id, plain_id
from codetape.states.fences import fenced_blocks
from codetape.states.python_source import TestFunction, defined_tests, parsed, syntax_error
from codetape.states.weakening import same_heads, weakening


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
    no less than before, to skip nothing, and to change something. Where it would lose ids of the test,
    the test keeps its decorators and parameters. Patches that differ, for cases of one test, are all
    refused: it has one body.
    """
    failing = tuple(failing)
    due = dict.fromkeys(base_id(test) for test in failing)
    given = tuple(patches)
    torn = _torn(given, failing)
    done: list[str] = []
    refused: list[str] = []
    for name, code in given:
        try:
            _refuse_if(name in torn, "several patches of one test; give one for all its cases")
            target = _target(source, name, due)
            source = _spliced(source, target, _module(code))
            done.append(target.id)
        except ValueError as reason:
            refused.append(f"{name}: {reason}")
    return Patched(source, tuple(dict.fromkeys(done)), tuple(refused))


def _torn(patches: Iterable[tuple[str, str]], failing: Iterable[str]) -> set[str]:
    """Return the cases that failed and have patches which differ from those of other cases."""
    cases = {_bare(test) for test in failing if base_id(test) != test}
    codes: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for name, code in patches:
        if _bare(name) in cases:
            codes[base_id(name)][name] = code.strip()
    return {name for of_it in codes.values() if len(set(of_it.values())) > 1 for name in of_it}


def _bare(name: str) -> str:
    """Return a test's name without the file and the classes that it may come with."""
    name = plain_id(name)
    base = base_id(name)
    return base.split("::")[-1] + name.removeprefix(base)


def _refuse_if(wrong: bool, reason: str) -> None:
    if wrong:
        raise ValueError(reason)


def _target(source: str, name: str, due: Iterable[str]) -> TestFunction:
    wanted = base_id(plain_id(name))
    same = [test for test in due if test == wanted or test.split("::")[-1] == wanted]
    found = [test for test in defined_tests(source) if test.id in same]
    if not same:
        raise ValueError(_no_target(source, wanted))
    if len(found) != 1 or len(same) != 1:
        raise ValueError(f"the file defines {len(found)} tests of this name, not one")
    return found[0]


def _no_target(source: str, wanted: str) -> str:
    tests = {test.id.split("::")[-1] for test in defined_tests(source)}
    if wanted in tests or not _functions(source, wanted):
        return "this test did not fail"
    return "this is no test, so it stays; put what the failing test needs into the test itself"


def _module(code: str) -> str:
    """Return a patch as a module that parses; a method that came with its indent gets a class."""
    text = python_code(code)
    problem = syntax_error(text)
    if problem is None:
        return text
    indented = (f"class _:\n{block}" for block in (text, *fenced_blocks(text)))
    if found := next((module for module in indented if syntax_error(module) is None), None):
        return found
    raise ValueError(f"the patch does not parse ({problem})")


def _spliced(source: str, target: TestFunction, patch: str) -> str:
    """Replace exactly the lines of the test; comments after it stay."""
    name = target.id.split("::")[-1]
    old = next(f for f in _functions(source, name) if f.end_lineno == target.last_line)
    new = _checked(source, old, patch)
    lines = source.rstrip("\n").split("\n")
    before = lines[target.first_line - 1 : target.last_line]
    after = _kept_ids(before, old, _lines_of(patch, new, old.col_offset), new)
    if before == after:
        raise ValueError(f"the patch changes nothing{_elsewhere(source, patch, new)}")
    lines[target.first_line - 1 : target.last_line] = after
    patched = "\n".join(lines) + "\n"
    if problem := syntax_error(patched):
        raise ValueError(f"the patched file does not parse ({problem})")
    _refuse_weaker(old, _placed(patched, target), parsed(source))
    return patched


def _placed(patched: str, target: TestFunction) -> Function:
    """Return the test that now stands in the place of the target."""
    first = target.first_line
    name = target.id.split("::")[-1]
    return next(f for f in _functions(patched, name) if _first_line(f) == first)


def _first_line(function: Function) -> int:
    return min([function.lineno, *(d.lineno for d in function.decorator_list)])


def _refuse_weaker(old: Function, new: Function, module: ast.Module) -> None:
    if weaker := weakening(old, new, module):
        raise ValueError(weaker)


def _functions(code: str, name: str) -> list[Function]:
    return [n for n in ast.walk(parsed(code)) if isinstance(n, Function) and n.name == name]


def _checked(source: str, old: Function, patch: str) -> Function:
    """Return the one function of `patch` that may take the place of `old`."""
    functions = _functions(patch, old.name)
    if len(functions) != 1:
        raise ValueError(f"the patch defines {old.name} {len(functions)} times, not once")
    new = functions[0]
    if lost := sorted(_used(new) & _imported(patch) - _imported(source)):
        raise ValueError(f"the patch imports {', '.join(lost)} outside the function")
    if lost := sorted(_used(new) & _defined(patch) - _defined(source) - {new.name}):
        raise ValueError(f"the patch defines {', '.join(lost)} outside the function")
    return new


def _kept_ids(before: list[str], old: Function, after: list[str], new: Function) -> list[str]:
    """Keep decorators and parameters of the old test where the new ones would lose some of its ids."""
    if same_heads(old, new):
        return after
    return [*before[: _head(old)], *after[_head(new) :]]


def _head(function: Function) -> int:
    """Count the lines before the body: decorators and signature."""
    first = _first_line(function)
    body = function.body[0].lineno
    if body == function.lineno:
        raise ValueError("the patch drops parameters of the test")
    return body - first


def _elsewhere(source: str, patch: str, new: Function) -> str:
    """Say so if what a patch changes stands outside of its test."""
    others = set(map(ast.unparse, parsed(patch).body)) - set(map(ast.unparse, parsed(source).body))
    others -= {ast.unparse(new)}
    return " in the test; what stands outside of it is left out" if others else ""


def _used(function: Function) -> set[str]:
    """The names in a function, and those of its parameters: a fixture is one."""
    nodes = list(ast.walk(function))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _defined(code: str) -> set[str]:
    """The names that functions, classes and values of a module have."""
    body = parsed(code).body
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = {node.name for node in body if isinstance(node, kinds)}
    assigned = [t for n in body if isinstance(n, ast.Assign) for t in n.targets]
    return names | {target.id for target in assigned if isinstance(target, ast.Name)}


def _imported(code: str) -> set[str]:
    """The names that the imports of a module bind."""
    imports = [n for n in parsed(code).body if isinstance(n, ast.Import | ast.ImportFrom)]
    return {(a.asname or a.name).partition(".")[0] for node in imports for a in node.names}


def _lines_of(code: str, function: Function, indent: int) -> list[str]:
    """Cut a function out of a patch and give it the indent of its place."""
    first = _first_line(function)
    inside = _inside_texts(function)
    numbered = list(enumerate(code.split("\n"), start=1))[first - 1 : function.end_lineno]
    return [
        line if number in inside else _moved(line, function.col_offset, indent)
        for number, line in numbered
    ]


def _inside_texts(function: Function) -> set[int]:
    """The lines that begin inside a text of several lines: their blanks belong to the text."""
    kinds = ast.Constant | ast.JoinedStr
    texts = [node for node in ast.walk(function) if isinstance(node, kinds)]
    return {n for t in texts for n in range(t.lineno + 1, (t.end_lineno or t.lineno) + 1)}


def _moved(line: str, before: int, after: int) -> str:
    bare = line.lstrip()
    blanks = max(len(line) - len(bare) - before, 0)
    return " " * (after + blanks) + bare if bare else ""
