"""Whole sessions of fakes: how long the shortest one takes, and what one leaves on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from benchmarks import scripted
from benchmarks.figures import Figure, at_least, at_most
from benchmarks.playing import play
from benchmarks.timing import CPU, seconds
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore

HAPPY_MS, HAPPY_RATE = 4.0, 250.0
"""The most milliseconds of a happy-path session in memory, and the least sessions per second."""

DISK = 60_000
"""The most bytes of a session of twenty events."""

DATA = 4096
"""Characters of data in every prompt of that session."""

BATCHES = 10
"""The best of so many is reported."""


def happy_path(sessions: int) -> Iterator[Figure]:
    """Time happy-path sessions, each with content of its own, in batches of `sessions`."""
    store = MemoryStore()
    numbers = iter(range(BATCHES * sessions))

    def batch() -> None:
        for number in islice(numbers, sessions):
            play(store, f"session{number:05d}", scripted.happy(number))

    taken = min(seconds(batch, CPU) for _ in range(BATCHES)) / sessions
    yield at_most("happy path in memory (CPU)", taken * 1e3, HAPPY_MS, "{:.2f} ms")
    yield at_least("- sessions per second (CPU)", 1 / taken, HAPPY_RATE, "{:,.0f} /s")


def on_disk(folder: Path) -> Figure:
    """Weigh the file of a session of twenty events after it was closed."""
    path = folder / "twenty.db"
    with closing(SqliteStore(path)) as store:
        session = play(store, "session00001", scripted.twenty_events(1, DATA))
    assert session.seq == 20, f"the session has {session.seq} events"
    return at_most("a session of twenty events on disk", path.stat().st_size, DISK, "{:,} B")
