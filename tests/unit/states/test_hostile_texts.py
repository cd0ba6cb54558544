"""No text of a model breaks a rule: what cannot be read is refused in the words of the house."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from codetape.states import (
    answers,
    channels,
    code_text,
    elisions,
    expected_tests,
    fences,
    fixes,
    joining,
    json_text,
    newer_syntax,
    patching,
    python_source,
    required_imports,
    texts,
    weakening,
)
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.answers import SHAPES, Unusable
from codetape.states.failures import Failure
from codetape.states.tools import harness
from codetape.states.tools import reading as tool_reading
from codetape.states.tools import requests as q
from codetape.states.values import Answer, LlmCall, Problem, TestReport
from codetape.states.workflow import AUTOCODER, TOOLMAKER
from tests.support.hostile_texts import JSON, LARGE, codes

CODES = codes()
PLAIN = "def add(a, b):\n    return a + b\n"
TESTS = "from solution import add\n\n\ndef test_one():\n    assert add(1, 2) == 3\n"
REFUSALS = (SyntaxError, Unusable, channels.NoAnswer)
"""How a rule says that a text cannot be read."""


def _both(rule: Callable[[str, str], Any], good: str) -> Callable[[str], Any]:
    """A rule of two texts: the hostile one before, behind, and with itself."""

    def with_each(text: str) -> None:
        for one, other in ((text, good), (good, text), (text, text)):
            _ask(partial(rule, one, other))

    return with_each


def _function(text: str) -> Any:
    return next(n for n in ast.walk(python_source.parsed(text)) if isinstance(n, ast.FunctionDef))


def _weakening(old: str, new: str) -> object:
    return weakening.weakening(_function(old), _function(new), python_source.parsed(new))


def _weakened_file(old: str, new: str) -> object:
    return weakening.weakened_file(python_source.parsed(old), python_source.parsed(new))


def _joined(text: str) -> object:
    """Join the blocks of a text with the code, as if each of them fitted."""
    read = fences.read_blocks(
        text, lambda code: True if python_source.syntax_error(code) is None else None
    )
    found = [block for block, _ in read]
    return joining.joined(found, found[-1], bool, lambda block: not block.info) if found else None


REPORT = TestReport(finished=True, collected=("test_one",), lines=(1,))
RULES: dict[Callable[..., Any], Callable[[str], Any]] = {
    python_source.parsed: python_source.parsed,
    python_source.syntax_error: python_source.syntax_error,
    python_source.compile_error: python_source.compile_error,
    python_source.imported_names: python_source.imported_names,
    python_source.imports_of: python_source.imports_of,
    python_source.imports_at_sight: python_source.imports_at_sight,
    python_source.is_broken: python_source.is_broken,
    newer_syntax.in_older_words: newer_syntax.in_older_words,
    newer_syntax.may_be_newer: newer_syntax.may_be_newer,
    required_imports.required_names: required_imports.required_names,
    python_source.defined_tests: python_source.defined_tests,
    python_source.shadowed_tests: python_source.shadowed_tests,
    python_source.defined_names: python_source.defined_names,
    python_source.own_tree: python_source.own_tree,
    python_source.does_something: python_source.does_something,
    python_source.public_functions: python_source.public_functions,
    expected_tests.certain_tests: expected_tests.certain_tests,
    expected_tests.replaced_tests: lambda text: expected_tests.replaced_tests(text, REPORT),
    expected_tests.uncollected_class: lambda text: expected_tests.uncollected_class(text, REPORT),
    expected_tests.may_define_tests: expected_tests.may_define_tests,
    code_text.python_code: code_text.python_code,
    code_text.find_code: code_text.find_code,
    code_text.is_broken_code: code_text.is_broken_code,
    code_text.later_version: lambda text: code_text.later_version(text, PLAIN, bool),
    joining.imports_any: lambda text: joining.imports_any(text, ["a", "os"]),
    joining.joined: _joined,
    elisions.left_out: elisions.left_out,
    json_text.json_values: lambda text: sum(map(len, json_text.json_values(text))),
    json_text.ends_in_json: json_text.ends_in_json,
    json_text.is_json: lambda text: json_text.is_json(text, len(text) // 2),
    channels.readings: channels.readings,
    python_source.fixtures_of: python_source.fixtures_of,
    fences.is_called_python: _both(fences.is_called_python, PLAIN),
    fences.fenced_blocks: fences.fenced_blocks,
    fences.has_open_fence: fences.has_open_fence,
    fences.read_blocks: lambda text: fences.read_blocks(text, lambda code: len(code) or None),
    fences.blocks: lambda text: sum(1 for _ in fences.blocks(text)),
    fences.open_block: fences.open_block,
    fences.without_label: fences.without_label,
    fences.lines_ended: fences.lines_ended,
    answers.shaped: lambda text: answers.shaped(text, SHAPES["code"]),
    answers.strings_in: lambda text: answers.strings_in(text, "code"),
    texts.well_formed: texts.well_formed,
    texts.storable: texts.storable,
    fixes.edits: fixes.edits,
    fixes.is_applied: lambda text: fixes.is_applied(f"Replace `{text}` with `{text}`", text, text),
    harness.as_test: harness.as_test,
    harness.appended: _both(harness.appended, PLAIN),
    harness.problems: _both(harness.problems, PLAIN),
    tool_reading.code_in: tool_reading.code_in,
    patching.apply_patches: _both(
        lambda one, other: patching.apply_patches(one, [("test_one", other)], ["test_one"]), TESTS
    ),
    weakening.weakened_source: _both(weakening.weakened_source, TESTS),
    weakening.weakened_file: _both(_weakened_file, TESTS),
    weakening.weakening: _both(_weakening, TESTS),
}
"""Every rule that takes a text of a model, and how it is asked."""

OF_TREES = frozenset(
    {
        "levels",
        "all_blocks",
        "imports_in",
        "is_fixture",
        "same_heads",
        "cases",
        "schema_text",
        "read",
        "whole_text",
        "first_readable",
    }
)
"""Public functions that take a part of a tree, or an answer: they are asked by those above."""

HOMES: tuple[ModuleType, ...] = (
    *(python_source, expected_tests, fences, code_text, joining, elisions, json_text, channels),
    *(answers, texts, fixes, harness, patching, weakening),
    *(newer_syntax, required_imports),
)


def _ask(rule: Callable[[], object]) -> None:
    try:
        rule()
    except REFUSALS:
        pass
    except StopIteration:  # the text has no function
        pass


def _failed(rule: Callable[..., Any], codes: dict[str, str]) -> dict[str, str]:
    failed = {}
    for name, text in codes.items():
        try:
            _ask(partial(RULES[rule], text))
        except Exception as error:  # noqa: BLE001 - all of them are listed
            failed[name] = repr(error)[:150]
    return failed


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_code_breaks_a_rule(rule: Callable[..., Any]) -> None:
    assert _failed(rule, dict(list(CODES.items())[::7])) == {}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_large_code_breaks_a_rule(rule: Callable[..., Any]) -> None:
    assert _failed(rule, dict(list(CODES.items())[3::7]) | LARGE) == {}


def test_every_rule_of_a_text_is_asked() -> None:
    """A new function that takes a text has to be tried with all of these."""
    public = {
        function
        for home in HOMES
        for name, function in vars(home).items()
        if callable(function) and getattr(function, "__module__", "") == home.__name__
        and not name.startswith("_") and not inspect.isclass(function) and name not in OF_TREES
    }  # fmt: skip
    assert public <= RULES.keys(), {function.__name__ for function in public - RULES.keys()}


# --- whole answers --------------------------------------------------------------------------------


def _call(kind: str) -> LlmCall:
    return LlmCall(kind=kind, model="m", messages=())


FAILURE = Failure(test_id="test_one", problem=Problem(type="AssertionError", message="1 == 2"))
REQUESTS: tuple[r.ModelRequest, ...] = (
    r.ParseConstraint(call=_call("parse_constraint"), constraint="c", columns=("a",)),
    r.WritePlan(call=_call("plan")),
    r.WriteCode(call=_call("code")),
    r.VerifyCode(call=_call("verify_code"), fixes=("f",)),
    r.WriteTests(call=_call("tests"), previous=TESTS),
    r.PatchTests(call=_call("patch_tests"), source=TESTS, failing=("test_one",)),
    r.VerifyTests(call=_call("verify_tests"), fixes=("f",)),
    r.ReplacePackage(call=_call("replace_package"), rejected="x", system=False),
    r.ReplacePackage(call=_call("replace_package"), rejected="x", system=True),
    r.Diagnose(call=_call("diagnosis"), failures=(FAILURE,)),
    q.AskPersona(call=_call("persona"), persona="p", writes=True),
    q.AskPersona(call=_call("persona"), persona="p", writes=False),
    q.FixCode(call=_call("fix")),
    q.WriteHarness(call=_call("harness"), source=PLAIN),
)
FIELDS = {
    "plan": {"description": "d", "approach": "a"},
    "code": {"language": "python", "code": PLAIN, "packages": ["numpy"]},
    "tests": {"test_code": TESTS},
    "diagnosis": {
        "failures": [{"test_name": "test_one", "error_type": "logic", "suggested_fix": "f"}],
        "needs_language_packages": ["numpy"],
    },
    "verify_code": {"all_fixes_applied": False, "missing_fixes": ["f"]},
    "verify_tests": {"all_fixes_applied": False, "missing_fixes": ["f"]},
    "patch_tests": {"patches": [{"test_name": "test_one", "fixed_code": TESTS}]},
    "replace_package": {"replacement": "numpy"},
    "parse_constraint": {"column_name": "a", "check_type": "regex", "parameters": {"p": "a"}},
}
"""A good answer of each kind, whose fields are replaced one after the other."""


def _replaced(value: Any, other: Any) -> Iterator[Any]:
    """Yield a value with one of its leaves replaced, for each of them."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from ({**value, name: bad} for bad in _replaced(part, other))
    elif isinstance(value, list):
        yield from ([bad] for part in value for bad in _replaced(part, other))
    yield other


