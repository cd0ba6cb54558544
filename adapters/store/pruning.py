"""Taking sessions out of a store: in small batches, so that whoever appends waits for none of them.

A session is first marked, and with that gone from the list. A session that gets its id while its events
are there yet takes the id from them: they, and what was learned, go by a name that no session can have.
Its events go next, and with the last of
them the blobs that no other event needs. All of it can be cut off at any moment and goes on the next
time. A blob is never taken while somebody refers to it: whoever deletes looks once more, in the same
transaction, at the events that have come since the others were read.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from codetape.adapters.store import rows
from codetape.adapters.store.checks import Record
from codetape.adapters.store.rows import Db

BATCH = 200
"""Rows that one transaction deletes: some milliseconds."""

PAGE = 500
"""Events that one transaction reads to see what they need."""

Writing = Callable[[], AbstractContextManager[Db]]
"""Begins a transaction that writes."""


def mark(db: Db, session: str) -> None:
    """Take a session from the list; its events are deleted later."""
    db.execute("INSERT OR IGNORE INTO pruned VALUES (?)", (session,))
    db.execute("DELETE FROM marks WHERE session = ?", (session,))
    db.execute("DELETE FROM sessions WHERE id = ?", (session,))
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'learned'").fetchone():
        _part_from_lessons(db, session)


def _part_from_lessons(db: Db, session: str) -> None:
    """Forget that it was learned from and judged; lessons that stay keep their verdict."""
    db.execute("DELETE FROM learned WHERE session = ?", (session,))
    db.execute(_DELETE_VERDICT, (session,))
    former = _former(session)
    for statement in _RENAME:
        db.execute(statement, (former, session))


def make_room(db: Db, session: str) -> None:
    """Give what is being taken out under this id another name, so that the id is free."""
    if not rows.is_pruned(db, session):
        return
    former = _former(session)
    db.execute("UPDATE events SET session = ? WHERE session = ?", (former, session))
    db.execute("UPDATE pruned SET session = ? WHERE session = ?", (former, session))


def _former(session: str) -> str:
    """Return a name that never comes back: ids of sessions have no blanks."""
    return f"{session} (pruned {secrets.token_hex(16)})"


def forks_of(db: Db, session: str) -> list[Record]:
    """Return the sessions that share events of this one."""
    found = [row[0] for row in db.execute("SELECT id FROM sessions WHERE parent = ?", (session,))]
    return [record for name in found if (record := rows.find(db, name))]


def lost(db: Db) -> list[str]:
    """Return the sessions that have events and no row, and that nobody is taking out."""
    return [str(session) for (session,) in db.execute(_LOST)]


def finish(writing: Writing) -> None:
    """Delete the events of all sessions that are marked, and the blobs that nobody needs then."""
    while _delete_events(writing):
        pass
    _Sweep(writing).run()


def _delete_events(writing: Writing) -> bool:
    """Delete some events and remember the blobs that they had; False if there were none left."""
    with writing() as db:
        db.execute("DELETE FROM pruned WHERE session IN (SELECT id FROM sessions)")  # it lives
        batch = list(db.execute(_MARKED, (BATCH,)))
        for rowid, key, data in batch:
            for name in referred(db, key, data):
                db.execute("INSERT OR IGNORE INTO pruned_blobs VALUES (?)", (name,))
            db.execute("DELETE FROM events WHERE rowid = ?", (rowid,))
        if not batch:
            db.execute("DELETE FROM pruned")
        return bool(batch)


_RENAME = (
    "UPDATE lessons SET session = ? WHERE session = ?",
    "UPDATE verdicts SET session = ? WHERE session = ?",
    "UPDATE artifacts SET session = ? WHERE session = ?",
)
_DELETE_VERDICT = """
    DELETE FROM verdicts WHERE session = ? AND session NOT IN (SELECT session FROM lessons)
"""
_MARKED = """
    SELECT events.rowid, request_key, data FROM events JOIN pruned ON pruned.session = events.session
    LIMIT ?
"""
_LOST = """
    SELECT DISTINCT session FROM events
    WHERE session NOT IN (SELECT id FROM sessions) AND session NOT IN (SELECT session FROM pruned)
"""
_NEXT = """
    SELECT rowid, request_key, data, hash FROM events WHERE rowid > ? ORDER BY rowid LIMIT ?
"""


def referred(db: Db, key: str | None, data: str) -> Iterator[str]:
    """Yield the names of the blobs that an event needs, those of its request too."""
    yield from _names(data)
    if key is not None:
        yield key
        yield from _names(_body(db, key))


def _body(db: Db, name: str) -> str:
    """Return a blob as text; empty if it is gone or damaged, for then it refers to nothing."""
    try:
        return rows.find_blob(db, name).decode()
    except (KeyError, ValueError, zlib.error):
        return ""


def _names(text: object) -> Iterator[str]:
    if not isinstance(text, str) or '"$blob"' not in text:
        return
    try:
        waiting: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        match waiting.pop():
            case {"$blob": str(name)}:
                yield name
            case dict() as items:
                waiting += items.values()
            case list() as items:
                waiting += items


class _Sweep:
    """Deletes blobs of deleted events, unless other events need them too."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._begin()

    def _begin(self) -> None:
        self._needed: set[str] = set()
        self._last, self._hash = 0, ""  # the newest event that was looked at

    def run(self) -> None:
        while self._step():
            pass

    def _step(self) -> bool:
        """Look at more events, or delete some blobs; False if nothing is left to do."""
        with self._writing() as db:
            if self._is_stale(db):  # row numbers may be used again: nothing is known any more
                self._begin()
            candidates = db.execute("SELECT 1 FROM pruned_blobs LIMIT 1").fetchone()
            if not candidates:
                return False
            if self._look(db):
                return True
            return self._delete(db)

    def _is_stale(self, db: Db) -> bool:
        if not self._last:
            return False
        row = db.execute("SELECT hash FROM events WHERE rowid = ?", (self._last,)).fetchone()
        return row is None or row[0] != self._hash

    def _look(self, db: Db) -> bool:
        """Note what the next events need; False if there are no more, so that all were looked at."""
        batch = list(db.execute(_NEXT, (self._last, PAGE)))
        for rowid, key, data, digest in batch:
            self._needed.update(referred(db, key, data))
            self._last, self._hash = rowid, digest
        return len(batch) == PAGE

    def _delete(self, db: Db) -> bool:
        names = list(db.execute("SELECT hash FROM pruned_blobs LIMIT ?", (BATCH,)))
        for (name,) in names:
            if name not in self._needed:
                db.execute("DELETE FROM blobs WHERE hash = ?", (name,))
            db.execute("DELETE FROM pruned_blobs WHERE hash = ?", (name,))
        return bool(names)
