"""The part of the store contract that is about sessions and who may write to them."""

from __future__ import annotations

import pytest

from codetape.engine.chain import GENESIS
from codetape.engine.ports import (
    EventStore,
    Lease,
    LeaseLost,
    SessionOwned,
    StoreError,
    UnknownSession,
)
from codetape.testing.store_cases import (
    HandClock,
    StoreCase,
    make_event,
    write,
)


class SessionContract(StoreCase):
    """The list of sessions, and their names."""

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


class MarkContract(StoreCase):
    """Marks: kept beside a session, and no part of its tape."""

    def test_a_mark_is_kept_and_replaced(self, store: EventStore) -> None:
        write(store, store.create("one", "autocoder", "a name", "alice"), 2)
        assert store.mark_of("one") is None
        before = list(store.read("one"))
        for mark in ("a" * 64, "b" * 64):
            store.mark("one", mark)
            assert store.mark_of("one") == mark
        assert list(store.read("one")) == before

    def test_an_empty_mark_takes_it_away(self, store: EventStore) -> None:
        store.create("one", "autocoder", "a name", "alice")
        store.mark("one", "a" * 64)
        store.mark("one", "")
        assert store.mark_of("one") is None

    def test_what_is_not_there_has_no_mark(self, store: EventStore) -> None:
        with pytest.raises(UnknownSession):
            store.mark("none", "a" * 64)
        assert store.mark_of("none") is None

    def test_a_fork_inherits_no_mark(self, store: EventStore) -> None:
        lease = store.create("one", "autocoder", "a name", "alice")
        write(store, lease, 2)
        store.mark("one", "a" * 64)
        store.fork("two", "one", 1, "bob")
        assert store.mark_of("two") is None


class LeaseContract(StoreCase):
    """One owner at a time."""

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
