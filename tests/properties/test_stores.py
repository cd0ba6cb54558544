"""SQLite and memory side by side: the same acts of two writers have the same results."""

from __future__ import annotations

import hashlib
import os
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.chain import GENESIS
from codetape.engine.ports import EventStore, Lease, StoredEvent, StoreError
from codetape.testing.stores import HOSTILE_TEXTS, HandClock, make_event

WRITERS = ("alice", "bob")
SESSIONS = ("a", "a", "b", "c", "")  # two writers have to meet
TEXTS = st.sampled_from(HOSTILE_TEXTS[:-1]) | st.text(max_size=20)  # lone surrogates among them
BODIES = st.binary(max_size=50)


@dataclass
class Side:
    """A store, and the leases that each writer has had of it: the last one is the newest."""

    store: EventStore
    leases: dict[tuple[str, str], list[Lease]]

    def lease(self, writer: str, session: str, age: int) -> Lease:
        had = self.leases.get((writer, session), [])
        return had[-1 - age % len(had)] if had else Lease(session, "none", writer)

    def keep(self, lease: Lease) -> str:
        self.leases.setdefault((lease.owner, lease.session), []).append(lease)
        return f"a lease of {lease.session} for {lease.owner}"


class TwoStores(RuleBasedStateMachine):
    """Each rule is done to both stores; then all that can be read of them is compared."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = HandClock()
        self.sqlite = SqliteStore(
            Path(self.folder.name, "tape.db"), self.clock, filesystem=lambda _: "ext4"
        )
        self.sides = (Side(self.sqlite, {}), Side(MemoryStore(self.clock), {}))
        self.holders: dict[str, str] = {}
        self.tapes: dict[str, list[StoredEvent]] = {}
        self.blobs: set[str] = set()

    def both(self, act: Callable[[Side], Any]) -> Any:
        results = [outcome(act, side) for side in self.sides]
        assert results[0] == results[1]
        return results[0]

    @rule(writer=st.sampled_from(WRITERS), session=st.sampled_from(SESSIONS), name=TEXTS)
    def create(self, writer: str, session: str, name: str) -> None:
        done = self.both(
            lambda side: side.keep(side.store.create(session, "autocoder", name, writer))
        )
        self.remember(writer, session, done)

    @rule(writer=st.sampled_from(WRITERS), session=st.sampled_from(SESSIONS))
    def acquire(self, writer: str, session: str) -> None:
        done = self.both(lambda side: side.keep(side.store.acquire(session, writer)))
        self.remember(writer, session, done)

    @rule(
        writer=st.sampled_from(WRITERS),
        session=st.sampled_from(SESSIONS),
        parent=st.sampled_from(SESSIONS),
        seq=st.integers(-1, 4),
    )
    def fork(self, writer: str, session: str, parent: str, seq: int) -> None:
        done = self.both(lambda side: side.keep(side.store.fork(session, parent, seq, writer)))
        self.remember(writer, session, done)
        if "a lease" in done:
            self.tapes[session] = self.tapes[parent][:seq]

    def remember(self, writer: str, session: str, done: str) -> None:
        if "a lease" in done:
            self.holders[session] = writer

    @rule(
        writer=st.sampled_from(WRITERS),
        session=st.sampled_from(SESSIONS),
        age=st.integers(0, 1),
        act=st.sampled_from(["renew", "release"]),
    )
    def use_lease(self, writer: str, session: str, age: int, act: str) -> None:
        self.both(lambda side: getattr(side.store, act)(side.lease(writer, session, age)))

    @rule(seconds=st.sampled_from([1, 60, 91]))
    def wait(self, seconds: int) -> None:
        self.clock.move(seconds)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), text=TEXTS, body=BODIES)
    def append(self, data: st.DataObject, text: str, body: bytes) -> None:
        """What the newest owner of a session has to say is taken, however late it comes."""
        session = data.draw(st.sampled_from(sorted(self.holders)))
        tape = self.tapes.get(session, [])
        changes = {"data": text, "dest": text} if is_utf8(text) else {}
        event = make_event(session, len(tape) + 1, tape[-1].hash if tape else GENESIS, **changes)
        name = hashlib.sha256(body).hexdigest()
        writer = self.holders[session]
        done = self.both(
            lambda side: side.store.append(side.lease(writer, session, 0), event, {name: body})
        )
        if done == "None":
            self.tapes.setdefault(session, []).append(event)
            self.blobs.add(name)

    @rule(
        writer=st.sampled_from(WRITERS),
        session=st.sampled_from(SESSIONS),
        age=st.integers(0, 1),
        ahead=st.sampled_from([1, 1, 0, 2, -1]),
        changes=st.sampled_from([{}, {"version": 2**63}, {"hash": "f" * 64}, {"data": "\ud800"}]),
        blob=st.sampled_from(["a" * 64, hashlib.sha256(b"new").hexdigest()]),
    )
    def append_amiss(
        self,
        writer: str,
        session: str,
        age: int,
        ahead: int,
        changes: dict[str, Any],
        blob: str,
    ) -> None:
        """An old lease, a wrong number, a gap, a broken value, a wrong blob; or by chance none."""
        tape = self.tapes.get(session, [])
        seq = len(tape) + ahead
        before = tape[seq - 2].hash if 2 <= seq <= len(tape) + 1 else GENESIS
        event = replace(make_event(session, seq, before), **changes)
        done = self.both(
            lambda side: side.store.append(side.lease(writer, session, age), event, {blob: b"new"})
        )
        if done == "None":
            self.tapes.setdefault(session, []).append(event)
            self.blobs.add(blob)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), statement=st.integers(1, 9), body=BODIES)
    def append_and_die(self, data: st.DataObject, statement: int, body: bytes) -> None:
        """A process is killed at a statement of an append: the event is there, or nothing of it."""
        session = data.draw(st.sampled_from(sorted(self.holders)))
        tape, writer = self.tapes.get(session, []), self.holders[session]
        event = make_event(session, len(tape) + 1, tape[-1].hash if tape else GENESIS)
        name = hashlib.sha256(body).hexdigest()
        child = os.fork()
        if child == 0:
            self.append_in_child(
                self.sides[0].lease(writer, session, 0), event, {name: body}, statement
            )
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, 1, -signal.SIGKILL)
        if (
            outcome(partial(read, session=session, after=len(tape)), self.sides[0])
            == f"[{event!r}]"
        ):
            memory = self.sides[1]
            memory.store.append(memory.lease(writer, session, 0), event, {name: body})
            self.tapes.setdefault(session, []).append(event)
            self.blobs.add(name)

    def append_in_child(
        self, lease: Lease, event: StoredEvent, blobs: dict[str, bytes], statement: int
    ) -> None:
        """Append, and be killed at the `statement`-th statement; never returns."""
        left = iter(range(statement))

        def trace(_: str) -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with self.sqlite._using() as db:
                db.set_trace_callback(trace)
            self.sqlite.append(lease, event, blobs)
            os._exit(0)
        except StoreError:
            os._exit(1)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), spare=st.integers(0, 2))
    def append_on_a_full_disk(self, data: st.DataObject, spare: int) -> None:
        """What does not fit is refused whole, and what is there stays."""
        session = data.draw(st.sampled_from(sorted(self.holders)))
        tape, writer = self.tapes.get(session, []), self.holders[session]
        event = make_event(session, len(tape) + 1, tape[-1].hash if tape else GENESIS)
        body = os.urandom(200_000)
        name, lease = hashlib.sha256(body).hexdigest(), self.sides[0].lease(writer, session, 0)
        with self.sqlite._using() as db:
            (pages,) = db.execute("PRAGMA page_count").fetchone()
            db.execute(f"PRAGMA max_page_count = {pages + spare}")
        try:
            with pytest.raises(StoreError):
                self.sqlite.append(lease, event, {name: body})
        finally:
            with self.sqlite._using() as db:
                db.execute(f"PRAGMA max_page_count = {2**30}")

    @rule(body=BODIES)
    def put_blob(self, body: bytes) -> None:
        self.blobs.add(self.both(lambda side: side.store.put_blob(body)).strip("'"))

    @precondition(lambda self: self.tapes)
    @rule()
    def close(self) -> None:
        self.both(lambda side: side.store.close())

    @invariant()
    def read_the_same(self) -> None:
        self.both(lambda side: side.store.sessions())
        for session in sorted(set(SESSIONS)):
            for after in (0, 2):
                self.both(partial(read, session=session, after=after))
        for session, tape in self.tapes.items():
            assert list(self.sqlite.read(session)) == tape
        for name in sorted(self.blobs):
            self.both(partial(get_blob, name=name))

    def teardown(self) -> None:
        self.sqlite.close()
        self.folder.cleanup()


def read(side: Side, session: str, after: int) -> list[StoredEvent]:
    return list(side.store.read(session, after))


def get_blob(side: Side, name: str) -> bytes:
    return side.store.get_blob(name)


def is_utf8(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def outcome(act: Callable[[Side], Any], side: Side) -> str:
    """Return what `act` returned or raised, as text that can be compared."""
    try:
        return repr(act(side))
    except (StoreError, ValueError, KeyError) as error:
        return f"{type(error).__name__}: {error}"


TestTwoStores = TwoStores.TestCase
TestTwoStores.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
