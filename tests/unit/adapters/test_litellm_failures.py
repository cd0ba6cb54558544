"""LiteLLM against a server that breaks, stalls or vanishes."""

from __future__ import annotations

import asyncio
import time

import pytest

from codetape.adapters.llm.litellm import LiteLlm
from codetape.engine.ports import LlmError
from codetape.states.values import CallFailure, LlmCall
from tests.support.chat_calls import PLAIN, ask, failure_of, make
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer, refusal

# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "reason", "words"),
    [
        (refusal(429, "slow down"), "rate_limited", "slow down"),
        (refusal(500, "it broke"), "server_error", "it broke"),
        (refusal(529, "overloaded"), "server_error", "overloaded"),
        (refusal(408, "too slow"), "timeout", "too slow"),
        (refusal(400, "your mistake"), "bad_request", "your mistake"),
        (refusal(402, "pay first"), "bad_request", "pay first"),
        (refusal(403, "not you"), "auth", "not you"),
        (Reply("x", cut="at_once"), "connection", "hung up before it answered"),
        (Reply("x" * 99, cut="in_body"), "connection", "broke in the middle of an answer"),
        (Reply("xyz", finish_reason=None), "connection", "before a finish_reason"),
        (Reply("xyz", error={"message": "overloaded"}), "server_error", "overloaded"),
        (Reply("xyz", error={"message": "slow", "code": 429}), "rate_limited", "slow"),
        (Reply("xyz", error={"message": "too long", "code": 400}), "bad_request", "too long"),
        (Reply("x", headers={"Content-Encoding": "gzip"}), "connection", "decompressing"),
        (Reply(page="<html>log in"), "other", "text/html"),
        (Reply(page="<html>gone", status=404), "not_found", "is the address of the server right?"),
        (Reply(page="<html>bad gateway", status=502), "server_error", ""),
    ],
)
def test_each_failure_has_its_reason_and_is_asked_once(
    reply: Reply, reason: str, words: str
) -> None:
    with ChatServer([reply, Reply("later")]) as server:
        failure = failure_of(make(server))
    assert failure.reason == reason
    assert words in failure.message
    assert "litellm" not in failure.message.lower()
    assert len(server.requests) == 1


@pytest.mark.parametrize("wait", ["7", "7.0"])
def test_the_wait_that_a_provider_asks_for_is_passed_on(wait: str) -> None:
    with ChatServer([Reply(status=429, headers={"Retry-After": wait})]) as server:
        failure = failure_of(make(server))
    assert (failure.reason, failure.retryable, failure.retry_after) == ("rate_limited", True, 7.0)


def test_a_wait_until_a_date_counts_from_the_clock_of_the_server() -> None:
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))
    with ChatServer([Reply(status=503, headers={"Retry-After": later})]) as server:
        failure = failure_of(make(server))
    assert failure.retry_after is not None
    assert 50 < failure.retry_after <= 61


def test_an_answer_in_one_piece_need_not_say_that_it_is_json() -> None:
    whole = [Reply("text", whole=True, headers={"Content-Type": "text/plain"})] * 2
    with ChatServer(whole) as server:
        assert ask(server, PLAIN).text == "text"


def test_a_wrong_key_and_an_unknown_model() -> None:
    with ChatServer([Reply("x")], key="another") as server:
        assert failure_of(make(server)).reason == "auth"
    with ChatServer([Reply("x")], models=["gpt-4.1-mini"]) as server:
        failure = failure_of(make(server))
    assert (failure.reason, failure.retryable) == ("not_found", False)
    assert "gpt-4.1" in failure.message


def test_b15_an_input_that_is_too_long_is_final() -> None:
    with ChatServer([Reply("x")], context=20) as server:
        failure = failure_of(make(server))
    assert (failure.reason, failure.retryable) == ("bad_request", False)
    assert "maximum context length is 20 tokens" in failure.message
    assert len(server.requests) == 1


def test_a_server_that_is_not_there() -> None:
    with ChatServer() as server:
        llm = make(server)
    failure = failure_of(llm)
    assert (failure.reason, failure.retryable) == ("connection", True)
    assert "Connect call failed" in failure.message


def test_a_value_that_cannot_be_sent_is_no_reason_to_try_again() -> None:
    odd = PLAIN.model_copy(update={"parameters": {"stop": object()}})
    with ChatServer([Reply("x")]) as server:
        failure = failure_of(make(server), odd)
    assert (failure.reason, failure.retryable) == ("other", False)
    assert "serializable" in failure.message


# --- deadlines ------------------------------------------------------------------------------------


def timed_out(reply: Reply, call: LlmCall, **deadlines: float) -> tuple[CallFailure, float]:
    async def wait(llm: LiteLlm) -> tuple[CallFailure, float]:
        started = time.monotonic()
        with pytest.raises(LlmError) as caught:
            await llm.complete(call)
        took = time.monotonic() - started
        # While the event loop still runs: its end would close everything.
        assert await asyncio.to_thread(server.hung_up.wait, 5), "the connection is still open"
        return caught.value.failure, took

    with ChatServer([reply]) as server:
        failure, took = asyncio.run(wait(make(server, **deadlines)))
    assert (failure.reason, failure.retryable) == ("timeout", True)
    return failure, took


@pytest.mark.parametrize("reply", [Reply("late", delay=30), Reply("x" * 99, silent=True)])
@pytest.mark.parametrize(
    ("seconds", "timeout"), [(0.5, None), (30.0, 0.5), (0.5, 30.0)], ids=["call", "own", "both"]
)
def test_b16_a_call_ends_at_its_total_deadline(
    reply: Reply, seconds: float, timeout: float | None
) -> None:
    call = PLAIN.model_copy(update={"seconds": seconds})
    own = {} if timeout is None else {"timeout": timeout}
    failure, took = timed_out(reply, call, **own)
    assert took < 5
    assert failure.message == "gpt-4.1 has not answered within 0.5 s"


def test_b16_a_silent_stream_ends_at_the_idle_deadline() -> None:
    failure, took = timed_out(Reply("x" * 99, silent=True), PLAIN, idle_timeout=0.3)
    assert took < 5
    assert failure.message == "the stream has been silent for 0.3 s in the middle of an answer"


def test_a_model_may_think_longer_than_a_stream_may_be_silent() -> None:
    with ChatServer([Reply("thought", delay=0.6)]) as server:
        answer = asyncio.run(make(server, idle_timeout=0.3).complete(PLAIN))
    assert answer.text == "thought"


def test_cancelling_closes_the_connection() -> None:
    async def cancel(llm: LiteLlm) -> None:
        task = asyncio.create_task(llm.complete(PLAIN))
        await asyncio.to_thread(server.asked.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ChatServer([Reply("x", delay=30)]) as server:
        asyncio.run(cancel(make(server)))
        assert server.hung_up.wait(5)
