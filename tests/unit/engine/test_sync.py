"""The synchronous face: in a script, in a notebook, and when somebody interrupts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from codetape.both import both
from codetape.engine.sync import run_sync


class Adder:
    """Something with two faces."""

    @both
    async def add(self, a: int, /, b: int = 1) -> int:
        """Add."""
        await asyncio.sleep(0)
        return a + b


def test_a_two_faced_method_waits_or_is_awaited() -> None:
    assert Adder().add(1, b=2) == 3
    assert asyncio.run(Adder().add.aio(1)) == 2
    assert Adder.add.__doc__ == "Add."


def test_it_works_where_a_loop_is_running() -> None:
    async def notebook() -> int:
        return Adder().add(2, b=2)

    assert asyncio.run(notebook()) == 4


def test_an_exception_comes_out_as_it_is() -> None:
    async def fail() -> None:
        raise KeyError("x")

    async def notebook() -> None:
        run_sync(fail())

    with pytest.raises(KeyError) as raised:
        run_sync(fail())
    assert raised.value.__context__ is None, "a traceback tells of this error alone"
    with pytest.raises(KeyError):
        asyncio.run(notebook())


def test_what_is_left_in_the_loop_is_closed() -> None:
    closed: list[str] = []

    async def numbers() -> None:
        async def endless() -> AsyncIterator[int]:
            try:
                while True:
                    yield 1
            finally:
                closed.append("generator")

        async for _ in endless():
            break

    async def notebook() -> None:
        run_sync(numbers())

    asyncio.run(notebook())
    assert closed == ["generator"]
