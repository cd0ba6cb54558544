"""A store that lives as long as the process: for tests, and for runs that nobody wants to keep."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from codetape.adapters.store import checks
from codetape.adapters.store.checks import Part, Record
from codetape.engine.ports import (
    Clock,
    Lease,
    LeaseLost,
    SessionOwned,
    SessionRow,
    StoredEvent,
    StoreError,
    UnknownSession,
)


class MemoryStore:
    """An `EventStore` in dictionaries. Safe for threads; another process does not see it.

    `clock` tells when a lease ends (None: the system's time).
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._now = clock.now if clock else checks.utc_now
        self._lock = threading.Lock()
        self._records: dict[str, Record] = {}
        self._tapes: dict[str, list[StoredEvent]] = {}
        self._blobs: dict[str, bytes] = {}
        self._marks: dict[str, str] = {}

    def create(self, session: str, workflow: str, name: str, owner: str) -> Lease:
        checks.check_names(session, workflow, name, owner)
        with self._lock:
            if session in self._records:
                raise StoreError(f"there is a session {session} already")
            self._records[session] = Record(session, workflow, name)
            self._tapes[session] = []
            return self._lease(self._records[session], owner)

    def fork(self, session: str, parent: str, seq: int, owner: str) -> Lease:
        checks.check_names(session, owner)
        at = checks.check_branch(parent, seq, self.read(parent, seq - 1))
        with self._lock:
            if session in self._records:
                raise StoreError(f"there is a session {session} already")
            self._records[session] = checks.branched(session, self._record(parent), at)
            self._tapes[session] = []
            return self._lease(self._records[session], owner)

    def acquire(self, session: str, owner: str) -> Lease:
        checks.check_names(session, owner)
        with self._lock:
            record = self._record(session)
            if holder := record.holder(self._now()):
                raise SessionOwned(session, holder)
            return self._lease(record, owner)

    def renew(self, lease: Lease) -> None:
        with self._lock:
            record = self._records.get(lease.session)
            if record is None or record.token != lease.token:
                raise LeaseLost(lease.session, checks.taken_by(record))
            record.expires = checks.expiry(self._now())

    def release(self, lease: Lease) -> None:
        with self._lock:
            record = self._records.get(lease.session)
            if record and record.token == lease.token:
                record.token = record.owner = record.expires = None

    def append(self, lease: Lease, event: StoredEvent, blobs: Mapping[str, bytes]) -> None:
        checks.check_values(lease, event, blobs)
        with self._lock:
            record = checks.check_turn(self._records.get(lease.session), lease, event)
            record.seq, record.head, record.state = event.seq, event.hash, event.dest
            record.started_at, record.updated_at = record.started_at or event.at, event.at
            self._tapes[lease.session].append(event)
            self._blobs.update((name, bytes(body)) for name, body in blobs.items())

    def read(self, session: str, after: int = 0) -> Iterator[StoredEvent]:
        with self._lock:
            record = replace(self._record(session))  # as it is now: the events are read later
            parts = checks.parts_of(record, record.seq, self._records.get)
            tape = chain.from_iterable(map(self._events, parts))
            events = tuple(event for event in tape if event.seq >= after)
        return checks.verified(record, events, max(after, 0))

    def _events(self, part: Part) -> list[StoredEvent]:
        return self._tapes[part.session][: part.last - part.first + 1]

    def sessions(self) -> list[SessionRow]:
        with self._lock:
            now = self._now()
            rows = [record.listed(now) for record in self._records.values() if record.begun]
        return sorted(rows, key=lambda row: row.started_at)

    def mark(self, session: str, mark: str) -> None:
        with self._lock:
            self._marks[self._record(session).id] = mark

    def mark_of(self, session: str) -> str | None:
        return self._marks.get(session) or None

    def put_blob(self, body: bytes) -> str:
        name = checks.digest(body)
        with self._lock:
            self._blobs[name] = bytes(body)
        return name

    def get_blob(self, hash: str) -> bytes:
        return self._blobs[hash]

    def close(self) -> None:
        """Nothing is to be freed: what was written stays as long as the store."""

    def _record(self, session: str) -> Record:
        try:
            return self._records[session]
        except KeyError:
            raise UnknownSession(session) from None

    def _lease(self, record: Record, owner: str) -> Lease:
        record.token, record.owner = secrets.token_hex(16), owner
        record.expires = checks.expiry(self._now())
        return Lease(record.id, record.token, owner)
