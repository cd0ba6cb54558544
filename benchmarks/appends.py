"""Durable appends: against a plain INSERT of the same bytes, and at the end of a long tape."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from statistics import mean

from benchmarks.figures import Figure
from benchmarks.filling import Recording, Row, filled
from benchmarks.stepping import CYCLE, opened, steps
from benchmarks.timing import CPU, WALL, in_turns
from codetape.adapters.store.sqlite import SqliteStore
from codetape.adapters.system import SystemClock
from codetape.engine.ports import StoredEvent
from codetape.engine.tape import Writer
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER

SHARE = 0.67
"""The least share of a plain INSERT's speed that an append may have."""

GROWTH = 1.2
"""The most that a step at the end of a long tape may cost, as a multiple of an early one."""

EARLY = 100
"""The step that later ones are held against."""

BATCH = 10
"""Appends in each turn: enough to be measured, few enough for a slow moment to hit both sides."""

SESSION = "session00001"


def speed(folder: Path, turns: int) -> Iterator[Figure]:
    """Compare appends with plain INSERTs: events alone, and with the requests that they answer."""
    _, rows = _recorded(turns * BATCH)
    size = mean(len(row.event.data) for row in rows)
    alone = [Row(row.event, {}) for row in rows]
    yield _against_insert(f"durable appends, {size:,.0f} B events", alone, folder / "alone", turns)
    size += mean(sum(map(len, row.blobs.values())) for row in rows)
    yield _against_insert(f"- with requests, {size:,.0f} B", rows, folder / "whole", turns)


def _recorded(count: int) -> tuple[Session, list[Row]]:
    """Return a session of `count` events, and what the engine appended."""
    store = Recording()
    writer, session = opened(store, SESSION)
    *_, session = islice(steps(writer, session), count - 1)
    return session, store.rows


def _against_insert(name: str, rows: Sequence[Row], folder: Path, turns: int) -> Figure:
    folder.mkdir()
    with closing(SqliteStore(folder / "ours.db")) as store, closing(_plain(folder)) as plain:
        lease = store.create(SESSION, AUTOCODER.name, "", "benchmark")
        ours, theirs = iter(rows), iter(rows)

        def append() -> None:
            for row in islice(ours, BATCH):
                store.append(lease, row.event, row.blobs)

        def insert() -> None:
            for row in islice(theirs, BATCH):
                plain.execute(_INSERT, [*_values(row.event), b"".join(row.blobs.values())])

        taken = in_turns(append, insert, turns)
    share, rival = 1 / taken.ratio, f"{BATCH / taken.second:,.0f} /s INSERT"
    return Figure(name, f"{BATCH / taken.first:,.0f} /s", rival, share, share >= SHARE)


_COLUMNS = (*StoredEvent.__slots__, "blobs")
_CREATE = f"CREATE TABLE events ({', '.join(_COLUMNS)})"
_INSERT = f"INSERT INTO events VALUES ({', '.join('?' for _ in _COLUMNS)})"  # noqa: S608


def _plain(folder: Path) -> sqlite3.Connection:
    """A table with the same columns and one for the blobs; each INSERT is a transaction."""
    db = sqlite3.connect(folder / "plain.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(_CREATE)
    return db


def _values(event: StoredEvent) -> list[object]:
    return [getattr(event, column) for column in event.__slots__]


def growth(folder: Path, late: int, turns: int) -> Iterator[Figure]:
    """Compare steps from number `late` on with those from 100 on, each in a file of its own."""
    with (
        _session(folder / "late.db", late) as at_late,
        _session(folder / "early.db", EARLY) as at_early,
    ):
        for clock, name in (WALL, f"a durable step, number {late:,}"), (CPU, "- in CPU seconds"):
            taken = in_turns(at_late, at_early, turns, clock)
            rival = f"{taken.second / CYCLE * 1e3:.2f} ms at {EARLY}"
            measured = f"{taken.first / CYCLE * 1e3:.2f} ms"
            yield Figure(name, measured, rival, taken.ratio, taken.ratio <= GROWTH)


@contextmanager
def _session(path: Path, number: int) -> Iterator[Callable[[], object]]:
    """A stored session that has come to step `number`; what is yielded takes it on by one repair."""
    session, rows = _recorded(number)
    with closing(filled(path, rows)) as store:
        lease = store.acquire(SESSION, "benchmark")
        writer = Writer(store, AUTOCODER, SystemClock(), lease, rows[-1].event.hash)
        going_on = steps(writer, session)
        yield lambda: list(islice(going_on, CYCLE))
