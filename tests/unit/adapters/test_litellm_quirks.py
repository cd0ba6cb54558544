"""LiteLLM against models that refuse a part of the request."""

from __future__ import annotations

import asyncio

from codetape.adapters.llm.litellm import LiteLlm
from codetape.states.values import Answer
from tests.support.chat_calls import PLAIN, WITH_SCHEMA, ask, failure_of, make
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer, refusal

# --- models that refuse ---------------------------------------------------------------------------


def test_w42_b10_a_model_that_refuses_a_schema_gets_it_in_the_prompt_from_then_on() -> None:
    reply = Reply({"code": "x"}, refuse=("response_format",))
    with ChatServer([reply, reply]) as server:
        llm = make(server)
        first = asyncio.run(llm.complete(WITH_SCHEMA))
        second = asyncio.run(llm.complete(WITH_SCHEMA))
    note = "the JSON schema was sent in the prompt: the model refuses response_format"
    again = "asked 2 times: a request with a refused member is asked anew"
    assert (first.notes, second.notes) == ((note, again), (note,))
    refused, fallback, remembered = (request.body for request in server.requests)
    assert "response_format" in refused
    assert "response_format" not in fallback
    assert fallback == remembered
    assert '"additionalProperties": false' in fallback["messages"][0]["content"]
    assert '"additionalProperties": false' not in refused["messages"][0]["content"]


def test_b10_a_model_that_may_ignore_a_schema_gets_it_in_the_prompt_too() -> None:
    with ChatServer([Reply({"code": "x"})]) as server:
        answer = ask(server, WITH_SCHEMA.model_copy(update={"model": "openai/nobody-knows"}))
    (request,) = server.requests
    assert "response_format" in request.body
    assert '"additionalProperties": false' in request.body["messages"][0]["content"]
    assert answer.notes == (
        "the JSON schema was sent in the prompt too: the model may ignore it else",
    )


def test_b11_refused_parameters_are_left_out_or_renamed_one_by_one() -> None:
    call = WITH_SCHEMA.model_copy(update={"parameters": {"temperature": 0.2, "max_tokens": 50}})
    reply = Reply({"code": "x"}, refuse=("temperature", "max_tokens", "stream_options"))
    with ChatServer([reply]) as server:
        answer = ask(server, call)
    assert answer.text == '{"code": "x"}'
    assert answer.notes == (
        "temperature was left out: the model refuses it",
        "max_tokens was sent as max_completion_tokens: the model refuses max_tokens",
        "asked 4 times: a request with a refused member is asked anew",
    )
    last = server.requests[-1].body
    assert last["max_completion_tokens"] == 50
    assert not {"temperature", "max_tokens", "stream_options"} & last.keys()


def test_what_one_model_refuses_another_still_gets() -> None:
    call = PLAIN.model_copy(update={"parameters": {"temperature": 0.2}})
    other = call.model_copy(update={"model": "gpt-4.1-mini"})
    with ChatServer([Reply("1", refuse=("temperature",)), Reply("2")]) as server:
        llm = make(server)
        asyncio.run(llm.complete(call))
        assert asyncio.run(llm.complete(other)).notes == ()
    assert server.requests[-1].body["temperature"] == 0.2


def test_what_litellm_itself_refuses_is_left_out_too() -> None:
    call = PLAIN.model_copy(update={"model": "gpt-5", "parameters": {"temperature": 0.2}})
    with ChatServer([Reply("x")]) as server:
        answer = ask(server, call)
    assert "temperature was left out: the model refuses it" in answer.notes
    assert len(server.requests) == 1


def test_a_server_that_cannot_stream_is_asked_for_one_piece() -> None:
    reply = Reply("piece", whole=True)
    with ChatServer([reply, reply, reply]) as server:
        llm = make(server)
        first, second = (asyncio.run(llm.complete(PLAIN)) for _ in range(2))
    assert (first.text, second.text) == ("piece", "piece")
    assert [request.body.get("stream", False) for request in server.requests] == [
        True,
        False,
        False,
    ]
    assert "not streamed" in first.notes[0]


def test_what_is_refused_may_stand_in_the_code_of_an_error() -> None:
    words = "Your organization must be verified"
    no = refusal(400, words, param="stream", code="unsupported_value")
    with ChatServer([no, Reply("piece")]) as server:
        assert ask(server, PLAIN).text == "piece"
    assert "stream" not in server.requests[-1].body


def test_a_value_out_of_range_is_the_callers_own_mistake() -> None:
    words = "Invalid 'temperature': expected a value <= 2"
    with ChatServer([refusal(400, words, param="temperature"), Reply("x")]) as server:
        failure = failure_of(
            make(server), PLAIN.model_copy(update={"parameters": {"temperature": 9}})
        )
    assert (failure.reason, len(server.requests)) == ("bad_request", 1)


def test_calls_at_the_same_time_learn_the_same_lesson() -> None:
    async def together(llm: LiteLlm) -> list[Answer]:
        call = PLAIN.model_copy(update={"parameters": {"temperature": 0.2}})
        return await asyncio.gather(*(llm.complete(call) for _ in range(4)))

    with ChatServer([Reply("x", refuse=("temperature",))] * 4) as server:
        answers = asyncio.run(together(make(server)))
    assert [answer.text for answer in answers] == ["x"] * 4
