"""Calls to a chat server through the real adapter, for tests."""

from __future__ import annotations

import asyncio
import json
from functools import cache

import pytest
from pydantic import JsonValue

from codetape.adapters.llm.litellm import LiteLlm
from codetape.engine.ports import LlmError
from codetape.states.values import Answer, CallFailure, LlmCall, Message
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer

KEY = "sk-test-0123456789abcdef"
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"code": {"type": "string"}},
    "required": ["code"],
    "additionalProperties": False,
}
MESSAGES = (
    Message(role="system", parts=("You write code.",)),
    Message(role="user", parts=("Add two numbers.", "In Python.")),
)
PLAIN = LlmCall(kind="code", model="gpt-4.1", messages=MESSAGES, seconds=30)
WITH_SCHEMA = PLAIN.model_copy(update={"answer_schema": json.dumps(SCHEMA)})


def adapter(base: str, *, idle_timeout: float = 20.0, timeout: float | None = None) -> LiteLlm:
    """Return an adapter that sends KEY, the value of MY_KEY."""
    return LiteLlm(
        api_key_env="MY_KEY",
        api_base=base,
        timeout=timeout,
        idle_timeout=idle_timeout,
        getenv={"MY_KEY": KEY}.get,
    )


@cache
def warm_up() -> None:
    """Import LiteLLM, which takes seconds, and make its first call, which takes one: once."""
    with ChatServer([Reply("warm")]) as server:
        asyncio.run(adapter(server.base).complete(PLAIN))


def make(
    server: ChatServer, *, idle_timeout: float = 20.0, timeout: float | None = None
) -> LiteLlm:
    """Return an adapter for `server`, whose first call is as quick as any."""
    warm_up()
    return adapter(server.base, idle_timeout=idle_timeout, timeout=timeout)


def ask(server: ChatServer, call: LlmCall) -> Answer:
    return asyncio.run(make(server).complete(call))


def failure_of(llm: LiteLlm, call: LlmCall = PLAIN) -> CallFailure:
    with pytest.raises(LlmError) as caught:
        asyncio.run(asyncio.wait_for(llm.complete(call), 60))
    return caught.value.failure
