"""The part of the store contract that is about forks: sessions that share the beginning of another."""

from __future__ import annotations

import pytest

from codetape.engine.ports import (
    ConcurrentAppend,
    EventStore,
    SessionOwned,
    StoredEvent,
    StoreError,
    UnknownSession,
)
from codetape.testing.store_cases import StoreCase, make_event, write


def parent(store: EventStore, count: int = 5) -> list[StoredEvent]:
    """Write a tape of `count` events, of a session that nobody holds any more."""
    lease = store.create("parent", "autocoder", "a name", "alice")
    tape = write(store, lease, count)
    store.release(lease)
    return tape


class ForkContract(StoreCase):
    """What a fork shares, and what it does not."""

    @pytest.mark.parametrize("seq", [1, 3, 5])
    def test_a_fork_begins_with_its_parents_events(self, store: EventStore, seq: int) -> None:
        tape = parent(store)
        lease = store.fork("fork", "parent", seq, "bob")
        assert list(store.read("fork")) == tape[:seq]
        both = write(store, lease, 2)
        assert both[:seq] == tape[:seq]
        assert [event.session for event in both[seq:]] == ["fork", "fork"]
        for after in (0, seq - 1, seq, seq + 1, seq + 2):
            assert list(store.read("fork", after)) == both[after:]
        assert list(store.read("parent")) == tape

    def test_parent_and_fork_go_on_apart(self, store: EventStore) -> None:
        parent(store, 2)
        one, two = store.fork("one", "parent", 2, "bob"), store.acquire("parent", "alice")
        mine, theirs = write(store, one, 3), write(store, two, 1)
        assert list(store.read("one")) == mine
        assert list(store.read("parent")) == theirs
        assert mine[:2] == theirs[:2]

    def test_a_fork_of_a_fork(self, store: EventStore) -> None:
        tape = parent(store)
        mine = write(store, store.fork("one", "parent", 3, "bob"), 3)
        late = write(store, store.fork("late", "one", 5, "bob"), 1)
        early = write(store, store.fork("early", "one", 2, "bob"), 1)
        assert late[:5] == mine[:5]
        assert early[:2] == tape[:2]
        for after in range(6):
            assert list(store.read("late", after)) == late[after:]
            assert list(store.read("early", after)) == early[after:]

    def test_a_fork_is_listed_from_its_own_first_event_on(self, store: EventStore) -> None:
        tape = parent(store, 3)
        lease = store.fork("fork", "parent", 2, "bob")
        assert [row.id for row in store.sessions()] == ["parent"]
        own = make_event("fork", 3, tape[1].hash, at="2026-03-03T00:00:00.000000+00:00")
        store.append(lease, own, {})
        row = store.sessions()[1]
        assert (row.id, row.parent, row.parent_seq) == ("fork", "parent", 2)
        assert (row.workflow, row.name) == ("autocoder", "a name")
        assert (row.seq, row.head, row.state, row.owner) == (3, own.hash, own.dest, "bob")
        assert (row.started_at, row.updated_at) == (own.at, own.at)

    def test_a_fork_has_a_lease_of_its_own(self, store: EventStore) -> None:
        parent(store)
        lease = store.fork("fork", "parent", 2, "bob")
        with pytest.raises(SessionOwned, match="bob"):
            store.acquire("fork", "alice")
        store.release(lease)
        write(store, store.acquire("fork", "alice"), 1)
        store.acquire("parent", "carol")

    def test_a_running_session_can_be_forked(self, store: EventStore) -> None:
        lease = store.create("parent", "autocoder", "", "alice")
        write(store, lease, 2)
        write(store, store.fork("fork", "parent", 2, "bob"), 1)
        write(store, lease, 1)

    @pytest.mark.parametrize("seq", [-1, 0, 6, 2**62])
    def test_refuses_to_fork_at_an_event_that_is_not_there(
        self, store: EventStore, seq: int
    ) -> None:
        parent(store)
        with pytest.raises(StoreError, match=f"parent has no event {seq} to fork at"):
            store.fork("fork", "parent", seq, "bob")
        with pytest.raises(UnknownSession):
            list(store.read("fork"))

    def test_refuses_a_fork_of_nothing_and_one_under_a_taken_id(self, store: EventStore) -> None:
        tape = parent(store)
        with pytest.raises(UnknownSession, match="'other'"):
            store.fork("fork", "other", 1, "bob")
        with pytest.raises(StoreError, match="there is a session parent already"):
            store.fork("parent", "parent", 2, "bob")
        with pytest.raises(StoreError, match="cannot name a session"):
            store.fork("", "parent", 2, "bob")
        assert list(store.read("parent")) == tape

    def test_a_fork_cannot_write_what_it_inherited(self, store: EventStore) -> None:
        tape = parent(store)
        lease = store.fork("fork", "parent", 2, "bob")
        for seq in (1, 2):
            with pytest.raises(ConcurrentAppend):
                store.append(lease, make_event("fork", seq, tape[0].hash), {})
        with pytest.raises(ValueError, match="event 3 does not follow event 2 of fork"):
            store.append(lease, make_event("fork", 3, tape[2].hash), {})
