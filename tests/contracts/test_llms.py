"""Every model adapter keeps the contract: LiteLLM over a real socket, and the script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar

import pytest

from codetape.adapters.llm import litellm
from codetape.adapters.llm.litellm import LiteLlm
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.engine.ports import Llm
from codetape.states.values import Answer, CallFailure
from codetape.testing.llms import LlmContract, Silence, Turn
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer, refusal

STATUS = {
    "rate_limited": 429,
    "server_error": 503,
    "auth": 401,
    "not_found": 404,
    "bad_request": 400,
}


@pytest.fixture(autouse=True, scope="module")
def _import_once() -> None:
    litellm.load()  # takes seconds, that no deadline of a test should pay for


class TestScriptedLlm(LlmContract):
    gaps: ClassVar[dict[str, str]] = {
        "test_cancelling_the_task_ends_the_call": "a script answers at once: there is no waiting",
    }

    @contextmanager
    def serving(self, *turns: Turn) -> Iterator[Llm]:
        answers = [turn for turn in turns if not isinstance(turn, Silence)]
        yield ScriptedLlm({"tests": answers, "plan": answers})


class TestLiteLlm(LlmContract):
    """A stream, as it is asked for."""

    @contextmanager
    def serving(self, *turns: Turn) -> Iterator[Llm]:
        with ChatServer([self.reply(turn) for turn in turns]) as server:
            yield LiteLlm(api_base=server.base, api_key_env="KEY", getenv={"KEY": "secret"}.get)

    def reply(self, turn: Turn) -> Reply:
        if isinstance(turn, Silence):
            return Reply("{}", silent=True)
        if isinstance(turn, CallFailure):
            return failing(turn)
        return answering(turn)


class TestLiteLlmWithoutStreams(TestLiteLlm):
    """The same where the server answers in one piece, whatever it is asked for."""

    gaps: ClassVar[dict[str, str]] = {}

    @contextmanager
    def serving(self, *turns: Turn) -> Iterator[Llm]:
        replies = [self.reply(turn) for turn in turns]
        with ChatServer([refusing_streams(reply) for reply in replies]) as server:
            yield LiteLlm(api_base=server.base, api_key_env="KEY", getenv={"KEY": "secret"}.get)


def answering(answer: Answer) -> Reply:
    asked, answered = answer.usage.input_tokens, answer.usage.output_tokens
    return Reply(
        answer.text,
        finish_reason=answer.finish_reason,
        model=answer.model,
        usage=False if asked is None or answered is None else (asked, answered),
    )


def failing(failure: CallFailure) -> Reply:
    if failure.reason == "connection":
        return Reply("half an answer", cut="in_body")
    wait = {} if failure.retry_after is None else {"Retry-After": f"{failure.retry_after:g}"}
    return replace(refusal(STATUS[failure.reason], failure.message), headers=wait)


def refusing_streams(reply: Reply) -> Reply:
    return replace(reply, refuse=("stream",))
