"""Taking sessions out of a file: everything of theirs, and nothing of anybody else's."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetape.adapters.store import pruning
from codetape.adapters.store.library import Library
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.chain import GENESIS
from codetape.engine.ports import (
    EventStore,
    SessionOwned,
    StoredEvent,
    StoreError,
    StoreUnusable,
    UnknownSession,
)
from codetape.testing.stores import make_event, write

SHARED, INNER = b"a text that two sessions share" * 50, b"a part of a request" * 90


def named(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def fill(store: EventStore, session: str, count: int = 3, text: str = "") -> list[StoredEvent]:
    """Write events that have blobs: one of their own, one that all share, one inside a request."""
    lease = store.create(session, "autocoder", "", "alice")
    tape: list[StoredEvent] = []
    for seq in range(1, count + 1):
        own = f"{session} {seq} {text}".encode() * 40
        request = json.dumps({"request": "x", "of": session, "part": {"$blob": named(INNER)}})
        data = {"texts": [{"$blob": named(own)}, {"$blob": named(SHARED)}], "short": text}
        event = make_event(
            session,
            seq,
            tape[-1].hash if tape else GENESIS,
            data=json.dumps(data),
            request_key=named(request.encode()),
        )
        blobs = {named(body): body for body in (own, SHARED, INNER, request.encode())}
        store.append(lease, event, blobs)
        tape.append(event)
    store.release(lease)
    return tape


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, filesystem=lambda _: "ext4")) as store:
        yield store


def counts(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as db:
        tables = ("sessions", "events", "blobs", "pruned", "pruned_blobs")
        return {t: db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}


def check_blobs(store: SqliteStore, tape: Sequence[StoredEvent]) -> None:
    """Everything that a tape refers to is there."""
    with store._using() as db:
        names = [n for e in tape for n in pruning.referred(db, e.request_key, e.data)]
    assert len(names) == 4 * len(tape)
    for name in names:
        store.get_blob(name)


def test_all_of_a_session_goes_and_nothing_of_another(store: SqliteStore, path: Path) -> None:
    fill(store, "one")
    tape = fill(store, "two")
    store.prune(["one"])
    assert [row.id for row in store.sessions()] == ["two"]
    with pytest.raises(UnknownSession):
        list(store.read("one"))
    assert list(store.read("two")) == tape
    check_blobs(store, tape)
    assert counts(path) == {
        "sessions": 1, "events": 3, "blobs": 6, "pruned": 0, "pruned_blobs": 0
    }  # fmt: skip
    store.prune(["two"])
    assert set(counts(path).values()) == {0}


def test_what_does_not_go(store: SqliteStore) -> None:
    fill(store, "one")
    lease = store.create("two", "autocoder", "", "alice")
    write(store, lease)
    with pytest.raises(SessionOwned, match="alice"):
        store.prune(["two"])
    with pytest.raises(UnknownSession):
        store.prune(["three"])
    assert [row.id for row in store.sessions()] == ["one", "two"]


def test_a_parent_stays_while_a_fork_needs_it(store: SqliteStore) -> None:
    tape = fill(store, "one", 5)
    lease = store.fork("fork", "one", 2, "bob")
    with pytest.raises(StoreError, match="one is needed by its fork fork"):
        store.prune(["one"])  # it has nothing of its own yet, but is about to
    write(store, lease)
    store.release(lease)
    with pytest.raises(StoreError, match="one is needed by its fork fork"):
        store.prune(["one"])
    assert list(store.read("fork"))[:2] == tape[:2]
    store.prune(["fork"])
    assert list(store.read("one")) == tape
    check_blobs(store, tape)
    store.prune(["one"])
    assert store.sessions() == []


def test_a_fork_that_never_began_holds_up_nobody(store: SqliteStore, path: Path) -> None:
    fill(store, "one")
    store.release(store.fork("fork", "one", 2, "bob"))
    store.prune(["one"])
    assert set(counts(path).values()) == {0}


def test_deleted_texts_are_overwritten(store: SqliteStore, path: Path) -> None:
    canary = "canary" * 30
    fill(store, "one", text=canary)
    tape = fill(store, "two")
    whole = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert canary.encode() in whole
    store.prune(["one"])
    whole = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"canary" not in whole
    assert list(store.read("two")) == tape


def test_compact_makes_the_file_small(store: SqliteStore) -> None:
    tape = fill(store, "two")
    for n in range(20):
        fill(store, f"one{n}", 5)
    store.prune([f"one{n}" for n in range(20)])
    before, after = store.compact()
    assert after < before / 3
    assert list(store.read("two")) == tape
    check_blobs(store, tape)


def test_a_disk_too_full_to_compact_changes_nothing(store: SqliteStore, path: Path) -> None:
    tape = fill(store, "two", 20)
    with store._using() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")

        def full(*_: object) -> int:
            return 1  # ends what is going on, as an error of the disk would

        db.set_progress_handler(full, 100)
    with pytest.raises(StoreUnusable):
        store.compact()
    with store._using() as db:
        db.set_progress_handler(None, 0)
    assert list(store.read("two")) == tape


# --- an id that is given again --------------------------------------------------------------------


def cut_off(path: Path, step: int) -> None:
    """Prune the session `one` in a process that ends in its nth transaction; nothing after it runs."""
    stopped = stopping(path)
    stopped.left = step
    with closing(stopped), suppress(Stopped):
        stopped.prune(["one"])


@pytest.mark.parametrize("how", ["create", "fork"])
@pytest.mark.parametrize("step", range(1, 9))
def test_a_session_under_a_pruned_id_keeps_its_events(path: Path, step: int, how: str) -> None:
    """Wherever the deletion was cut off: nothing of the new one is lost, the old one is gone."""
    with closing(SqliteStore(path, filesystem=lambda _: "ext4")) as store:
        fill(store, "one", 5, text="canary")
        base = fill(store, "two")
    cut_off(path, step)
    with closing(SqliteStore(path, filesystem=lambda _: "ext4")) as store:
        if "one" in {row.id for row in store.sessions()}:  # it was cut off before it had begun
            store.prune(["one"])
        with pytest.raises(UnknownSession):
            list(store.read("one"))
        if how == "create":
            tape = fill(store, "one", 2, text="new")
        else:
            lease = store.fork("one", "two", 3, "bob")
            write(store, lease)
            store.release(lease)
            tape = list(store.read("one"))
        store.prune()
        assert list(store.read("one")) == tape
        assert list(store.read("two")) == base
        assert store.lost() == []
    whole = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"canary" not in whole


def test_a_new_session_has_no_verdict_of_the_old(path: Path, store: SqliteStore) -> None:
    """What was learned stays; that it was learned, and what was said, is not told of the new one."""
    fill(store, "one")
    with closing(Library(path)) as library:
        library.learn("one", "autocoder", "a request", ["keep it short"])
        library.feedback("one", "autocoder", good=False)
        store.prune(["one"])
        (lesson,) = library.lessons()
        assert (lesson.text, lesson.good) == ("keep it short", False)
        assert lesson.session != "one"
        fill(store, "one")
        assert library.learn("one", "autocoder", "a request", ["another"]) == 1
        assert [lesson.good for lesson in library.lessons()] == [False, None]


# --- small steps ----------------------------------------------------------------------------------


class Stopped(Exception):
    """The process ends here."""


class Stopping(SqliteStore):
    """A store that stops in the middle of its nth transaction that writes."""

    left = 10**9
    sizes: list[int]

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with super()._writing() as db:
            before = db.total_changes
            self.left -= 1
            yield db
            if self.left == 0:
                raise Stopped
            self.sizes.append(db.total_changes - before)


def stopping(path: Path) -> Stopping:
    store = Stopping(path, filesystem=lambda _: "ext4")
    store.sizes = []
    return store


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of ten, so that few events are many."""
    monkeypatch.setattr(pruning, "BATCH", 10)
    monkeypatch.setattr(pruning, "PAGE", 10)


