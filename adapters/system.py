"""Clock and ids: the system's own, and fixed ones whose sessions come out the same to the byte."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The time of the system."""

    def now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="microseconds")

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FixedClock:
    """A clock that goes on by `step` seconds each time it is looked at, and never waits."""

    def __init__(self, start: str = "2025-01-01T00:00:00+00:00", step: float = 1.0) -> None:
        self._now = datetime.fromisoformat(start)
        self._step = step
        self._monotonic = 0.0

    def now(self) -> str:
        self._now += timedelta(seconds=self._step)
        return self._now.isoformat(timespec="microseconds")

    def monotonic(self) -> float:
        self._monotonic += self._step
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
        await asyncio.sleep(0)


class SystemIds:
    """Random ids of sixteen hexadecimal digits."""

    def new(self) -> str:
        return uuid.uuid4().hex[:16]


class FixedIds:
    """Ids from a list, then numbered ones: session00001, session00002, …"""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._ids = list(ids)
        self._count = 0

    def new(self) -> str:
        if self._ids:
            return self._ids.pop(0)
        self._count += 1
        return f"session{self._count:05d}"
