"""The statements that read and write the rows of a store. Whoever calls holds the connection."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from codetape.adapters.store.checks import LARGEST, Part, Record, digest, parts_of
from codetape.engine.codec import LARGEST_BLOB
from codetape.engine.ports import DamagedTape, Lease, StoredEvent, UnknownSession

# The columns in the order of the fields of Record and StoredEvent.
_FIND = """
    SELECT id, workflow, name, state, seq, head, started_at, updated_at, parent, parent_seq,
        token, owner, expires
    FROM sessions WHERE id = ?
"""
_STARTED = """
    SELECT id, workflow, name, state, seq, head, started_at, updated_at, parent, parent_seq,
        token, owner, expires
    FROM sessions WHERE seq > coalesce(parent_seq, 0) ORDER BY started_at, rowid
"""
_PAGE = """
    SELECT session, seq, name, version, source, dest, request_key, data, at, hash
    FROM events WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT 256
"""
_ADD_SESSION = "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MOVE_END = """
    UPDATE sessions SET seq = ?, head = ?, state = ?, started_at = ?, updated_at = ? WHERE id = ?
"""
_SET_LEASE = "UPDATE sessions SET token = ?, owner = ?, expires = ? WHERE id = ?"
_RENEW_LEASE = "UPDATE sessions SET expires = ? WHERE id = ? AND token = ?"
_CLEAR_LEASE = """
    UPDATE sessions SET token = NULL, owner = NULL, expires = NULL WHERE id = ? AND token = ?
"""


class Cursor(Protocol):
    """The part of a database cursor that is used here."""

    @property
    def rowcount(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any: ...


class Db(Protocol):
    """The part of a database connection that is used here."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...


@contextmanager
def transaction(db: Db, kind: str) -> Iterator[None]:
    """Do all that is in the block, or nothing; `kind` is DEFERRED, IMMEDIATE or EXCLUSIVE."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some errors have ended it already
            db.execute("ROLLBACK")
        raise


def find(db: Db, session: str) -> Record | None:
    """Return the row of a session, None if there is none."""
    row = db.execute(_FIND, (session,)).fetchone()
    return Record(*row) if row else None


def started(db: Db) -> list[Record]:
    """Return the rows of the sessions that have an event, the oldest first."""
    return [Record(*row) for row in db.execute(_STARTED)]


def parts(db: Db, session: str) -> tuple[Record, list[Part]]:
    """Return the row of a session and who has written its tape, both of one moment.

    Raises UnknownSession, and DamagedTape where there are events of an unknown session.
    """
    with transaction(db, "DEFERRED"):
        record = find(db, session)
        last = db.execute("SELECT max(seq) FROM events WHERE session = ?", (session,)).fetchone()[0]
        if record is None and (last is None or is_pruned(db, session)):
            raise UnknownSession(session)
        if record is None or not isinstance(record.seq, int):
            raise DamagedTape(session, 1, "the session's own row is missing or unreadable")
        if last is not None and not isinstance(last, int):
            last = LARGEST  # a damaged row: whoever reads up to here comes upon it
        end = max(last or 0, record.seq if record.parent else 0)
        return record, parts_of(record, end, partial(find, db))


def is_pruned(db: Db, session: str) -> bool:
    """Say whether a session is being taken out."""
    return bool(db.execute("SELECT 1 FROM pruned WHERE session = ?", (session,)).fetchone())


def page(db: Db, session: str, first: int, last: int) -> Iterator[StoredEvent]:
    """Yield the events `first` to `last` of a session, a few hundred at most."""
    for row in db.execute(_PAGE, (session, first, last)):
        yield StoredEvent(*row)


def add_session(db: Db, record: Record) -> None:
    db.execute(_ADD_SESSION, _values(record))


def add_event(db: Db, event: StoredEvent) -> None:
    db.execute(_ADD_EVENT, _values(event))


def move_end(db: Db, record: Record, event: StoredEvent) -> None:
    """Write into the session's row that its tape ends with `event`."""
    start = record.started_at or event.at
    db.execute(_MOVE_END, (event.seq, event.hash, event.dest, start, event.at, record.id))


def set_lease(db: Db, lease: Lease, expires: str) -> None:
    db.execute(_SET_LEASE, (lease.token, lease.owner, expires, lease.session))


def renew_lease(db: Db, lease: Lease, expires: str) -> bool:
    """Move the end of a lease; False if it is no longer the session's."""
    return db.execute(_RENEW_LEASE, (expires, lease.session, lease.token)).rowcount == 1


def clear_lease(db: Db, lease: Lease) -> None:
    """End a lease, if it is still the session's."""
    db.execute(_CLEAR_LEASE, (lease.session, lease.token))


def keep_blob(db: Db, name: str, body: bytes) -> None:
    """Keep a blob, once. A blob that recurs is not even compressed again."""
    if not db.execute("SELECT 1 FROM blobs WHERE hash = ?", (name,)).fetchone():
        db.execute("INSERT INTO blobs (hash, body) VALUES (?, ?)", (name, zlib.compress(body)))


def set_mark(db: Db, session: str, mark: str) -> None:
    """Keep a mark in the place of the old one."""
    db.execute("INSERT OR REPLACE INTO marks (session, mark) VALUES (?, ?)", (session, mark))


def find_mark(db: Db, session: str) -> str | None:
    """Return the mark of a session; None if it has none."""
    row = db.execute("SELECT mark FROM marks WHERE session = ?", (session,)).fetchone()
    return str(row[0]) or None if row else None


def find_blob(db: Db, name: str) -> bytes:
    """Return the body of a blob. Raises KeyError; ValueError if it is not what was written."""
    row = db.execute("SELECT body FROM blobs WHERE hash = ?", (name,)).fetchone()
    if row is None:
        raise KeyError(name)
    body = _unpacked(name, row[0])
    if digest(body) != name:
        raise ValueError(f"blob {name} does not fit its hash")
    return body


def _unpacked(name: str, packed: bytes) -> bytes:
    """Unpack a blob, and no more of it than a blob can have. Raises ValueError."""
    unpacking = zlib.decompressobj()
    try:
        body = unpacking.decompress(packed, LARGEST_BLOB + 1)
    except (zlib.error, TypeError) as error:
        raise ValueError(f"blob {name} cannot be unpacked: {error}") from error
    if len(body) > LARGEST_BLOB:
        raise ValueError(f"blob {name} is larger than {LARGEST_BLOB >> 20} MB")
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError(f"blob {name} cannot be unpacked: it is cut off, or more follows it")
    return body


def _values(row: Record | StoredEvent) -> list[Any]:
    return [getattr(row, column) for column in row.__slots__]
