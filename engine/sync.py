"""A synchronous face for the one asynchronous core."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result.

    Where an event loop is already running in this thread (a notebook), it runs in a thread of its
    own with a loop of its own; an interruption of the waiting thread cancels it there.
    """
    return _in_thread(coroutine) if _is_in_a_loop() else _run(coroutine)


def _is_in_a_loop() -> bool:
    """True if this thread runs a loop. What is raised later has nothing to do with the answer."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own.

    At its end asyncio writes out the task, with all that it returns, to see whose the handler of
    Ctrl-C is; a session is long, so what comes back is put aside.
    """
    results: list[T] = []

    async def put_aside() -> None:
        results.append(await coroutine)

    asyncio.run(put_aside())
    return results[0]


def _in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: context.run(_run_until_done, loop, task))
    thread.start()
    try:
        thread.join()
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    return task.result()


def _run_until_done(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    try:
        loop.run_until_complete(asyncio.wait([task]))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
