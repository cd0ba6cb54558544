"""The part of the store contract that is about tapes and blobs."""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import pytest

from codetape.engine.chain import GENESIS
from codetape.engine.ports import (
    ConcurrentAppend,
    EventStore,
    SessionOwned,
)
from codetape.testing.store_cases import (
    BROKEN_TEXTS,
    HOSTILE_TEXTS,
    HandClock,
    StoreCase,
    make_event,
    write,
)


class TapeContract(StoreCase):
    """What is written is read again, and nothing else."""

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


class BlobContract(StoreCase):
    """Large values, each once and by its hash."""

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
