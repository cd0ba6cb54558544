"""Both stores keep the contract."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.ports import Clock, EventStore
from codetape.testing.stores import EventStoreContract


class TestSqliteStore(EventStoreContract):
    def make_store(self, clock: Clock, folder: Path) -> EventStore:
        return SqliteStore(folder / "tape.db", clock, filesystem=lambda _: "ext4")


@pytest.mark.filterwarnings("ignore:store .* lies on a network file system")
class TestSqliteStoreOnNetwork(EventStoreContract):
    """The same without a write-ahead log."""

    def make_store(self, clock: Clock, folder: Path) -> EventStore:
        return SqliteStore(folder / "tape.db", clock, filesystem=lambda _: "nfs4")


class TestMemoryStore(EventStoreContract):
    gaps: ClassVar[dict[str, str]] = {
        "test_what_was_written_is_there_for_the_next_process": "memory ends with its process",
    }

    def make_store(self, clock: Clock, folder: Path) -> EventStore:
        return MemoryStore(clock)
