"""Slow work beside the event loop that nobody waits for once it is given up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns, called in a thread of its own; raises what it raises.

    Unlike those of asyncio.to_thread, the thread holds up neither the end of the loop nor that of the
    process: after an interruption it is left to itself.
    """
    done: Future[T] = Future()

    def call() -> None:
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            done.set_exception(error)

    threading.Thread(target=call, name=f"aside-{function.__name__}", daemon=True).start()
    return await asyncio.wrap_future(done)
