"""Whole sessions through LiteLLM against a real server that speaks the provider's protocol.

Whatever the provider does is retried or reported as what it is, the tape holds what was paid, and
nothing hangs.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from codetape import AutoCoderAgent
from codetape.adapters.llm.litellm import LiteLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock, FixedIds
from codetape.replay.replayer import replay
from codetape.result import Result
from codetape.states.values import Answer, CallFailure, FailureClass
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer
from tests.support.sessions import PLAN, RIGHT, TESTS

KEY = "sk-canary-0123456789"


class Waiting(FixedClock):
    """A fixed clock that keeps how long it was asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await super().sleep(seconds)


def generate(
    monkeypatch: pytest.MonkeyPatch, code: Sequence[Reply], *, deadline: float = 30.0
) -> tuple[Result, ChatServer, Waiting]:
    """Run a session whose plan and tests are good and whose code is answered by `code`."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    replies = deque([Reply(PLAN), *code, Reply(TESTS)])
    clock = Waiting()
    with ChatServer(list(replies), key=KEY) as server:
        llm = LiteLlm(api_base=server.base, timeout=deadline, idle_timeout=deadline)
        agent = AutoCoderAgent(
            model="openai/gpt-4.1",
            llm=llm,
            sandbox=FakeSandbox(),
            store=MemoryStore(),
            clock=clock,
            ids=FixedIds(),
        )
        return agent.generate("Write add(a, b)."), server, clock


def failures(result: Result) -> list[str]:
    outcomes = (record.event.outcome for record in result.records)
    return [outcome.reason for outcome in outcomes if isinstance(outcome, CallFailure)]


def rejections(result: Result) -> list[str]:
    events: list[Any] = [record.event for record in result.records]
    return [event.reason for event in events if event.name == "answer_rejected"]


def check_tape(result: Result, server: ChatServer, answered: int) -> None:
    """The tape holds every answer that was paid, no key, and replays as identical."""
    answers = [r.event.outcome for r in result.records if isinstance(r.event.outcome, Answer)]
    assert len(answers) == answered
    assert result.total_input_tokens == sum(a.usage.input_tokens or 0 for a in answers)
    assert result.total_input_tokens > 0
    rows = [row.data for row in result.store.read(result.session)]
    assert not any(KEY in row for row in rows)
    assert server.left_over() == {}
    assert replay(result.store, result.session).identical


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


def test_a_server_error_is_retried_by_one_owner(monkeypatch: pytest.MonkeyPatch) -> None:
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
