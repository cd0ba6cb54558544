"""What one does with tapes: opening, listing, replaying, exporting, importing and forking them.

Each line holds the cost at a large size against the cost at a small one in the same run: what grows
with the number of events grows with it and no faster, and what should not grow does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from benchmarks.figures import Figure, at_most
from benchmarks.filling import Recording, filled
from benchmarks.stepping import opened, steps
from benchmarks.timing import CPU, Pair, in_turns
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.adapters.system import FixedClock
from codetape.replay.export import export_tape
from codetape.replay.fork import fork
from codetape.replay.imports import import_tape
from codetape.replay.reading import open_tape
from codetape.replay.replayer import replay
from codetape.states.events import Paused, Resumed

GROWTH = 1.3
"""The most that an event of a large tape may cost, as a multiple of one of a small tape."""

PAGE = 50
"""Events that are shown at a time."""


def figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """Measure all lines; `quick` is only to see that they run."""
    turns = 2 if quick else 15
    few, many = (40, 80) if quick else (100, 1000)
    yield from _work(folder, few, many, turns)
    yield from _looks(folder, (100, 200) if quick else (1000, 100_000), turns)
    yield from _lists(folder, (10, 20) if quick else (100, 1000), turns)


def _work(folder: Path, few: int, many: int, turns: int) -> Iterator[Figure]:
    """Replay, export, import and fork: the cost of an event, at `many` events against `few`."""
    with (
        closing(_repairs(folder / "few.db", few)) as small,
        closing(_repairs(folder / "many.db", many)) as large,
    ):
        for name, work in (("replay", _replayed), ("export", _exported), ("import", _imported)):
            small_work, large_work = work(small, folder), work(large, folder)
            pair = in_turns(large_work, small_work, turns, CPU)
            yield _an_event(f"{name}, an event of {many:,}", pair, few, many)
        yield from _forks(small, large, few, many, turns)


def _an_event(name: str, pair: Pair, few: int, many: int) -> Figure:
    growth = pair.ratio * few / many
    measured = f"{pair.first / many * 1e6:,.0f} us"
    against = f"{pair.second / few * 1e6:,.0f} us at {few:,}"
    return Figure(name, measured, against, growth, growth <= GROWTH)


def _forks(
    small: SqliteStore, large: SqliteStore, few: int, many: int, turns: int
) -> Iterator[Figure]:
    """A fork copies nothing: what it costs is to fold what it inherits."""
    pair = in_turns(_forked(large, many - 1), _forked(small, few - 1), turns, CPU)
    yield _an_event(f"fork at event {many - 1:,}, an event", pair, few, many)


def _looks(folder: Path, sizes: tuple[int, int], turns: int) -> Iterator[Figure]:
    """The first and the last page of a long tape cost what those of a short one cost."""
    few, many = sizes
    with (
        closing(_pauses(folder / "short.db", few)) as short,
        closing(_pauses(folder / "long.db", many)) as long,
    ):
        first = in_turns(_page(long, 0), _page(short, 0), turns)
        last = in_turns(_page(long, many - PAGE), _page(short, few - PAGE), turns)
    yield _constant(f"first page of {many:,} events", first, few)
    yield _constant("- last page", last, few)


def _constant(name: str, pair: Pair, few: int) -> Figure:
    against = f"{pair.second * 1e3:.2f} ms of {few:,}"
    return Figure(name, f"{pair.first * 1e3:.2f} ms", against, pair.ratio, pair.ratio <= 2.0)


def _lists(folder: Path, sizes: tuple[int, int], turns: int) -> Iterator[Figure]:
    """A store of many sessions is opened and listed as fast, for each, as one of few."""
    few, many = sizes
    for number in sizes:
        _sessions(folder / f"{number}.db", number)
    pair = in_turns(_listed(folder / f"{many}.db"), _listed(folder / f"{few}.db"), turns)
    yield at_most(f"open and list {many:,} sessions", pair.first, 0.25, "{:.3f} s")
    growth = pair.ratio * few / many
    against = f"{pair.second / few * 1e6:,.0f} us of {few:,}"
    yield Figure("- for each", f"{pair.first / many * 1e6:,.0f} us", against, growth, growth <= 1.3)


# --- tapes ----------------------------------------------------------------------------------------

SESSION = "session00001"


def _repairs(path: Path, events: int) -> SqliteStore:
    """A session of real events: one repair of the code after the other."""
    store = Recording()
    writer, session = opened(store, SESSION)
    for _ in islice(steps(writer, session), events - 1):
        pass
    return filled(path, store.rows)


def _pauses(path: Path, events: int) -> SqliteStore:
    """A session of small events."""
    store = Recording()
    writer, session = opened(store, SESSION)
    for number in range(events - 1):
        session, _ = writer.record(session, Resumed() if number % 2 else Paused(by="a person"))
    return filled(path, store.rows)


def _sessions(path: Path, count: int) -> None:
    store = Recording()
    for number in range(count):
        writer, session = opened(store, f"session{number:05d}")
        writer.record(session, Paused(by="a person"))
    filled(path, store.rows).close()


# --- what is done with them -----------------------------------------------------------------------


def _replayed(store: SqliteStore, _: Path) -> Callable[[], object]:
    return lambda: replay(store, SESSION)


def _exported(store: SqliteStore, folder: Path) -> Callable[[], object]:
    return lambda: export_tape(store, SESSION, folder / "one.tape.jsonl")


def _imported(store: SqliteStore, folder: Path) -> Callable[[], object]:
    file = folder / f"{sum(1 for _ in store.read(SESSION))}.tape.jsonl"
    export_tape(store, SESSION, file)
    return lambda: import_tape(file, MemoryStore())


def _forked(store: SqliteStore, at: int) -> Callable[[], object]:
    names = iter(range(10**6))
    tape = open_tape(store, SESSION)

    def work() -> None:
        name = f"fork{at}x{next(names):06d}"
        fork(tape, at, store=store, id=name, clock=FixedClock(), owner="benchmark")

    return work


def _page(store: SqliteStore, after: int) -> Callable[[], object]:
    return lambda: [*islice(store.read(SESSION, after), PAGE)]


def _listed(path: Path) -> Callable[[], object]:
    def work() -> None:
        with closing(SqliteStore(path)) as store:
            store.sessions()

    return work
