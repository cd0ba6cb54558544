"""A store of a thousand random sessions of both workflows, and all that one does with tapes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.adapters.system import FixedClock
from codetape.engine.tape import fold, read
from codetape.replay.export import export_tape, tape_lines
from codetape.replay.fork import fork as forked
from codetape.replay.imports import import_tape
from codetape.replay.reading import open_tape
from codetape.replay.replayer import replay
from codetape.states.machine import State
from tests.support.random_sessions import resume, start, workflow_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SESSIONS = 1000


def name(number: int) -> str:
    return f"session{number:05d}"


def place(number: int, below: int) -> int:
    """A number from 1 to `below` - 1 that looks as if it were drawn."""
    digest = hashlib.sha256(str(number).encode()).digest()
    return 1 + int.from_bytes(digest[:4], "big") % max(1, below - 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    path = tmp_path_factory.mktemp("thousand") / "codetape.db"
    with closing(SqliteStore(path)) as opened:
        for number in range(SESSIONS):
            ended = start(opened, number, name(number))
            assert ended is not None
            assert ended.state is State.DONE
        yield opened


def test_all_of_them_replay(store: SqliteStore) -> None:
    assert len(store.sessions()) == SESSIONS
    for number in range(SESSIONS):
        report = replay(store, name(number), keep_going=True)
        assert (number, report.differences) == (number, ())


def test_all_of_them_travel(store: SqliteStore, tmp_path: Path) -> None:
    file = tmp_path / "one.tape.jsonl"
    for number in range(SESSIONS):
        other = MemoryStore()
        export_tape(store, name(number), file)
        import_tape(file, other)
        assert list(other.read(name(number))) == list(store.read(name(number)))
        assert list(tape_lines(other, name(number))) == list(tape_lines(store, name(number)))


def test_all_of_them_go_on_after_a_kill_at_any_event(store: SqliteStore, tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "killed.db")) as killed:
        for number in range(SESSIONS):
            session = name(number)
            at = place(number, sum(1 for _ in store.read(session)))
            start(killed, number, session, kill_after=at)
            left = list(killed.read(session))
            assert left[:at] == list(store.read(session))[: len(left[:at])]
            if not fold(workflow_of(number), session, read(killed, session)).done:
                assert resume(killed, number, session, f"resumed {number}").done
            assert list(killed.read(session))[: len(left)] == left
            assert replay(killed, session).identical


def test_all_of_them_can_be_forked_at_any_event(store: SqliteStore) -> None:
    for number in range(SESSIONS):
        session = name(number)
        before = list(tape_lines(store, session))
        tape = open_tape(store, session)
        at = place(number, len(tape))
        other = f"fork{number:08d}"
        forked(tape, at, store=store, id=other, clock=FixedClock(), owner="a test")
        assert resume(store, number, other, f"forked {number}").done
        assert replay(store, other).identical
        assert list(tape_lines(store, session)) == before
