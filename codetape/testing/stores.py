"""The contract of `EventStore`, as tests. An adapter's author subclasses `EventStoreContract`:

class TestMyStore(EventStoreContract):
    def make_store(self, clock, folder):
        return MyStore(folder / "tape", clock)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import ClassVar

import pytest

from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import (
    Clock,
    ConcurrentAppend,
    EventStore,
    Lease,
    LeaseLost,
    SessionOwned,
    StoredEvent,
    StoreError,
    UnknownSession,
)

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


class EventStoreContract:
    """What every event store does. `gaps` names the tests that an adapter fails, with the reason.

    A gap that passes is a failure: it is to be taken from the list.
    """

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

    # --- the tape ---------------------------------------------------------------------------------

    def test_reads_back_what_was_appended(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "a name", "alice")
        tape = write(store, lease, 3)
        assert list(store.read("one")) == tape
        assert [event.seq for event in tape] == [1, 2, 3]

    def test_a_reserved_session_has_an_empty_tape(self, store: EventStore) -> None:
        store.create("one", "autocoder", "a name", "alice")
        assert list(store.read("one")) == []

    def test_reads_what_follows_an_event(self, store: EventStore) -> None:
        tape = write(store, store.create("one", "autocoder", "", "alice"), 300)
        for after in (-1, 0, 1, 299, 300, 301):
            assert list(store.read("one", after)) == tape[max(after, 0) :]

    def test_a_read_is_of_the_moment_that_it_began(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        tape = write(store, lease, 2)
        reading = store.read("one")
        first = next(reading)
        write(store, lease, 1)
        assert [first, *reading] == tape

    @pytest.mark.parametrize("text", HOSTILE_TEXTS)
    def test_keeps_every_text(self, store: EventStore, text: str) -> None:
        lease = store.create("one", text, text, "alice")
        event = make_event("one", 1, GENESIS, name=text, dest=text, data=text, request_key=text)
        store.append(lease, event, {})
        assert list(store.read("one")) == [event]
        (row,) = store.sessions()
        assert (row.workflow, row.name, row.state) == (text, text, text)

    @pytest.mark.parametrize("text", BROKEN_TEXTS)
    def test_refuses_text_that_is_no_utf8(self, store: EventStore, text: str) -> None:
        with pytest.raises(ValueError, match="surrogates"):
            store.create("one", "autocoder", text, "alice")
        lease = store.create("one", "autocoder", "", "alice")
        facts = make_event("one", 1, GENESIS)
        with pytest.raises(ValueError, match="surrogates"):
            store.append(lease, replace(facts, data=text), {})
        assert list(store.read("one")) == []

    @pytest.mark.parametrize("version", [2**63, -(2**63) - 1, 10**40])
    def test_refuses_numbers_that_a_database_cannot_hold(
        self, store: EventStore, version: int
    ) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        with pytest.raises(ValueError, match="out of range"):
            store.append(lease, make_event("one", 1, GENESIS, version=version), {})
        assert list(store.read("one")) == []

    def test_appending_the_same_event_again_is_refused(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        tape = write(store, lease, 2)
        for event in tape:
            with pytest.raises(ConcurrentAppend) as caught:
                store.append(lease, event, {})
            assert (caught.value.session, caught.value.seq) == ("one", event.seq)
        assert list(store.read("one")) == tape

    def test_a_faster_writer_wins(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        first, second = (make_event("one", 1, GENESIS, data=text) for text in ("1", "2"))
        store.append(lease, first, {})
        with pytest.raises(ConcurrentAppend):
            store.append(lease, second, {})
        assert list(store.read("one")) == [first]

    def test_threads_write_each_event_once(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        start, refused = Barrier(4), []

        def work() -> None:
            start.wait()
            done = 0
            while done < 10:
                try:
                    done = len(write(store, lease))
                except ConcurrentAppend as error:
                    refused.append(error.seq)

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tape = list(store.read("one"))
        assert [event.seq for event in tape] == list(range(1, len(tape) + 1))
        assert 10 <= len(tape) <= 13

    def test_refuses_a_gap(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        tape = write(store, lease, 1)
        with pytest.raises(ValueError, match="event 3 does not follow event 1 of one"):
            store.append(lease, make_event("one", 3, tape[-1].hash), {})
        assert list(store.read("one")) == tape

    def test_refuses_an_event_that_is_not_chained(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        tape = write(store, lease, 1)
        with pytest.raises(ValueError, match="event 2 does not follow event 1 of one"):
            store.append(lease, make_event("one", 2, GENESIS), {})
        assert list(store.read("one")) == tape

    def test_refuses_the_event_of_another_session(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        store.create("two", "autocoder", "", "alice")
        with pytest.raises(ValueError, match="one"):
            store.append(lease, make_event("two", 1, GENESIS), {})
        assert list(store.read("two")) == []

    def test_sessions_do_not_mix(self, store: EventStore) -> None:
        leases = [store.create(name, "autocoder", "", "alice") for name in ("a", "b", "aa")]
        tapes = [write(store, lease, count) for count, lease in enumerate(leases, start=1)]
        assert [list(store.read(lease.session)) for lease in leases] == tapes

    def test_what_was_written_is_there_for_the_next_process(
        self, store: EventStore, clock: HandClock, tmp_path: Path
    ) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        tape = write(store, lease, 2)
        blob = store.put_blob(b"body")
        with closing(self.make_store(clock, tmp_path)) as other:
            assert list(other.read("one")) == tape
            assert other.sessions() == store.sessions()
            assert other.get_blob(blob) == b"body"
            with pytest.raises(SessionOwned, match="alice"):
                other.acquire("one", "bob")

    def test_may_be_closed_twice_and_used_again(self, store: EventStore) -> None:
        tape = write(store, store.create("one", "autocoder", "", "alice"), 2)
        store.close()
        store.close()
        assert list(store.read("one")) == tape

    # --- sessions ---------------------------------------------------------------------------------

    def test_lists_sessions_from_their_first_event_on(self, store: EventStore) -> None:
        late = store.create("late", "toolmaker", "second", "alice")
        early = store.create("early", "autocoder", "first", "bob")
        assert store.sessions() == []
        store.append(
            late, make_event("late", 1, GENESIS, at="2026-02-02T00:00:00.000000+00:00"), {}
        )
        assert [row.id for row in store.sessions()] == ["late"]
        tape = write(store, early, 2)
        row = store.sessions()[0]
        assert [row.id for row in store.sessions()] == ["early", "late"]
        assert (row.workflow, row.name, row.state) == ("autocoder", "first", "State2")
        assert (row.seq, row.head, row.owner) == (2, tape[1].hash, "bob")
        assert (row.started_at, row.updated_at) == (tape[0].at, tape[1].at)
        assert (row.parent, row.parent_seq) == (None, None)

    def test_lists_sessions_of_one_moment_as_they_were_made(self, store: EventStore) -> None:
        for name in ("b", "c", "a"):
            write(store, store.create(name, "autocoder", "", "alice"))
        assert [row.id for row in store.sessions()] == ["b", "c", "a"]

    @pytest.mark.parametrize("session", ["", " ", "a b", "a\n", "\x00", "\ud800", "\u2028"])
    def test_refuses_ids_that_nobody_can_type(self, store: EventStore, session: str) -> None:
        with pytest.raises(StoreError, match="cannot name a session"):
            store.create(session, "autocoder", "", "alice")
        with pytest.raises(StoreError):
            store.acquire(session, "alice")

    def test_refuses_an_id_that_is_taken(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        with pytest.raises(StoreError, match="there is a session one already"):
            store.create("one", "autocoder", "", "bob")
        write(store, lease)

    def test_does_not_know_other_sessions(self, store: EventStore) -> None:
        store.create("one", "autocoder", "", "alice")
        with pytest.raises(UnknownSession, match="'o'"):
            list(store.read("o"))
        with pytest.raises(UnknownSession, match="'two'"):
            store.acquire("two", "alice")

    # --- leases -----------------------------------------------------------------------------------

    def test_a_session_has_one_owner(self, store: EventStore, clock: HandClock) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        clock.move(89)
        for owner in ("bob", "alice"):
            with pytest.raises(SessionOwned, match="one is being run by alice") as caught:
                store.acquire("one", owner)
            assert (caught.value.session, caught.value.owner) == ("one", "alice")
        write(store, lease)

    def test_an_expired_lease_is_taken_over(self, store: EventStore, clock: HandClock) -> None:
        old = store.create("one", "autocoder", "", "alice")
        tape = write(store, old)
        clock.move(91)
        assert store.sessions()[0].owner is None
        new = store.acquire("one", "bob")
        assert (new.session, new.owner) == ("one", "bob")
        assert new.token != old.token
        assert store.sessions()[0].owner == "bob"
        for act in (lambda: store.renew(old), lambda: write(store, old)):
            with pytest.raises(LeaseLost, match="taken over by bob") as caught:
                act()
            assert (caught.value.session, caught.value.owner) == ("one", "bob")
        store.release(old)  # ignored
        assert list(store.read("one")) == tape
        write(store, new)

    def test_an_expired_lease_that_nobody_took_still_writes(
        self, store: EventStore, clock: HandClock
    ) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        clock.move(1000)
        write(store, lease)
        store.renew(lease)
        with pytest.raises(SessionOwned):
            store.acquire("one", "bob")

    def test_a_renewed_lease_lives_on(self, store: EventStore, clock: HandClock) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        for _ in range(4):
            clock.move(60)
            store.renew(lease)
        clock.move(89)
        with pytest.raises(SessionOwned):
            store.acquire("one", "bob")
        clock.move(2)
        store.acquire("one", "bob")

    def test_a_released_lease_is_gone(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        write(store, lease)
        store.release(lease)
        store.release(lease)
        assert store.sessions()[0].owner is None
        for act in (lambda: store.renew(lease), lambda: write(store, lease)):
            with pytest.raises(LeaseLost, match="another process") as caught:
                act()
            assert caught.value.owner is None
        write(store, store.acquire("one", "bob"))

    def test_a_lease_of_an_unknown_session_is_lost(self, store: EventStore) -> None:
        lease = Lease("one", "token", "alice")
        with pytest.raises(LeaseLost):
            store.append(lease, make_event("one", 1, GENESIS), {})
        with pytest.raises(LeaseLost):
            store.renew(lease)
        store.release(lease)

    # --- blobs ------------------------------------------------------------------------------------

    @pytest.mark.parametrize("body", [b"", b"\x00\xff", bytes(range(256)) * 5000])
    def test_keeps_blobs_by_their_hash(self, store: EventStore, body: bytes) -> None:
        name = hashlib.sha256(body).hexdigest()
        assert store.put_blob(body) == name
        assert store.put_blob(body) == name
        assert store.get_blob(name) == body

    def test_does_not_know_other_blobs(self, store: EventStore) -> None:
        with pytest.raises(KeyError):
            store.get_blob("a" * 64)

    def test_an_event_brings_its_blobs(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        event = make_event("one", 1, GENESIS)
        blobs = {hashlib.sha256(body).hexdigest(): body for body in (b"one", b"two")}
        store.append(lease, event, blobs)
        assert {name: store.get_blob(name) for name in blobs} == blobs
        store.append(lease, make_event("one", 2, event.hash), blobs)  # known ones may come again

    def test_a_refused_event_leaves_no_blob(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        write(store, lease)
        name = hashlib.sha256(b"body").hexdigest()
        with pytest.raises(ConcurrentAppend):
            store.append(lease, make_event("one", 1, GENESIS), {name: b"body"})
        with pytest.raises(KeyError):
            store.get_blob(name)

    def test_refuses_a_blob_under_a_wrong_name(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "", "alice")
        with pytest.raises(ValueError, match="does not fit its hash"):
            store.append(lease, make_event("one", 1, GENESIS), {"a" * 64: b"body"})
        assert list(store.read("one")) == []
