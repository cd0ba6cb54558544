"""The tables, as numbered steps. A step that was released is never changed: add another.

`sessions` holds what a list of sessions shows, the end of each tape and its lease. An append moves
the end and writes the event in one transaction, so a tape that lost its tail is found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codetape.adapters.store import views
from codetape.adapters.store.rows import Db
from codetape.engine.ports import StoreUnusable

APPLICATION_ID = 0x63746170  # "ctap", in the file's header: this is a store, not somebody's data

# An empty store has nine pages, one for each table and index, and most sessions are small. A row that
# does not fit fills further pages to their last byte, so that small pages cost no space in long
# tapes either: with pages of 512, 1024, 2048 and 4096 bytes, a session of twenty events takes 53, 63,
# 74 and 88 KiB and ten thousand events take 2.6, 2.9, 3.1 and 2.9 KiB each, in the same time.
PAGE_SIZE = 512

# The log is emptied into the file at as many bytes as with SQLite's usual pages of 4096.
CHECKPOINT_PAGES = 8000

MIGRATIONS: dict[str, tuple[str, ...]] = {
    "m001_tapes": (
        """
        CREATE TABLE sessions (
            id TEXT NOT NULL PRIMARY KEY,
            workflow TEXT NOT NULL,
            name TEXT NOT NULL,
            state TEXT NOT NULL,
            seq INTEGER NOT NULL,       -- the last event
            head TEXT NOT NULL,         -- its hash
            started_at TEXT NOT NULL,   -- the time of the first event, empty before it
            updated_at TEXT NOT NULL,   -- the time of the last event
            parent TEXT,
            parent_seq INTEGER,
            token TEXT,                 -- the lease: who may append, and until when
            owner TEXT,
            expires TEXT
        )
        """,
        # With a rowid: a WITHOUT ROWID table spills rows over a quarter of a page into pages of
        # their own.
        """
        CREATE TABLE events (
            session TEXT NOT NULL,
            seq INTEGER NOT NULL,
            name TEXT NOT NULL,
            version INTEGER NOT NULL,
            source TEXT NOT NULL,
            dest TEXT NOT NULL,
            request_key TEXT,
            data TEXT NOT NULL,
            at TEXT NOT NULL,
            hash TEXT NOT NULL,
            PRIMARY KEY (session, seq)
        )
        """,
        "CREATE TABLE blobs (hash TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL)  -- zlib",
    ),
    "m002_pruning_and_views": (
        # What is being taken out: see pruning.py.
        "CREATE TABLE pruned (session TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE pruned_blobs (hash TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID",
        *views.VIEWS,
    ),
    "m003_marks": (
        # Which sessions the user opened here: see codetape/marks.py.
        "CREATE TABLE marks (session TEXT NOT NULL PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID",
    ),
    "m004_script_runs": views.WITH_SCRIPTS,
}


@dataclass(frozen=True)
class Steps:
    """What makes some of the tables of a file; `name` is how the file records that they are done."""

    name: str
    by_name: Mapping[str, tuple[str, ...]]


TAPES = Steps("codetape", MIGRATIONS)


def is_old(db: Db, path: str, of: Steps) -> bool:
    """Say whether steps are to be done yet. Raises StoreUnusable for a file that is not ours."""
    mark = db.execute("PRAGMA application_id").fetchone()[0]
    if mark != APPLICATION_ID:
        if mark or db.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise StoreUnusable(path, "it holds another program's data: name another file")
        return True
    steps = "SELECT name FROM _sqlite_migrations WHERE migration_set = ?"
    done = {name for (name,) in db.execute(steps, (of.name,))}
    if done - of.by_name.keys():
        raise StoreUnusable(
            path, "a newer codetape has written it: use that version or a newer one"
        )
    return bool(of.by_name.keys() - done)
