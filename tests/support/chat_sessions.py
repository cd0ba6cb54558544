"""Whole sessions of the auto-coder whose model is a chat server, for tests."""

from __future__ import annotations

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
from codetape.states.values import Answer, CallFailure
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer
from tests.support.sessions import PLAN, TESTS

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
    monkeypatch: pytest.MonkeyPatch,
    code: Sequence[Reply],
    *,
    deadline: float = 30.0,
    **options: Any,
) -> tuple[Result, ChatServer, Waiting]:
    """Run a session whose plan and tests are good and whose code is answered by `code`."""
    return converse(monkeypatch, [Reply(PLAN), *code, Reply(TESTS)], deadline=deadline, **options)


def converse(
    monkeypatch: pytest.MonkeyPatch,
    replies: Sequence[Reply],
    *,
    deadline: float = 30.0,
    **options: Any,
) -> tuple[Result, ChatServer, Waiting]:
    """Run a session in which the server answers with `replies`, in order."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    clock = Waiting()
    with ChatServer(replies, key=KEY) as server:
        defaults: dict[str, Any] = {
            "model": "openai/gpt-4.1",
            "llm": LiteLlm(api_base=server.base, timeout=deadline, idle_timeout=deadline),
            "sandbox": FakeSandbox(),
            "store": MemoryStore(),
            "clock": clock,
            "ids": FixedIds(),
        }
        return AutoCoderAgent(**(defaults | options)).generate("Write add(a, b)."), server, clock


def failures(result: Result) -> list[str]:
    """Why calls brought no answer, in order."""
    outcomes = (record.event.outcome for record in result.records)
    return [outcome.reason for outcome in outcomes if isinstance(outcome, CallFailure)]


def rejections(result: Result) -> list[str]:
    """Why answers could not be used, in order."""
    events: list[Any] = [record.event for record in result.records]
    return [event.reason for event in events if event.name == "answer_rejected"]


def answers(result: Result) -> list[Answer]:
    """Every answer that is on the tape."""
    outcomes = (record.event.outcome for record in result.records)
    return [outcome for outcome in outcomes if isinstance(outcome, Answer)]


def check_tape(result: Result, server: ChatServer, answered: int) -> None:
    """The tape holds every answer that was paid, no key, and replays as identical."""
    assert len(answers(result)) == answered
    assert result.total_input_tokens == sum(a.usage.input_tokens or 0 for a in answers(result))
    assert result.total_input_tokens > 0
    rows = [row.data for row in result.store.read(result.session)]
    assert not any(KEY in row for row in rows)
    assert server.left_over() == {}
    assert replay(result.store, result.session).identical
