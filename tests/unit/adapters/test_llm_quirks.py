"""What a model refuses, and what it is sent instead."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from codetape.adapters.llm.quirks import (
    Quirks,
    Request,
    is_strict,
    messages,
    refused_member,
    response_format,
)
from codetape.states.values import LlmCall, Message

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"code": {"type": "string"}},
    "required": ["code"],
    "additionalProperties": False,
}
SENT: Request = {
    "temperature": 0.2,
    "max_tokens": 100,
    "response_format": {},
    "stream": True,
    "stream_options": {},
}


def call(*given: Message, schema: dict[str, JsonValue] | None = SCHEMA) -> LlmCall:
    text = None if schema is None else json.dumps(schema)
    return LlmCall(kind="code", model="m", messages=given, answer_schema=text)


# --- what an error is about -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "param", "name"),
    [
        ("Unsupported parameter: 'temperature' is not supported", "temperature", "temperature"),
        ("`temperature` is deprecated for this model.", None, "temperature"),
        ("gpt-5 doesn't support temperature=0.2. Only 1 is supported", None, "temperature"),
        ("m does not support parameters: ['response_format']", None, "response_format"),
        (
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            None,
            "max_tokens",
        ),
        ("temperature is not supported, max_tokens is", None, "temperature"),
        ("Invalid schema for response_format 'code'", "response_format", "response_format"),
        ("Invalid schema", "response_format.json_schema.schema", "response_format"),
        ("json_schema is wrong", None, "response_format"),
        ("Structured outputs are too new", None, "response_format"),
        ("Your organization must be verified to stream this; unsupported_value", None, "stream"),
        ("Streaming is not supported", None, "stream"),
        ("unknown field stream_options", None, "stream_options"),
        ("unexpected keyword top_k", None, None),
        ("temperature is above the maximum of 2", "temperature", None),
        ("max_tokens is too large: this model supports at most 50", "max_tokens", None),
        ("a long text: temperatures and my_stream are not supported", None, None),
        ("this model's maximum context length is 8 tokens", "messages", None),
        ("", None, None),
    ],
)
def test_only_a_refused_member_is_left_out(
    message: str, param: str | None, name: str | None
) -> None:
    assert refused_member(message, param, SENT) == name


def test_a_member_that_was_not_sent_is_not_refused() -> None:
    assert refused_member("temperature is not supported", "temperature", {"stream": True}) is None


# --- what is sent ---------------------------------------------------------------------------------


def test_a_new_model_is_sent_everything() -> None:
    assert Quirks().sent(SENT) == SENT
    assert Quirks().notes(SENT) == ()


def test_a_refused_member_is_left_out_and_noted() -> None:
    quirks = Quirks()
    quirks.learn("temperature")
    assert quirks.sent(SENT) == {name: SENT[name] for name in SENT if name != "temperature"}
    assert quirks.notes(SENT) == ("temperature was left out: the model refuses it",)
    assert quirks.notes({"stream": True}) == ()


def test_a_limit_is_sent_by_its_other_name_before_it_is_left_out() -> None:
    quirks = Quirks()
    quirks.learn("max_tokens")
    assert quirks.sent({"max_tokens": 9}) == {"max_completion_tokens": 9}
    assert quirks.notes({"max_tokens": 9}) == (
        "max_tokens was sent as max_completion_tokens: the model refuses max_tokens",
    )
    quirks.learn("max_completion_tokens")
    assert quirks.sent({"max_tokens": 9}) == {}
    assert quirks.notes({"max_tokens": 9}) == ("max_tokens was left out: the model refuses it",)


def test_two_limits_do_not_become_one() -> None:
    quirks = Quirks()
    quirks.learn("max_tokens")
    both: Request = {"max_completion_tokens": 5, "max_tokens": 9}
    assert quirks.sent(both) == {"max_completion_tokens": 5}


def test_without_a_stream_there_are_no_options_of_it() -> None:
    quirks = Quirks()
    quirks.learn("stream")
    assert quirks.sent(SENT).keys() == {"temperature", "max_tokens", "response_format"}
    assert [note for note in quirks.notes(SENT) if "stream_options" in note] == []


@given(st.lists(st.sampled_from(["max_completion_tokens", *SENT])))
def test_each_lesson_makes_the_request_smaller_or_renames_once(lessons: list[str]) -> None:
    quirks, seen = Quirks(), set()
    for name in lessons:
        sent = quirks.sent(SENT)
        assert name not in seen or name not in sent
        quirks.learn(name)
        seen.add(name)
        assert name not in quirks.sent(SENT)


# --- the schema -----------------------------------------------------------------------------------


def test_a_schema_is_sent_by_the_name_of_its_kind() -> None:
    asked = response_format(call())["response_format"]
    assert asked == {
        "type": "json_schema",
        "json_schema": {"name": "code", "schema": SCHEMA, "strict": True},
    }
    assert response_format(call(schema=None)) == {}


def test_a_schema_that_is_open_is_not_sent_as_strict() -> None:
    asked = response_format(call(schema={"type": "object"}))["response_format"]
    assert isinstance(asked, dict)
    assert asked["json_schema"] == {"name": "code", "schema": {"type": "object"}, "strict": False}


def test_a_name_holds_what_providers_allow() -> None:
    odd = call().model_copy(update={"kind": "tests of/ä" + "x" * 90})
    asked = response_format(odd)["response_format"]
    assert isinstance(asked, dict)
    assert isinstance(asked["json_schema"], dict)
    assert asked["json_schema"]["name"] == ("tests_of__" + "x" * 90)[:64]


def changed(**members: JsonValue) -> dict[str, JsonValue]:
    return {**SCHEMA, **members}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (SCHEMA, True),
        (changed(required=[]), False),
        (changed(required=None), False),
        (changed(additionalProperties=True), False),
        (changed(properties={"code": {"type": "string", "default": ""}}), False),
        (changed(properties={"code": {"anyOf": [{"type": "string"}, {"type": "null"}]}}), True),
        (changed(properties={"code": {"anyOf": [{"type": "string", "allOf": []}]}}), False),
        (changed(properties={"code": {"anyOf": None}}), False),
        (changed(properties={"code": {"type": "array", "items": SCHEMA}}), True),
        (changed(properties={"code": {"type": "array", "items": {"type": "object"}}}), False),
        ({**SCHEMA, "$defs": {"x": SCHEMA}}, True),
        ({**SCHEMA, "$defs": {"x": {"type": "object"}}}, False),
        ({**SCHEMA, "$defs": None}, False),
        (changed(properties={"code": True}), False),
        (changed(properties=None), False),
        (changed(properties={"code": {"$ref": "#/$defs/x"}}), True),
        ({"type": "array", "items": {"type": "string"}}, False),
        ({"anyOf": [SCHEMA]}, False),
        ({}, False),
    ],
)
def test_strict_mode_is_asked_for_where_the_schema_allows_it(
    schema: JsonValue, *, strict: bool
) -> None:
    assert is_strict(schema) is strict


SYSTEM = Message(role="system", parts=("first", "second"))
USER = Message(role="user", parts=("a question",))


def test_parts_are_joined_by_a_blank_line() -> None:
    assert messages(call(SYSTEM, USER), schema_in_prompt=False) == [
        {"role": "system", "content": "first\n\nsecond"},
        {"role": "user", "content": "a question"},
    ]


def test_a_schema_in_the_prompt_ends_the_system_message() -> None:
    system, user = messages(call(SYSTEM, USER), schema_in_prompt=True)
    before, _, schema = system["content"].rpartition("\n\n")
    assert before.startswith("first\n\nsecond\n\nAnswer with one JSON value")
    assert json.loads(schema) == SCHEMA
    assert user == {"role": "user", "content": "a question"}


def test_a_schema_in_the_prompt_makes_a_system_message() -> None:
    system, user = messages(call(USER), schema_in_prompt=True)
    assert system["role"] == "system"
    assert system["content"].startswith("Answer with one JSON value")
    assert user["content"] == "a question"


def test_no_schema_leaves_the_prompt_alone() -> None:
    plain = call(SYSTEM, USER, schema=None)
    assert messages(plain, schema_in_prompt=True) == messages(plain, schema_in_prompt=False)
