"""One SQLite file: opened, kept private, brought up to date, lent to one thread at a time.

Everything that is kept in the file of a store goes through here; nothing here deletes or moves a file.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from codetape.adapters.store import files, objects, rows, schema
from codetape.adapters.store.checks import UnreadableRow
from codetape.adapters.store.remedies import GONE, WAIT, remedy
from codetape.adapters.store.schema import Steps
from codetape.engine.ports import StoreUnusable

if TYPE_CHECKING:
    from sqlite_utils import Database as Tables
    from sqlite_utils import Migrations

Taken = sqlite3.IntegrityError
"""What a row raises whose key is there already."""

_DAMAGE = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_INTERRUPT,  # by ourselves: see Database._bound
}

STEPS, STEPS_PER_BYTE, STEPS_AT_ONCE = 2_000_000, 20, 100_000
"""Of SQLite's machine; a row of ours takes less than one step for each of its bytes."""


LARGEST_ROW = 32 << 20
"""Bytes of a row; what is larger is damage, and not even read."""


class Database:
    """A file for threads and processes; a forked child opens it anew.

    The file is made, with its folder, where there is none. Without a path it is in memory, until it
    is closed. `filesystem` names the file system of a path. Every method may raise StoreUnusable.
    """

    steps: Steps

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        filesystem: Callable[[Path], str] = files.filesystem_of,
    ) -> None:
        self._path = Path(path).absolute() if path is not None else None
        self._filesystem = filesystem
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        _databases.add(self)
        with self._using():  # opens the file: what is wrong with it is said at once
            pass

    @property
    def path(self) -> Path | None:
        """Where the file is; None if it is in memory."""
        return self._path

    def close(self) -> None:
        """Close the file. It is opened again if the store is used again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        """Close what nobody has closed: a result reads from its store for as long as it lives."""
        if connection := getattr(self, "_connection", None):
            connection.close()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread at a time."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._opened()
                self._bound(self._connection)
                yield self._connection
            except UnreadableRow as error:
                raise StoreUnusable(self._name, str(error)) from error
            except sqlite3.ProgrammingError:  # no fault of the file's
                raise
            except (sqlite3.Error, OSError) as error:
                usual = "SQLITE_CANTOPEN" if isinstance(error, OSError) else "SQLITE_CORRUPT"
                kind = getattr(error, "sqlite_errorname", usual)
                raise StoreUnusable(self._name, remedy(kind, str(error), self._free())) from error

    def _bound(self, db: sqlite3.Connection) -> None:
        """Let what is done next take as many steps as the size of the file explains, and no more.

        The pages of a forged file can be a tree in which every branch is the same one. The handler has
        no code of Python's in it: an interrupt of a person would end there, and be lost.
        """
        if self._path is None:
            return
        allowed = (STEPS + STEPS_PER_BYTE * files.size_of(self._path)) // STEPS_AT_ONCE
        db.set_progress_handler(chain(repeat(0, allowed), repeat(1)).__next__, STEPS_AT_ONCE)

    def _free(self) -> int | None:
        """Return what is left on the disk for us, in bytes; None if that cannot be told."""
        if self._path is None:
            return None
        try:
            disk = os.statvfs(self._path.parent)
        except OSError:
            return None
        return disk.f_bavail * disk.f_frsize

    def _overwrite_log(self) -> bool:
        """Empty the write-ahead log, where deleted texts stand too; False if a reader needs it yet."""
        with self._using() as db:
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._using() as db:
            self._check_file()
            with rows.transaction(db, "IMMEDIATE"):
                yield db

    def _check_file(self) -> None:
        """Refuse to write into a file that the path no longer leads to: nobody would find it again."""
        if self._path is not None and files.identity(self._path) != self._file:
            raise StoreUnusable(self._name, GONE)

    @property
    def _name(self) -> str:
        return str(self._path or ":memory:")

    def _opened(self) -> sqlite3.Connection:
        was_empty = True  # nothing of a file without content was ever shown to others
        if self._path is not None:
            files.make_private(self._path)
            self._file = files.identity(self._path)
            was_empty = files.is_empty(self._path)
            if fault := files.fault_beside(self._path):
                raise StoreUnusable(self._name, fault)
        db = sqlite3.connect(
            self._name, timeout=WAIT, isolation_level=None, check_same_thread=False
        )
        try:
            _distrust(db)
            self._bound(db)
            objects.check_objects(db, self._name, _blank)
            if self._is_made_at_once(db):
                migrate(db, self._name, self.steps)
            if self._path is not None:
                # It is ours, or we were refused.
                files.close_to_others(self._path.resolve(), was_empty=was_empty)
                files.tell_of_folders(self._path.resolve())
                _set_durability(db, self._path, self._filesystem(self._path))
            db.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        except BaseException:
            db.close()
            raise
        return db

    def _is_made_at_once(self, _: rows.Db) -> bool:
        """Say whether a file that is opened gets its tables now, or when they are first written."""
        return True

    def _migrate(self) -> None:
        """Make the tables, or bring them up to date."""
        with self._using() as db:
            migrate(db, self._name, self.steps)

    def _forked(self) -> None:
        """In a child of the process that opened it: leave the connection to the parent.

        Not even closing it is allowed, so it is never freed. The lock is a new one: another thread
        may have held the old one, and that thread is not in the child.
        """
        if self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._connection = None
        self._lock = threading.Lock()


_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _after_fork() -> None:
    for database in list(_databases):
        database._forked()  # noqa: SLF001 - the class's own hook


os.register_at_fork(after_in_child=_after_fork)


# --- opening a file -------------------------------------------------------------------------------


def migrate(db: sqlite3.Connection, path: str, steps: Steps) -> None:
    """Bring the tables up to date. Looks first, and writes only if something is to be done."""
    with rows.transaction(db, "DEFERRED"):
        if not schema.is_old(db, path, steps):
            return
    # Not at the top: sqlite-utils brings pandas with it where that is installed, which takes seconds.
    from sqlite_utils import Database as Tables

    tables = Tables(db, recursive_triggers=False, execute_plugins=False)
    db.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")  # ignored by a file that has pages
    with rows.transaction(db, "EXCLUSIVE"):
        if schema.is_old(db, path, steps):  # still, now that nobody else can write
            _migrations(steps).apply(tables)
            db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")


def _migrations(steps: Steps) -> Migrations:
    from sqlite_utils import Migrations

    migrations = Migrations(steps.name)
    for name, statements in steps.by_name.items():

        @migrations(name=name)
        def step(tables: Tables, statements: tuple[str, ...] = statements) -> None:
            for statement in statements:
                tables.execute(statement)

    return migrations


def _distrust(db: sqlite3.Connection) -> None:
    """Let nothing that stands in the file call functions with effects, or fill the memory."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_ROW)


def _blank() -> sqlite3.Connection:
    return sqlite3.connect(":memory:")


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


def damage_of(error: StoreUnusable) -> str:
    """Return what is wrong with the file's content; raises `error` if it is not the content.

    Text that is no UTF-8 comes without a code.
    """
    cause = error.__cause__
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if not isinstance(cause, sqlite3.Error) or code & 0xFF not in _DAMAGE:
        raise error
    return str(cause)
