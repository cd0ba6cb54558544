"""The store of real runs: one SQLite file, safe for many processes.

An append is one transaction and, in WAL mode, one fdatasync: it moves the end of the tape in the
session's row, where the lease is too, and writes the event with its new blobs. Nothing here deletes
or moves a file. What is deleted in it is overwritten.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from codetape.adapters.store import checks, files, pruning, rows, schema
from codetape.adapters.store.checks import Part
from codetape.adapters.store.database import Database, Taken, damage_of
from codetape.engine.ports import (
    Clock,
    DamagedTape,
    Lease,
    LeaseLost,
    SessionOwned,
    SessionRow,
    StoredEvent,
    StoreError,
    StoreUnusable,
    UnknownSession,
)


class SqliteStore(Database):
    """An `EventStore` in one file, for threads and processes; a forked child opens it anew.

    The file is made, with its folder, where there is none. `clock` tells when a lease ends (None:
    the system's time, which is right even for sessions that run on a clock of their own).
    `filesystem` names the file system of a path. Every method may raise StoreUnusable.
    """

    steps = schema.TAPES

    def __init__(
        self,
        path: str | os.PathLike[str],
        clock: Clock | None = None,
        filesystem: Callable[[Path], str] = files.filesystem_of,
    ) -> None:
        self._now = clock.now if clock else checks.utc_now
        super().__init__(path, filesystem)

    # --- leases -----------------------------------------------------------------------------------

    def create(self, session: str, workflow: str, name: str, owner: str) -> Lease:
        checks.check_names(session, workflow, name, owner)
        with self._writing() as db:
            if rows.find(db, session):
                raise StoreError(f"there is a session {session} already")
            pruning.make_room(db, session)
            rows.add_session(db, checks.Record(session, workflow, name))
            return self._lease(db, session, owner)

    def fork(self, session: str, parent: str, seq: int, owner: str) -> Lease:
        checks.check_names(session, owner)
        at = checks.check_branch(parent, seq, self.read(parent, seq - 1))
        with self._writing() as db:
            record = rows.find(db, parent)
            if record is None:  # it was there a moment ago
                raise UnknownSession(parent)
            if rows.find(db, session):
                raise StoreError(f"there is a session {session} already")
            pruning.make_room(db, session)
            rows.add_session(db, checks.branched(session, record, at))
            return self._lease(db, session, owner)

    def acquire(self, session: str, owner: str) -> Lease:
        checks.check_names(session, owner)
        with self._writing() as db:
            record = rows.find(db, session)
            if record is None:
                raise UnknownSession(session)
            if holder := record.holder(self._now()):
                raise SessionOwned(session, holder)
            return self._lease(db, session, owner)

    def _lease(self, db: rows.Db, session: str, owner: str) -> Lease:
        lease = Lease(session, secrets.token_hex(16), owner)
        rows.set_lease(db, lease, checks.expiry(self._now()))
        return lease

    def renew(self, lease: Lease) -> None:
        with self._writing() as db:
            if not rows.renew_lease(db, lease, checks.expiry(self._now())):
                raise LeaseLost(lease.session, checks.taken_by(rows.find(db, lease.session)))

    def release(self, lease: Lease) -> None:
        checks.given_back.add(lease.token)  # true for this process, even if it cannot be written
        with self._writing() as db:
            rows.clear_lease(db, lease)
        checks.given_back.discard(lease.token)

    # --- events -----------------------------------------------------------------------------------

    def append(self, lease: Lease, event: StoredEvent, blobs: Mapping[str, bytes]) -> None:
        checks.check_values(lease, event, blobs)
        with self._writing() as db:
            record = checks.check_turn(rows.find(db, lease.session), lease, event)
            rows.move_end(db, record, event)
            for name, body in blobs.items():
                rows.keep_blob(db, name, body)
            try:
                rows.add_event(db, event)
            except Taken as error:
                reason = "it is there, beyond the end of the tape"
                raise DamagedTape(record.id, event.seq, reason) from error

    def read(self, session: str, after: int = 0) -> Iterator[StoredEvent]:
        after = max(after, 0)
        with self._using() as db:
            record, parts = rows.parts(db, session)
        return checks.verified(record, self._tape(session, parts, max(after, 1)), after)

    def _tape(self, session: str, parts: list[Part], first: int) -> Iterator[StoredEvent]:
        for part in parts:
            yield from self._events(session, replace(part, first=max(part.first, first)))

    def _events(self, session: str, part: Part) -> Iterator[StoredEvent]:
        """Yield the rows as they are, a page at a time: a slow reader holds nothing open."""
        first, last = part.first, part.last
        while first <= last:
            events: list[StoredEvent] = []
            damage = ""
            try:
                with self._using() as db:
                    events.extend(rows.page(db, part.session, first, last))  # up to the first error
            except StoreUnusable as error:
                damage = damage_of(error)
            yield from events
            first += len(events)
            if damage or not events:
                raise DamagedTape(session, first, f"it cannot be read: {damage or 'it is gone'}")

    def sessions(self) -> list[SessionRow]:
        with self._using() as db:
            records = rows.started(db)
        now = self._now()
        return [record.listed(now) for record in records]

    def mark(self, session: str, mark: str) -> None:
        with self._writing() as db:
            if rows.find(db, session) is None:
                raise UnknownSession(session)
            rows.set_mark(db, session, mark)

    def mark_of(self, session: str) -> str | None:
        with self._using() as db:
            return rows.find_mark(db, session)

    # --- care -------------------------------------------------------------------------------------

    def prune(self, sessions: Iterable[str] = ()) -> None:
        """Delete sessions for good, in their order, with all that nobody else needs.

        A fork has to come before the session that it shares events with. Others may write meanwhile;
        one that was cut off goes on at the next time. Raises UnknownSession, SessionOwned for one that
        is running, and StoreError for one that a fork needs; those before it are deleted.
        """
        try:
            for session in sessions:
                self._mark(session)
        finally:
            pruning.finish(self._writing)
            self._overwrite_log()

    def _mark(self, session: str) -> None:
        with self._writing() as db:
            record, now = rows.find(db, session), self._now()
            if record is None:
                raise UnknownSession(session)
            if holder := record.holder(now):
                raise SessionOwned(session, holder)
            for fork in pruning.forks_of(db, session):
                if fork.begun or fork.holder(now):
                    raise StoreError(f"session {session} is needed by its fork {fork.id}")
                pruning.mark(db, fork.id)  # it was reserved, and whoever did that has gone
            pruning.mark(db, session)

    def lost(self) -> list[str]:
        """Return the sessions that have events and are in no list: their own rows are gone."""
        with self._using() as db:
            return pruning.lost(db)

    def compact(self) -> tuple[int, int]:
        """Give free space back to the disk, and return the bytes of the file before and after.

        It writes the file anew, beside the old one: as much space has to be free. Writers wait.
        """
        pruning.finish(self._writing)
        before = self._size()
        with self._using() as db:
            db.execute("VACUUM")
        self._overwrite_log()
        return before, self._size()

    def _size(self) -> int:
        return self._path.stat().st_size if self._path else 0

    # --- blobs ------------------------------------------------------------------------------------

    def put_blob(self, body: bytes) -> str:
        name = checks.digest(body)
        with self._writing() as db:
            rows.keep_blob(db, name, body)
        return name

    def get_blob(self, hash: str) -> bytes:
        try:
            with self._using() as db:
                return rows.find_blob(db, hash)
        except StoreUnusable as error:
            raise ValueError(f"blob {hash} cannot be read: {damage_of(error)}") from error
