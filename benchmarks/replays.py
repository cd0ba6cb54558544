"""Replaying and folding, in events per second of processor time.

Each session has code, tests, prompts and answers of its own, and each batch of sessions is replayed
for the first time when it is measured, in a process that did not record it: no cache by content helps.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks import scripted
from benchmarks.figures import Figure, at_least
from benchmarks.filling import Recording, filled
from benchmarks.playing import play
from benchmarks.timing import CPU
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.tape import Recorded, fold, read
from codetape.replay.replayer import replay
from codetape.states.events import Event
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER

REPLAYED, FOLDED = 10_000, 30_000
"""The least numbers of events per second, with all comparisons and without any."""

BATCHES = 5
"""The best of so many is reported."""


def speed(folder: Path, sessions: int) -> Iterator[Figure]:
    """Measure replay and fold on batches of `sessions` sessions of eleven events."""
    path = folder / "tapes.db"
    batches = [range(n * sessions, (n + 1) * sessions) for n in range(BATCHES)]
    recording = Recording()
    for number in range(BATCHES * sessions):
        play(recording, _name(number), scripted.repaired(number))
    filled(path, recording.rows).close()
    speeds = _in_another_process(path, batches)
    yield at_least("replay, all comparisons (CPU)", speeds.replay, REPLAYED, "{:,.0f} /s")
    yield at_least("fold alone (CPU)", speeds.fold, FOLDED, "{:,.0f} /s")
    yield Figure("- with reading from SQLite (CPU)", f"{speeds.read_and_fold:,.0f} /s")
    yield Figure("- only the library's triggers (CPU)", f"{speeds.trigger:,.0f} /s")


def _name(number: int) -> str:
    return f"session{number:05d}"


@dataclass(frozen=True, slots=True)
class _Speeds:
    """Events per second of each kind of work."""

    replay: float
    fold: float
    read_and_fold: float
    trigger: float  # what `transitions` makes of a fold, and the most that a fold can have


def _in_another_process(path: Path, batches: Sequence[range]) -> _Speeds:
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, fresh) as process:
        return process.submit(_measured, path, batches).result()


def _measured(path: Path, batches: Sequence[range]) -> _Speeds:
    with closing(SqliteStore(path)) as store:
        replayed = _best(batches, lambda batch: _replays(store, batch))
        read_too = _best(batches, lambda batch: _folds(_tapes(store, batch)))
        tapes = {
            batch: [(name, [*tape]) for name, tape in _tapes(store, batch)] for batch in batches
        }
    folded = _best(batches, lambda batch: _folds(tapes[batch]))
    moves = {batch: [*_moves(tapes[batch])] for batch in batches}
    return _Speeds(
        replayed, folded, read_too, _best(batches, lambda batch: _triggers(moves[batch]))
    )


def _best(batches: Sequence[range], work: Callable[[range], int]) -> float:
    """Return the events per second of the best batch; `work` returns how many it has."""
    return max(_rate(work, batch) for batch in batches)


def _rate(work: Callable[[range], int], batch: range) -> float:
    start = CPU()
    events = work(batch)
    return events / (CPU() - start)


def _replays(store: SqliteStore, batch: range) -> int:
    reports = [replay(store, _name(number)) for number in batch]
    assert all(report.identical for report in reports), [str(r) for r in reports if not r.identical]
    return sum(report.events for report in reports)


def _tapes(store: SqliteStore, batch: range) -> Iterator[tuple[str, Iterable[Recorded]]]:
    for number in batch:
        yield _name(number), read(store, _name(number))


def _folds(tapes: Iterable[tuple[str, Iterable[Recorded]]]) -> int:
    return sum(fold(AUTOCODER, name, tape).seq for name, tape in tapes)


_Move = tuple[Session, Event, Session]


def _moves(tapes: Iterable[tuple[str, Iterable[Recorded]]]) -> Iterator[_Move]:
    """Yield each session before an event, the event, and the facts after it."""
    for name, tape in tapes:
        session = AUTOCODER.blank(name)
        for record in tape:
            yield session, record.event, AUTOCODER.folded(session, record.event)
            session = AUTOCODER.advance(session, record.event)


def _triggers(moves: Sequence[_Move]) -> int:
    for before, event, facts in moves:
        AUTOCODER.machine.next_state(before.id, before.state, event.name, facts)
    return len(moves)
