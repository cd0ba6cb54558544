"""What the strategies draw: each kind is what its name says, and shrinks to what a person reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from codetape import testing
from codetape.engine.boundary import Boundary
from codetape.replay.reading import Tape
from codetape.replay.replayer import replay
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.values import Answer, Message
from codetape.states.workflow import AUTOCODER
from codetape.testing.chance import Chance, deviations
from codetape.testing.playing import played
from codetape.testing.schemas import by_schema
from tests.support.sessions import JOB

CODE = r.WriteCode.model_validate(
    {"call": {"kind": "code", "model": "m", "messages": (Message(role="user", parts=("Add.",)),)}}
)


def read(answer: Answer) -> e.Event:
    return AUTOCODER.interpret(CODE, Boundary().clean(answer))


@given(testing.good_answers(CODE))
def test_good_answers_can_be_read(answer: Answer) -> None:
    assert isinstance(read(answer), e.CodeWritten)


@given(testing.truncated_answers(CODE) | testing.malformed_answers(CODE))
def test_truncated_and_malformed_answers_cannot(answer: Answer) -> None:
    assert isinstance(read(answer), e.AnswerRejected)


@given(testing.hostile_answers(CODE))
def test_hostile_answers_are_read_without_harm(answer: Answer) -> None:
    assert read(answer).outcome == Boundary().clean(answer)


@settings(max_examples=30)
@given(testing.event_sequences())
def test_sequences_of_events_are_accepted(events: tuple[e.Event, ...]) -> None:
    session = AUTOCODER.blank("s")
    for event in events:
        session = AUTOCODER.advance(session, event)
    assert session.seq == len(events)


@settings(max_examples=30)
@given(testing.tapes())
def test_tapes_replay(tape: Tape) -> None:
    report = replay(tape.source, tape.id)
    assert report.identical
    assert report.events == len(tape) > 1


@settings(max_examples=30)
@given(testing.scripts())
def test_scripts_are_what_models_said(script: dict[str, list[Answer]]) -> None:
    assert all(answers for answers in script.values())
    assert script.keys() <= {"plan", "parse_constraint", "code", "tests", "diagnosis"} | {
        *("patch_tests", "verify_code", "verify_tests", "replace_package")
    }


def test_a_failing_session_shrinks_to_what_matters() -> None:
    """The shortest session that is stuck: no constraint, no trouble, one kind of failure."""
    trace = find(testing.traces(), lambda t: any(isinstance(s.event, e.TestsFailed) for s in t))
    names = [step.event.name for step in trace]
    assert len(names) < 25
    assert "answer_rejected" not in names
    assert "call_failed" not in names


def test_one_seed_is_one_session() -> None:
    one, other = (played(testing.seeded("a seed"), JOB) for _ in range(2))
    assert one == other
    assert one != played(testing.seeded("another seed"), JOB)


def test_deviations_change_one_choice_and_then_two() -> None:
    def make(chance: Chance) -> str:
        return "".join(chance.one(letters) for letters in ("abc", "xy"))

    made = [text for _, text in deviations(make, most=99)]
    assert made == ["ax", "bx", "cx", "ay", "by", "cy"]
    assert [text for _, text in deviations(make, most=99, changed=1)] == ["ax", "bx", "cx", "ay"]


SCHEMA = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "how": {"enum": ["well", "badly"]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
        "n": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
    },
    "$defs": {"Part": {"type": "object", "properties": {"name": {"type": "string"}}}},
}


def test_the_first_value_of_a_schema() -> None:
    value = by_schema(Chance(()), json.dumps(SCHEMA))
    assert value == {"ok": True, "how": "well", "parts": [{"name": "words"}], "n": None}


@given(st.binary(max_size=12))
def test_values_of_a_schema_have_its_fields(data: bytes) -> None:
    value = by_schema(Chance(data), json.dumps(SCHEMA))
    assert value.keys() == SCHEMA["properties"].keys()  # type: ignore[attr-defined]
    assert value["how"] in ("well", "badly")


def test_public_names_are_there() -> None:
    for name in testing.__all__:
        assert getattr(testing, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = testing.nothing