def _answers(kind: str) -> Iterator[tuple[str, str]]:
    """Hostile answers: alone, between fences, and in each field of an answer."""
    for at, (name, text) in enumerate(CODES.items()):
        if kind not in FIELDS:
            yield name, text
            continue
        fields = list(_replaced(FIELDS[kind], text))
        yield f"{name} in a field", json.dumps(fields[at % len(fields)])
    mark = "<<here>>"
    for name, text in JSON.items():
        yield f"JSON {name}", text
        yield f"JSON {name} between words", f"Here:\n{{\n{text}\n}}\n"
        for check in ("regex", "isin", "between"):
            for bad in _replaced(FIELDS.get(kind), mark):
                told = json.dumps(bad).replace(f'"{mark}"', text).replace('"regex"', f'"{check}"')
                yield f"JSON {name} in a field", told


@pytest.mark.slow
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.name)
def test_no_answer_breaks_its_reading(request_: r.ModelRequest) -> None:
    """Each is an event, so that nothing is lost after it was paid for."""
    rules = TOOLMAKER if type(request_).__module__ == q.__name__ else AUTOCODER
    failed = {}
    for name, text in _answers(request_.call.kind):
        try:
            event = rules.interpret(request_, Answer(text=texts.well_formed(text)))
            assert isinstance(event, e.Event)
        except Exception as error:  # noqa: BLE001 - all of them are listed
            failed[name] = repr(error)[:150]
    assert failed == {}


def test_every_request_of_a_model_is_tried() -> None:
    ours = {
        kind for kind in _below(r.ModelRequest) if kind.__module__.startswith("codetape.states")
    }
    assert ours == set(map(type, REQUESTS))
    assert FIELDS.keys() == SHAPES.keys()


def _below(home: type[Any]) -> Iterator[type[Any]]:
    for sub in home.__subclasses__():
        yield sub
        yield from _below(sub)
