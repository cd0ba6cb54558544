"""From an answer or an outcome to its event: what can be used, and what is refused for which reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.answers import SHAPES, PlanShape, Unusable, read, schema_text
from codetape.states.reading import interpret
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    ImageRef,
    ImageSpec,
    LlmCall,
    Outcome,
    RunOutcome,
    SandboxFailure,
)
from codetape.testing.answering import unusable_answer
from codetape.testing.chance import Chance
from codetape.testing.strategies import chances
from tests.unit.states.driving import RIGHT, TESTS, answer, patch, patches

SOURCE = "from solution import add\n\n\ndef test_a():\n    assert add(1, 2) == 3\n"


def call(kind: str) -> LlmCall:
    return LlmCall(kind=kind, model="m", messages=())


PLAN = r.WritePlan(call=call("plan"))
CODE = r.WriteCode(call=call("code"))
WRITE_TESTS = r.WriteTests(call=call("tests"))
PATCH = r.PatchTests(call=call("patch_tests"), source=SOURCE, failing=("test_a",))
DIAGNOSE = r.Diagnose(call=call("diagnosis"), failures=())
VERIFY = r.VerifyCode(call=call("verify_code"), fixes=("one", "two"))
REPLACE = r.ReplacePackage(call=call("replace_package"), rejected="nosuch", system=False)
SPEC = ImageSpec(
    base="b", requirements=("foo==9", "bar"), system_packages=("curl",), commands=("x",)
)
BUILD = r.BuildImage(spec=SPEC, seconds=9)
CHECK = r.CheckSandbox(spec=SPEC, seconds=9)


def written(body: object, **facts: Any) -> e.CodeWritten:
    event = interpret(CODE, answer(body, **facts))
    assert isinstance(event, e.CodeWritten), event
    return event


def rejected(request: r.ModelRequest, body: object, **facts: Any) -> e.AnswerRejected:
    said = answer(body, **facts)
    event = interpret(request, said)
    assert isinstance(event, e.AnswerRejected), event
    assert (event.kind, event.answer) == (request.call.kind, said)
    return event


# --- the frame ------------------------------------------------------------------------------------


def test_the_finish_reason_is_looked_at_before_the_text() -> None:
    assert rejected(CODE, RIGHT, finish_reason="length").reason == "truncated"
    assert rejected(CODE, RIGHT, finish_reason="content_filter").reason == "refused"
    assert rejected(CODE, RIGHT, text=None, finish_reason="length").reason == "truncated"
    whole = "```python\ndef add(a, b):\n    return a + b\n```"  # of a file that went on
    assert rejected(CODE, {}, text=whole, finish_reason="length").reason == "truncated"


@pytest.mark.parametrize("text", [None, "", " \n\t", "<think>Hm.</think>\n"])
def test_an_answer_without_text_is_empty(text: str | None) -> None:
    assert rejected(PLAN, {}, text=text).reason == "empty"


def test_a_refusal_in_words_is_one() -> None:
    why = rejected(PLAN, {}, text=None, notes=("asked twice", "the model refused: no malware"))
    assert (why.reason, why.detail) == ("refused", "the model refused: no malware")


def test_thoughts_without_an_end_were_cut() -> None:
    assert rejected(PLAN, f"<think>\n{PLANNED}").reason == "truncated"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"description": "a", "approach": ', "malformed"),
        ('```json\n{"description": "a"', "truncated"),  # a fence that nothing closes was cut
        ("[]", "invalid"),
        ("null", "invalid"),
        ("12", "invalid"),
        ('{"description": "a"}', "invalid"),
        ('{"description": 1, "approach": "b"}', "invalid"),
        ("[" * 100_000, "malformed"),
        ('Two:\n{"description": "a"}, {"approach": "b"}', "malformed"),
        ('{"steps": [{"description": "a", "approach": "b"}, {"desc', "malformed"),
    ],
)
def test_what_is_not_the_shape_says_what_is_wrong(text: str, reason: str) -> None:
    assert rejected(PLAN, text).reason == reason


def test_plain_words_are_a_plan() -> None:
    event = interpret(PLAN, answer({}, text="Read the file, count its words.\n"))
    assert isinstance(event, e.Planned)
    assert (event.description, event.approach) == ("Read the file, count its words.", "")
    assert rejected(DIAGNOSE, {}, text="The code is wrong.").reason == "malformed"


def test_an_invalid_field_is_named() -> None:
    assert "approach" in rejected(PLAN, '{"description": "a"}').detail


PLANNED = '{"description": "a\\nb", "approach": "c"}'


@pytest.mark.parametrize(
    "text",
    [
        PLANNED,
        f"\n {PLANNED} \n",
        f"```json\n{PLANNED}\n```",
        f"```\n{PLANNED}\n```",
        f"Here is the plan:\n\n~~~json\n{PLANNED}\n~~~\nGood luck.",
        f'```json\n{{"a": 1}}\n```\nNo, this:\n```json\n{PLANNED}\n```',
        '{"description": "a\nb", "approach": "c", "more": [1]}',  # a bare line end, a field too many
        f"Here is the plan:\n{PLANNED}\nIt holds {{all}} that is needed.",
        f"<think>\nPerhaps:\n```json\n{{}}\n\nNo.\n</think>\n\n{PLANNED}",
        f"Perhaps:\n{{}}\nNo.\n</think>\n{PLANNED}",
        PLANNED.replace("}", ', "more": "</think>"}'),
        f"In a line: {PLANNED}",
        f"<answer>{PLANNED}</answer>",
    ],
)
def test_json_is_found_in_what_models_put_around_it(text: str) -> None:
    event = interpret(PLAN, answer(text))
    assert isinstance(event, e.Planned), event
    assert (event.description, event.approach) == ("a\nb", "c")


@pytest.mark.parametrize("kind", SHAPES)
def test_every_schema_is_an_object_and_the_same_to_the_byte(kind: str) -> None:
    assert '"type": "object"' in schema_text(kind)
    assert schema_text(kind) == schema_text(kind)


@given(chances())
def test_no_unusable_answer_raises_or_is_used(chance: Chance) -> None:
    request = chance.one([PLAN, CODE, WRITE_TESTS, PATCH, DIAGNOSE])
    said = unusable_answer(chance, request)
    event = interpret(request, said)
    if isinstance(event, e.Planned):  # plain words are a plan
        assert event.description == (said.text or "").strip()
    else:
        assert isinstance(event, e.AnswerRejected | e.PatchRefused)


# --- code -----------------------------------------------------------------------------------------


def test_code_brings_its_imports_and_what_it_lists_in_one_form() -> None:
    body = {
        "code": "```python\nimport yaml\nimport os\nfrom solution import x\n```",
        "packages": ["Pandas>=2", "pandas", "sklearn"],
        "system_packages": ["libgl1", "curl", "curl"],
    }
    event = written(body)
    assert event.source == "import yaml\nimport os\nfrom solution import x\n"
    assert event.packages == ("pandas>=2", "pyyaml", "scikit-learn")
    assert event.system_packages == ("curl", "libgl1")


@pytest.mark.parametrize(
    "language", ["python", "Python", " py", "python3", "Python 3.12", "python-3.11", ""]
)
def test_python_has_many_names(language: str) -> None:
    assert written({**RIGHT, "language": language}).source == RIGHT["code"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"code": "def add(:"}, "code: it does not parse, line 1"),
        ({"code": " \n"}, "there is no code"),
        ({"code": "```\n\n```"}, "there is no code"),
        ({**RIGHT, "language": "rust"}, "language: 'rust' is not python"),
        ({**RIGHT, "language": "pythonic"}, "is not python"),
        ({**RIGHT, "packages": ["pandas; id"]}, "packages: 'pandas; id' is no package name"),
        ({**RIGHT, "packages": "pandas"}, "packages: "),
        ({**RIGHT, "system_packages": ["-y"]}, "system_packages: '-y' is no system package"),
        ({"code": None}, "code: "),
    ],
)
def test_code_that_cannot_be_used_is_never_built(body: dict[str, Any], words: str) -> None:
    event = rejected(CODE, body)
    assert words in event.detail
    assert event.reason in {"invalid", "empty"}


def test_null_lists_are_empty() -> None:
    assert written({**RIGHT, "packages": None, "system_packages": None}).packages == ()


@pytest.mark.parametrize(
    "text",
    ["def add(a, b):\n    return a + b", "Sure:\n```python\ndef add(a, b):\n    return a + b\n```"],
)
def test_code_without_its_json_is_code(text: str) -> None:
    assert written(text).source == RIGHT["code"]


@pytest.mark.parametrize("text", ["Sure.", "{'code'}", "None\nDone"])
def test_words_that_happen_to_parse_are_no_code(text: str) -> None:
    assert rejected(CODE, text).reason == "malformed"


# --- tests and patches ----------------------------------------------------------------------------


def test_a_test_file_has_tests() -> None:
    event = interpret(WRITE_TESTS, answer({"test_code": f"```\nimport yaml\n{SOURCE}\n```"}))
    assert isinstance(event, e.TestsWritten)
    assert event.packages == ("pyyaml",)
    assert "no test" in rejected(WRITE_TESTS, {"test_code": "def helper():\n    pass"}).detail
    assert "parse" in rejected(WRITE_TESTS, {"test_code": "def test_a(:"}).detail


def test_an_object_in_code_is_no_answer_around_it() -> None:
    source = 'def add(a, b):\n    return {"code": "E1"}\n'
    assert written(source).source == source


def test_a_test_that_another_one_hides_would_look_as_if_it_had_passed() -> None:
    twice = "def test_a():\n    assert 1 == 2\n\n\ndef test_a():\n    assert 1 == 1\n"
    assert "test_a twice" in rejected(WRITE_TESTS, {"test_code": twice}).detail


def test_a_test_file_without_its_json_is_one() -> None:
    event = interpret(WRITE_TESTS, answer(f"```python\n{TESTS['test_code']}```"))
    assert isinstance(event, e.TestsWritten)
    assert event.source == TESTS["test_code"]
    assert rejected(WRITE_TESTS, "def helper():\n    pass").reason == "malformed"


def test_patches_tell_what_they_did() -> None:
    request = PATCH.model_copy(update={"failing": ("test_a", "test_b[1]")})
    said = patches(patch("test_a", "assert add(1, 2) == 4"), patch("test_c", "assert 1 == 2"))
    event = interpret(request, answer(said))
    assert isinstance(event, e.TestsPatched)
    assert (event.patched, event.unpatched) == (("test_a",), ("test_b",))
    assert event.refused == ("test_c: this test did not fail",)
    assert "assert add(1, 2) == 4" in event.source


@pytest.mark.parametrize(
    "them", [[], [patch("test_a", "pass")], [patch("test_b", "assert 1 == 2")]]
)
def test_a_patch_of_nothing_is_refused(them: list[Any]) -> None:
    event = interpret(PATCH, answer(patches(*them)))
    assert isinstance(event, e.PatchRefused)
    assert event.reasons


# --- verifications, replacements, diagnoses -------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ({"all_fixes_applied": True}, ()),
        ({"all_fixes_applied": True, "missing_fixes": ["one"]}, ()),
        ({"all_fixes_applied": False, "missing_fixes": ["two"]}, ("two",)),
        ({"all_fixes_applied": False}, ("one", "two")),  # not all, and it does not say which
    ],
)
def test_a_verification_says_what_is_missing(
    body: dict[str, Any], missing: tuple[str, ...]
) -> None:
    event = interpret(VERIFY, answer(body))
    assert isinstance(event, e.FixesVerified)
    assert (event.missing, event.unread) == (missing, "")


def test_a_verification_that_cannot_be_read_says_so_and_no_more() -> None:
    event = interpret(VERIFY, answer("perhaps"))
    assert isinstance(event, e.FixesVerified)
    assert event.missing == ()
    assert event.unread.startswith("malformed")


@pytest.mark.parametrize(
    ("body", "replacement", "unread"),
    [
        ({"replacement": "Other>=1"}, "other>=1", False),
        ({"replacement": None}, None, False),
        ({"replacement": " "}, None, False),
        ({}, None, False),
        ({"replacement": "rm -rf /"}, None, True),
        ("none", None, True),
    ],
)
def test_a_replacement_is_a_name_or_none(body: Any, replacement: str | None, unread: bool) -> None:
    event = interpret(REPLACE, answer(body))
    assert isinstance(event, e.PackageReplaced)
    assert (event.rejected, event.replacement, bool(event.unread)) == (
        "nosuch",
        replacement,
        unread,
    )


def test_a_diagnosis_has_labels_that_exist_and_may_lack_words() -> None:
    lost = {"test_name": "test_a", "error_type": "weather"}
    assert "error_type" in rejected(DIAGNOSE, {"failures": [lost]}).detail
    said = {"test_name": "test_a", "error_type": "logic", "suggested_fix": None}
    assert isinstance(interpret(DIAGNOSE, answer({"failures": [said]})), e.Diagnosed)


# --- builds and what fits ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "named", "found"),
    [
        ("unknown_package", ("foo",), ("foo==9",)),
        ("unknown_package", ("foo==9",), ("foo==9",)),
        ("unknown_package", ("bar", "foo", "bar"), ("bar", "foo==9")),
        ("unknown_system_package", ("curl",), ("curl",)),
        ("command", ("x",), ("x",)),
    ],
)
def test_what_does_not_exist_is_named_as_it_was_asked_for(
    cause: Any, named: tuple[str, ...], found: tuple[str, ...]
) -> None:
    failure = BuildFailure(cause=cause, message="no", packages=named)
    event = interpret(BUILD, failure)
    assert isinstance(event, e.PackageRejected)
    assert event.failure.packages == found


@pytest.mark.parametrize(
    ("cause", "named"),
    [
        ("unknown_package", ()),
        ("unknown_package", ("other",)),  # something that those packages need
        ("unknown_package", ("curl",)),
        ("unknown_system_package", ("x",)),
        ("command", ("curl",)),
        ("conflict", ("bar",)),
        ("download", ("bar",)),
        ("timeout", ()),
    ],
)
def test_any_other_build_without_an_image_has_failed(cause: Any, named: tuple[str, ...]) -> None:
    failure = BuildFailure(cause=cause, message="no", packages=named)
    assert interpret(BUILD, failure) == e.BuildFailed(failure=failure)


def test_a_check_without_an_image_is_a_missing_sandbox() -> None:
    event = interpret(CHECK, BuildFailure(cause="other", message="no podman"))
    assert isinstance(event, e.SandboxBroke)
    assert event.failure == SandboxFailure(message="no podman", missing=True)


IMAGE = ImageRef(ref="i", spec_key="k")


@pytest.mark.parametrize(
    ("request_", "outcome", "kind"),
    [
        (CHECK, IMAGE, e.SandboxReady),
        (BUILD, IMAGE, e.ImageBuilt),
        (BUILD, SandboxFailure(message="gone"), e.SandboxBroke),
        (CODE, CallFailure(reason="auth", message="no"), e.CallFailed),
    ],
)
def test_every_outcome_has_its_event(
    request_: r.Request, outcome: Outcome, kind: type[e.Event]
) -> None:
    event = interpret(request_, outcome)
    assert isinstance(event, kind)
    assert event.outcome == outcome


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [(CODE, IMAGE), (BUILD, Answer(text="x")), (CHECK, RunOutcome()), (PLAN, RunOutcome())],
)
def test_an_outcome_of_another_request_is_a_bug(request_: r.Request, outcome: Outcome) -> None:
    with pytest.raises(TypeError, match=f"{request_.name} has no outcome {type(outcome).__name__}"):
        interpret(request_, outcome)


@pytest.mark.parametrize("text", ["[1]", '"words"', "7", "null", "true"])
def test_json_that_is_no_object_is_said_in_words_of_ours(text: str) -> None:
    with pytest.raises(Unusable, match=r"answer: it is no JSON object$"):
        read(Answer(text=text), PlanShape)