@pytest.mark.usefixtures("small_steps")
def test_f15_no_transaction_of_a_prune_is_long(path: Path) -> None:
    with closing(stopping(path)) as store:
        fill(store, "one", 50)
        tape = fill(store, "two", 3)
        store.sizes.clear()
        store.prune(["one"])
        # An event goes with up to four blobs to remember.
        assert max(store.sizes) <= 5 * pruning.BATCH
        assert len(store.sizes) > 50 / pruning.BATCH
        assert list(store.read("two")) == tape


@pytest.mark.usefixtures("small_steps")
def test_f15_others_append_between_the_batches(path: Path) -> None:
    """Each time the lock is free somebody appends, and refers to blobs that are about to go."""
    with closing(stopping(path)) as store, closing(SqliteStore(path)) as other:
        gone = fill(store, "one", 45)
        lease = other.create("two", "autocoder", "", "bob")
        tape: list[StoredEvent] = []
        real = store._writing

        @contextmanager
        def writing() -> Iterator[Any]:
            with real() as db:
                yield db
            if len(tape) < 15:
                source = gone[len(tape) * 3]
                with other._using() as reader:
                    names = list(pruning.referred(reader, source.request_key, source.data))
                try:
                    blobs = {name: other.get_blob(name) for name in names}
                except KeyError:
                    return
                previous = tape[-1].hash if tape else GENESIS
                event = make_event(
                    "two",
                    len(tape) + 1,
                    previous,
                    data=source.data,
                    request_key=source.request_key,
                )
                other.append(lease, event, blobs)
                tape.append(event)

        store._writing = writing  # type: ignore[method-assign]
        store.prune(["one"])
        assert tape
        assert list(other.read("two")) == tape
        check_blobs(other, tape)


@pytest.mark.usefixtures("small_steps")
@given(stops=st.lists(st.integers(1, 6), min_size=5, max_size=5))
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_f16_a_prune_that_is_interrupted_five_times_still_ends(
    tmp_path_factory: pytest.TempPathFactory, stops: list[int]
) -> None:
    path = tmp_path_factory.mktemp("prune") / "tape.db"
    with closing(stopping(path)) as store:
        fill(store, "one", 30)
        tape = fill(store, "two", 2)
        rest = ["one"]
        for stop in stops:
            store.left = stop
            with suppress(Stopped):
                store.prune(rest)
            if "one" not in [row.id for row in store.sessions()]:
                rest = []
            assert list(store.read("two")) == tape
        store.left = 10**9
        store.prune(rest)
        assert counts(path)["events"] == 2
        assert counts(path)["pruned_blobs"] == 0
        check_blobs(store, tape)
