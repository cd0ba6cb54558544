"""A host that runs for long does not grow with every call."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest

from codetape.adapters.llm.litellm import LiteLlm
from codetape.engine.ports import LlmError
from tests.support.chat_calls import WITH_SCHEMA, make
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer, refusal

ROUNDS = 60  # of three calls
WARM = 15  # rounds until caches and pools have their size
GROWTH = 5 << 20  # bytes; the answers of a round are 120 KB, so keeping them would take 7 MB


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def rounds(llm: LiteLlm, count: int) -> None:
    for _ in range(count):
        await llm.complete(WITH_SCHEMA)
        await llm.complete(WITH_SCHEMA)
        with pytest.raises(LlmError):
            await llm.complete(WITH_SCHEMA)


async def growth(llm: LiteLlm, server: ChatServer) -> int:
    await rounds(llm, WARM)
    server.requests.clear()
    before = resident()
    await rounds(llm, ROUNDS)
    server.requests.clear()  # the server's own memory is not in question
    return resident() - before


@pytest.mark.slow
def test_b18_memory_does_not_grow_with_the_calls() -> None:
    turn = [Reply("x" * 60_000), Reply("y" * 60_000), refusal(500, "no")]
    with ChatServer(turn * (WARM + ROUNDS)) as server:
        assert asyncio.run(growth(make(server), server)) < GROWTH
