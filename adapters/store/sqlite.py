"""The store of real runs: one SQLite file, safe for many processes.

An append is one transaction and, in WAL mode, one fdatasync: it moves the end of the tape in the
session's row, where the lease is too, and writes the event with its new blobs. Nothing here deletes
or moves a file.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codetape.adapters.store import checks, files, rows, schema
from codetape.adapters.store.checks import Part
from codetape.adapters.store.remedies import WAIT, remedy
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

if TYPE_CHECKING:
    from sqlite_utils import Database, Migrations

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG}


class SqliteStore:
    """An `EventStore` in one file, for threads and processes; a forked child opens it anew.

    The file is made, with its folder, where there is none. `clock` tells when a lease ends (None:
    the system's time, which is right even for sessions that run on a clock of their own).
    `filesystem` names the file system of a path. Every method may raise StoreUnusable.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        clock: Clock | None = None,
        filesystem: Callable[[Path], str] = files.filesystem_of,
    ) -> None:
        self._path = Path(path).absolute()
        self._now = clock.now if clock else checks.utc_now
        self._filesystem = filesystem
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        _stores.add(self)
        with self._using():  # opens the file: what is wrong with it is said at once
            pass

    # --- leases -----------------------------------------------------------------------------------

    def create(self, session: str, workflow: str, name: str, owner: str) -> Lease:
        checks.check_names(session, workflow, name, owner)
        with self._writing() as db:
            if rows.find(db, session):
                raise StoreError(f"there is a session {session} already")
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
        with self._writing() as db:
            rows.clear_lease(db, lease)

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
            except sqlite3.IntegrityError as error:
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
                damage = _damage(error)
            yield from events
            first += len(events)
            if damage or not events:
                raise DamagedTape(session, first, f"it cannot be read: {damage or 'it is gone'}")

    def sessions(self) -> list[SessionRow]:
        with self._using() as db:
            records = rows.started(db)
        now = self._now()
        return [record.listed(now) for record in records]

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
            raise ValueError(f"blob {hash} cannot be read: {_damage(error)}") from error

    # --- the connection ---------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file. It is opened again if the store is used again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread at a time."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._opened()
                yield self._connection
            except sqlite3.ProgrammingError:  # no fault of the file's
                raise
            except (sqlite3.Error, OSError) as error:
                usual = "SQLITE_CANTOPEN" if isinstance(error, OSError) else "SQLITE_CORRUPT"
                kind = getattr(error, "sqlite_errorname", usual)
                raise StoreUnusable(str(self._path), remedy(kind, str(error))) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._using() as db, rows.transaction(db, "IMMEDIATE"):
            yield db

    def _opened(self) -> sqlite3.Connection:
        files.make_private(self._path)
        db = sqlite3.connect(self._path, WAIT, isolation_level=None, check_same_thread=False)
        try:
            _migrate(db, self._path)
            _set_durability(db, self._path, self._filesystem(self._path))
        except BaseException:
            db.close()
            raise
        return db

    def _forked(self) -> None:
        """In a child of the process that opened it: leave the connection to the parent.

        Not even closing it is allowed, so it is never freed. The lock is a new one: another thread
        may have held the old one, and that thread is not in the child.
        """
        if self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._connection = None
        self._lock = threading.Lock()


_stores: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_stores):
        store._forked()  # noqa: SLF001 - the class's own hook


os.register_at_fork(after_in_child=_after_fork)


# --- opening a file -------------------------------------------------------------------------------


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring the tables up to date. Looks first, and writes only if something is to be done."""
    with rows.transaction(db, "DEFERRED"):
        if not schema.is_old(db, str(path)):
            return
    # Not at the top: sqlite-utils brings pandas with it where that is installed, which takes seconds.
    from sqlite_utils import Database

    tables = Database(db, recursive_triggers=False, execute_plugins=False)
    db.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")  # ignored by a file that has pages
    with rows.transaction(db, "EXCLUSIVE"):
        if schema.is_old(db, str(path)):  # still, now that nobody else can write
            _migrations().apply(tables)
            db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")


def _migrations() -> Migrations:
    from sqlite_utils import Migrations

    migrations = Migrations(schema.NAME)
    for name, statements in schema.MIGRATIONS.items():

        @migrations(name=name)
        def step(tables: Database, statements: tuple[str, ...] = statements) -> None:
            for statement in statements:
                tables.execute(statement)

    return migrations


def _set_durability(db: sqlite3.Connection, path: Path, filesystem: str) -> None:
    """Choose the journal: WAL, which needs memory shared by all users of the file, if it can be."""
    wanted = "delete" if files.is_shared(filesystem) else "wal"
    if _set_journal(db, wanted) == "wal":
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA wal_autocheckpoint = {schema.CHECKPOINT_PAGES}")
        return
    # Here the end of a transaction is the end of its journal file: EXTRA syncs the folder too.
    db.execute("PRAGMA synchronous = EXTRA")
    place = f"on a network file system ({filesystem})" if filesystem else "where WAL does not work"
    warnings.warn(f"store {path} lies {place}: it is slower, and readers wait", stacklevel=2)


def _set_journal(db: sqlite3.Connection, wanted: str) -> str:
    """Set the journal mode where it differs, and return the one that holds.

    Others may be doing the same, and for this change SQLite does not wait for them by itself.
    """
    deadline = time.monotonic() + WAIT
    while True:
        mode = str(db.execute("PRAGMA journal_mode").fetchone()[0])
        if mode == wanted:
            return mode
        try:
            return str(db.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _damage(error: StoreUnusable) -> str:
    """Return what is wrong with the file's content; raises `error` if it is not the content.

    Text that is no UTF-8 comes without a code.
    """
    cause = error.__cause__
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if not isinstance(cause, sqlite3.Error) or code & 0xFF not in _DAMAGE:
        raise error
    return str(cause)
