"""LiteLLM over a real socket: what is sent, what comes back, what it costs."""

from __future__ import annotations

import os

import pytest
from pydantic import JsonValue

from codetape.adapters.llm import litellm
from codetape.adapters.llm.litellm import price
from codetape.states.job import Price
from codetape.states.values import Answer, Usage
from tests.support.chat_calls import KEY, PLAIN, SCHEMA, WITH_SCHEMA, ask, failure_of, make
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer

# --- what is sent ---------------------------------------------------------------------------------


def test_a_request_carries_what_the_call_says() -> None:
    call = WITH_SCHEMA.model_copy(update={"parameters": {"temperature": 0.2, "max_tokens": 50}})
    with ChatServer([Reply({"code": "x"})]) as server:
        assert ask(server, call).notes == ()
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "You write code."},
            {"role": "user", "content": "Add two numbers.\n\nIn Python."},
        ],
        "temperature": 0.2,
        "max_tokens": 50,
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "code", "schema": SCHEMA, "strict": True},
        },
    }


def test_parameters_of_a_call_change_neither_key_nor_address_nor_retries() -> None:
    parameters: dict[str, JsonValue] = {
        "api_key": "other",
        "api_base": "http://127.0.0.1:9",
        "model": "other",
        "num_retries": 3,
        "max_retries": 3,
        "fallbacks": ["gpt-4o"],
        "stream": False,
        "extra_headers": {"x-mine": "yes"},
    }
    replies = [Reply(status=500, error={"message": "down"}), Reply("later")]
    with ChatServer(replies) as server:
        failure = failure_of(make(server), PLAIN.model_copy(update={"parameters": parameters}))
    assert failure.reason == "server_error"
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-mine"] == "yes"
    assert (request.body["model"], request.body["stream"]) == ("gpt-4.1", True)


def test_no_connection_is_kept() -> None:
    with ChatServer([Reply("1"), Reply("2")]) as server:
        ask(server, PLAIN)
    assert server.requests[0].headers["connection"] == "close"


def test_x02_nothing_is_set_for_the_whole_process() -> None:
    module = litellm.load()
    with ChatServer([Reply("x")]) as server:
        ask(server, PLAIN)
    assert (module.api_key, module.api_base, module.openai_key) == (None, None, None)
    assert module.drop_params is False
    assert KEY not in os.environ.values()


# --- what comes back ------------------------------------------------------------------------------


def test_an_answer_has_tokens_cost_model_and_request_id() -> None:
    with ChatServer([Reply({"code": "x"}, model="gpt-4.1-2025", usage=(1000, 100))]) as server:
        answer = ask(server, WITH_SCHEMA)
    assert answer == Answer(
        text='{"code": "x"}',
        finish_reason="stop",
        usage=Usage(input_tokens=1000, output_tokens=100),
        cost=0.0028,  # 1000 at 2 dollars and 100 at 8 dollars per million,
        model="gpt-4.1-2025",
        request_id="req_1",
    )


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("choices", ["none", "null_message"])
def test_b9_an_answer_without_a_message_is_an_answer_without_text(
    choices: str, *, whole: bool
) -> None:
    reply = Reply(choices=choices, finish_reason="content_filter", refuse=("stream",) * whole)  # type: ignore[arg-type]
    with ChatServer([reply]) as server:
        answer = ask(server, PLAIN)
    assert answer.text is None
    # Neither what was never sent nor what LiteLLM trips over has a reason.
    known = choices == "null_message" and not whole
    assert answer.finish_reason == ("content_filter" if known else None)


@pytest.mark.parametrize("whole", [False, True])
def test_b2_hidden_thoughts_that_used_up_the_limit(*, whole: bool) -> None:
    reply = Reply(None, finish_reason="length", refuse=("stream",) * whole)
    with ChatServer([reply]) as server:
        answer = ask(server, PLAIN)
    assert (answer.text, answer.finish_reason) == (None, "length")


@pytest.mark.parametrize("whole", [False, True])
def test_a_refusal_is_noted_in_its_words(*, whole: bool) -> None:
    reply = Reply(None, refusal="I will not.", refuse=("stream",) * whole)
    with ChatServer([reply]) as server:
        answer = ask(server, PLAIN)
    assert answer.text is None
    assert answer.notes[-1] == "the model refused: I will not."


def test_a_text_that_is_no_json_is_for_others_to_judge() -> None:
    with ChatServer([Reply("Sure! Here is")]) as server:
        answer = ask(server, WITH_SCHEMA)
    assert (answer.text, answer.finish_reason) == ("Sure! Here is", "stop")


@pytest.mark.parametrize("usage", [(0, 0), False])
@pytest.mark.parametrize("whole", [False, True])
def test_tokens_that_the_provider_did_not_count_are_not_counted_here(
    usage: bool | tuple[int, int], *, whole: bool
) -> None:
    with ChatServer([Reply("text", usage=usage, refuse=("stream",) * whole)]) as server:
        answer = ask(server, PLAIN)
    assert answer.text == "text"
    assert (answer.usage.output_tokens or None, answer.cost or None) == (None, None)


# --- what it costs --------------------------------------------------------------------------------


def test_b12_a_price_that_is_not_listed_is_unknown_and_not_zero() -> None:
    module = litellm.load()
    unpriced = "twelvelabs.pegasus-1-2-v1:0"
    assert module.get_model_info(unpriced)["input_cost_per_token"] == 0  # what LiteLLM says
    assert price(unpriced) is None
    assert price("openai/nobody-knows") is None
    assert price("gpt-4.1") == Price(input=2e-6, output=8e-6, output_limit=32768)
    assert price("ollama/llama3") == Price(input=0.0, output=0.0, output_limit=8192)


def test_an_answer_of_unknown_price_has_no_cost() -> None:
    with ChatServer([Reply("x")]) as server:
        answer = ask(server, PLAIN.model_copy(update={"model": "openai/nobody-knows"}))
    assert answer.usage.input_tokens is not None
    assert answer.cost is None


@pytest.mark.parametrize(
    "prices",
    [
        {"input_cost_per_token": "a lot", "output_cost_per_token": 1.0},
        {
            "input_cost_per_token": 1.0,
            "output_cost_per_token": 1.0,
            "input_cost_per_token_above_128k_tokens": "a lot",
        },
    ],
    ids=["listed", "computed"],
)
def test_b13_an_answer_outlives_a_price_list_that_raises(
    prices: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"litellm_provider": "openai", "mode": "chat", **prices}
    monkeypatch.setitem(litellm.load().model_cost, "openai/oddly-priced", entry)
    with ChatServer([Reply("paid", usage=(200_000, 1))]) as server:
        answer = ask(server, PLAIN.model_copy(update={"model": "openai/oddly-priced"}))
    assert (answer.text, answer.cost) == ("paid", None)
