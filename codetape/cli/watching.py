"""Watching a run: what is in flight, where the machine stands, and what an interruption leaves."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from codetape.cli.exits import INTERRUPTED, USAGE, Failed
from codetape.cli.facts import row
from codetape.cli.screen import Live, Screen
from codetape.cli.stores import command_line, short
from codetape.engine.loop import Engine
from codetape.engine.tape import Recorded
from codetape.states.session import Session

T = TypeVar("T")


class Watch:
    """What is known of a run while it goes on; its methods are the hooks of an agent."""

    def __init__(self, screen: Screen, store: str | None) -> None:
        self.screen = screen
        self.session: Session | None = None
        self._store = store
        self._engine: Engine | None = None
        self._live: Live | None = None

    def on_engine(self, engine: Engine) -> None:
        """Remember whom to ask what is in flight."""
        self._engine = engine

    def on_event(self, recorded: Recorded, session: Session) -> None:
        """Show an event. A reader who has gone away does not end the session."""
        self.session = session
        with contextlib.suppress(BrokenPipeError):
            self.screen.event(row(recorded))
            if self._live:
                self._live.draw()

    @property
    def in_flight(self) -> list[tuple[str, float]]:
        """The requests that are waited for, each with the seconds that it has taken."""
        now = time.monotonic()
        flights = self._engine.in_flight if self._engine else ()
        return [(flight.asked.request.name, max(0.0, now - flight.started)) for flight in flights]

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `work` to its end, watched. Raises Failed for a wrong argument and an interruption.

        Ctrl-C and SIGTERM both leave a session that can be resumed.
        """
        try:
            return asyncio.run(self._watched(work))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise Failed(self._interrupted(), INTERRUPTED) from None
        except ValueError as error:
            if self.session is not None:
                raise  # arguments are checked before the first event: this is a fault of ours
            raise Failed(str(error), USAGE) from error

    async def _watched(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = asyncio.current_task()
        assert task is not None, "this is a coroutine, so it runs in a task"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with self.screen.live(self) as live:
            self._live = live
            ticker = asyncio.ensure_future(_tick(live))
            try:
                return await work()
            finally:
                ticker.cancel()
                self._live = None

    def _interrupted(self) -> str:
        if self.session is None:
            return "interrupted before a session began"
        name = short(self.session.id)
        hint = command_line("resume", [name], store=self._store)
        return f"interrupted; session {name} is kept. Go on: {hint}"


async def _tick(live: Live) -> None:
    while live.every is not None:
        live.draw()
        await asyncio.sleep(live.every)
