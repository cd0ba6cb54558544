"""Cancelling from outside: before each request somebody is asked whether to go on."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from codetape.engine.loop import Engine
from codetape.engine.ports import Clock
from codetape.states.events import Cancelled

_log = logging.getLogger(__name__)

Cancel = Callable[[], bool] | threading.Event


class Cancelling:
    """Asks a caller whether to stop. After a yes the engine is told, and nobody is asked again."""

    def __init__(self, cancel: Cancel | None) -> None:
        self._cancel = cancel
        self._engine: Engine | None = None
        self._asked = False

    def of(self, engine: Engine) -> None:
        """Say which engine is to be told."""
        self._engine = engine

    def ask(self) -> bool:
        """Ask, unless the answer is known. Returns True if the session is to end."""
        if self._engine and not self._asked and self._wanted():
            self._asked = True
            self._engine.post(Cancelled(by="the caller"))
        return self._asked

    def _wanted(self) -> bool:
        cancel = self._cancel
        if cancel is None:
            return False
        try:
            return cancel.is_set() if isinstance(cancel, threading.Event) else bool(cancel())
        except Exception:  # noqa: BLE001 - whoever cannot be asked may have wanted to stop
            _log.exception("cancel failed, so the session is cancelled")
            return True


@dataclass(frozen=True, slots=True)
class AskingClock:
    """A clock after whose waits somebody is asked: what has waited is a request."""

    clock: Clock
    cancelling: Cancelling

    def now(self) -> str:
        """See Clock."""
        return self.clock.now()

    def monotonic(self) -> float:
        """See Clock."""
        return self.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; after a yes for ever, and the engine ends what is in flight."""
        await self.clock.sleep(seconds)
        if self.cancelling.ask():
            await asyncio.Event().wait()
