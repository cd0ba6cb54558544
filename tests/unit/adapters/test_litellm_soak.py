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

WARM = 20  # rounds of three calls until caches and pools have their size
GROWTH = 1 << 20  # bytes; keeping the answers would take 5 MB or more


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def rounds(llm: LiteLlm, server: ChatServer, count: int) -> None:
    for _ in range(count):
        await llm.complete(WITH_SCHEMA)
        await llm.complete(WITH_SCHEMA)
        with pytest.raises(LlmError):
            await llm.complete(WITH_SCHEMA)
        server.requests.clear()  # the server's own memory is not in question


async def growth(llm: LiteLlm, server: ChatServer, count: int) -> int:
    await rounds(llm, server, WARM)
    before = resident()
    await rounds(llm, server, count)
    return resident() - before


@pytest.mark.slow
@pytest.mark.timeout(600)  # the machine may be busy
@pytest.mark.parametrize(("characters", "count"), [(60_000, 60), (6_000, 400)])
def test_b18_memory_does_not_grow_with_the_calls(characters: int, count: int) -> None:
    turn = [Reply("x" * characters), Reply("y" * characters), refusal(500, "no")]
    with ChatServer(turn * (WARM + count)) as server:
        assert asyncio.run(growth(make(server), server, count)) < GROWTH
