"""Whole sessions through LiteLLM against a real server that speaks the provider's protocol.

Whatever the provider does is retried or reported as what it is, the tape holds what was paid, and
nothing hangs.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from codetape import AutoCoderAgent
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.states.values import FailureClass
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer
from tests.support.chat_sessions import KEY, check_tape, failures, generate, rejections
from tests.support.sessions import RIGHT


def test_structured_answers_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    result, server, _ = generate(monkeypatch, [Reply(RIGHT)])
    assert result.success
    check_tape(result, server, answered=3)
    assert all(request.body["response_format"] for request in server.requests)
    assert result.cost is not None
    assert result.cost > 0


def test_a_busy_provider_is_asked_again_when_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Reply({}, status=429, headers={"Retry-After": "7"})
    result, server, clock = generate(monkeypatch, [busy, Reply(RIGHT)])
    assert result.success
    assert failures(result) == ["rate_limited"]
    assert clock.waits == [7.0]
    check_tape(result, server, answered=3)


def test_b14_a_server_error_is_retried_by_one_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    result, server, clock = generate(monkeypatch, [Reply({}, status=500)] * 2 + [Reply(RIGHT)])
    assert result.success
    assert failures(result) == ["server_error", "server_error"]
    assert len(server.requests) == 5
    assert len(clock.waits) == 2
    check_tape(result, server, answered=3)


def test_a_cut_connection_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    result, server, _ = generate(monkeypatch, [Reply(RIGHT, cut="in_body"), Reply(RIGHT)])
    assert result.success
    assert failures(result) == ["connection"]
    check_tape(result, server, answered=3)


def test_a_slow_answer_is_late_and_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    generate(monkeypatch, [Reply(RIGHT)])  # the library is loaded before time counts
    started = time.monotonic()
    result, server, _ = generate(monkeypatch, [Reply(RIGHT, delay=60), Reply(RIGHT)], deadline=1.0)
    assert result.success
    assert failures(result) == ["timeout"]
    assert time.monotonic() - started < 50, "the slow answer was waited for"
    check_tape(result, server, answered=3)


def test_an_answer_that_is_no_json_is_repaired_once(monkeypatch: pytest.MonkeyPatch) -> None:
    result, server, _ = generate(monkeypatch, [Reply("Sure! Here you are."), Reply(RIGHT)])
    assert result.success
    assert rejections(result) == ["malformed"]
    asked = str(server.requests[2].body)
    assert "Here you are" in asked
    assert "cannot be used" in asked
    check_tape(result, server, answered=4)


def test_an_answer_that_is_cut_is_asked_for_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = Reply(RIGHT, finish_reason="length")
    result, server, _ = generate(monkeypatch, [cut, Reply(RIGHT)])
    assert result.success
    assert rejections(result) == ["truncated"]
    check_tape(result, server, answered=4)


def test_two_unusable_answers_end_the_session_as_the_models_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _, _ = generate(monkeypatch, [Reply("no"), Reply("no")])
    assert not result.success
    assert result.folded.ending is not None
    assert result.folded.ending.failure is FailureClass.MODEL


def test_a_refused_key_ends_the_session_and_names_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-9876543210")
    with ChatServer([], key=KEY) as server:
        agent = AutoCoderAgent(
            model="openai/gpt-4.1",
            api_base=server.base,
            sandbox=FakeSandbox(),
            store=MemoryStore(),
        )
        result = asyncio.run(agent.generate.aio("Write add(a, b)."))
    assert failures(result) == ["auth"]
    assert result.error is not None
    assert "sk-wrong" not in result.error
    assert len(server.requests) == 1
