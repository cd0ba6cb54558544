"""Long tapes in a moment: recorded in memory, then written to a file in one transaction.

Appended one by one they would wait for the disk at each event, which is not what is measured there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from codetape.adapters.store import rows
from codetape.adapters.store.checks import Record
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.ports import Lease, StoredEvent


@dataclass(frozen=True, slots=True)
class Row:
    """An event with the blobs that the engine appends with it."""

    event: StoredEvent
    blobs: Mapping[str, bytes]


class Recording(MemoryStore):
    """A store in memory that remembers what was appended, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []

    def append(self, lease: Lease, event: StoredEvent, blobs: Mapping[str, bytes]) -> None:
        super().append(lease, event, blobs)
        self.rows.append(Row(event, blobs))


def filled(path: Path, recorded: Iterable[Row]) -> SqliteStore:
    """Return a new store that holds what was recorded; its sessions are free."""
    store = SqliteStore(path)
    db = sqlite3.connect(path, isolation_level=None)
    with closing(db), rows.transaction(db, "IMMEDIATE"):
        for row in recorded:
            _add(db, row)
    return store


def _add(db: rows.Db, row: Row) -> None:
    event = row.event
    record = rows.find(db, event.session) or Record(event.session, "autocoder", "")
    if event.seq == 1:
        rows.add_session(db, record)
    rows.move_end(db, record, event)
    rows.add_event(db, event)
    for name, body in row.blobs.items():
        rows.keep_blob(db, name, body)
