"""What the parts of the store contract share: a store in a folder, a clock, events that are chained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import Clock, EventStore, Lease, StoredEvent

HOSTILE_TEXTS = (
    "",
    " ",
    "'; DROP TABLE events; --",
    "\x00 in the middle",
    "\r\n\t\x1b[31m",
    "\u202eright to left\u202c \u200b\ufeff",
    "🧪é" + "e\u0301",
    "\U0010ffff",
    '{"a":1}',
    "x" * 100_000,
)
BROKEN_TEXTS = ("\ud800", "cut \udcff off")


@dataclass
class HandClock:
    """A clock that stands still until it is moved."""

    time: datetime = field(default=datetime(2026, 1, 1, tzinfo=UTC))

    def now(self) -> str:
        return self.time.isoformat(timespec="microseconds")

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.move(seconds)

    def move(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def make_event(session: str, seq: int, previous: str, **changes: object) -> StoredEvent:
    """Return an event that is chained to the hash `previous`; `changes` are fields of it."""
    event = StoredEvent(
        session=session,
        seq=seq,
        name="code_written",
        version=1,
        source="NeedsCode",
        dest=f"State{seq}",
        request_key=None,
        data='{"code":"print(1)"}',
        at=f"2026-01-01T00:00:00.{seq:06}+00:00",
        hash="",
    )
    event = replace(event, **changes)  # type: ignore[arg-type]
    return replace(event, hash=chained(previous, event))


def write(store: EventStore, lease: Lease, count: int = 1) -> list[StoredEvent]:
    """Append `count` events to the tape of `lease`, and return the whole tape."""
    tape = list(store.read(lease.session))
    for _ in range(count):
        previous = tape[-1].hash if tape else GENESIS
        tape.append(make_event(lease.session, len(tape) + 1, previous))
        store.append(lease, tape[-1], {})
    return tape


class StoreCase:
    """A store to test, and its clock. `gaps` names the tests that it fails, with the reason."""

    gaps: ClassVar[dict[str, str]] = {}

    def make_store(self, clock: Clock, folder: Path) -> EventStore:
        """Return a store that keeps its files, if any, in `folder`, and asks `clock` for the time.

        A second call with the same folder opens the same store.
        """
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _expect_gaps(self, request: pytest.FixtureRequest) -> None:
        name = request.node.originalname
        if name in self.gaps:
            request.applymarker(pytest.mark.xfail(reason=self.gaps[name], strict=True))

    @pytest.fixture
    def clock(self) -> HandClock:
        return HandClock()

    @pytest.fixture
    def store(self, clock: HandClock, tmp_path: Path) -> Iterator[EventStore]:
        with closing(self.make_store(clock, tmp_path)) as store:
            yield store
