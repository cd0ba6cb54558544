"""Work in a thread of its own: its result, its error, and that nobody waits for it when given up."""

from __future__ import annotations

import asyncio
import threading

import pytest

from codetape.adapters.aside import aside


def test_what_it_returns_and_raises_arrives() -> None:
    assert asyncio.run(aside(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(aside(divmod, 7, 0))


def test_given_up_the_loop_ends_while_the_work_goes_on() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def work() -> None:
        go_on.wait()
        ended.set()

    async def give_up() -> None:
        async with asyncio.timeout(0.01):
            await aside(work)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert not ended.is_set(), "the loop has waited"
    go_on.set()
    assert ended.wait(10), "the work was not left to itself"
