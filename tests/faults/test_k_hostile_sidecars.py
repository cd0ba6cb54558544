"""Faults of files beside a store that others made: what SQLite does with them before it reads."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.store.library import Library
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.engine.ports import StoreUnusable
from tests.unit.adapters.test_sqlite_pruning import fill

MAGIC = bytes.fromhex("d9d505f920a163d7")
SECTOR = 512
NONCE = 1234


def page_sum(page: bytes) -> int:
    """Return the checksum of a page in a journal: every 200th byte from its end."""
    return (NONCE + sum(page[at] for at in range(len(page) - 200, 0, -200))) & 0xFFFFFFFF


def journal_that_names(store: Path, victim: Path, *, padding: bytes = b"") -> bytes:
    """Return a hot journal of `store`, as one of several whose common journal is `victim`."""
    name, page = os.fsencode(victim), store.read_bytes()[:SECTOR]
    pages = store.stat().st_size // SECTOR
    header = MAGIC + struct.pack(">IIIII", 1, NONCE, pages, SECTOR, SECTOR)
    record = struct.pack(">I", 1) + page + struct.pack(">I", page_sum(page))
    tail = struct.pack(">I", 0x40000000 // SECTOR + 1) + name
    tail += struct.pack(">II", len(name), sum(name)) + MAGIC
    return header.ljust(SECTOR, b"\0") + record + padding + tail


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that its last user left without a log."""
    path = tmp_path / "clone" / "codetape.db"
    with closing(SqliteStore(path)) as store:
        fill(store, "one")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    return path


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


@pytest.mark.parametrize("open_", [SqliteStore, Library])
def test_a_journal_that_names_a_file_deletes_nothing(
    path: Path, tmp_path: Path, open_: Callable[[Path], object]
) -> None:
    """SQLite deletes the file that a journal names as the common one of several."""
    victim = tmp_path / "thesis.txt"
    victim.write_text("all of it")
    beside(path, "-journal").write_bytes(journal_that_names(path, victim))
    with pytest.raises(StoreUnusable, match="journal"):
        open_(path)
    assert victim.read_text() == "all of it"


def test_a_linked_store_is_looked_at_where_it_lies(path: Path, tmp_path: Path) -> None:
    victim, link = tmp_path / "thesis.txt", tmp_path / "link.db"
    victim.write_text("all of it")
    link.symlink_to(path)
    beside(path, "-journal").write_bytes(journal_that_names(path, victim, padding=bytes(SECTOR)))
    assert main(["sessions", "--store", str(link)]) == 3
    assert victim.exists()


def test_a_journal_of_a_crash_is_played_back(path: Path) -> None:
    """One that names no other file is what a crash of ours leaves."""
    whole = journal_that_names(path, path)
    beside(path, "-journal").write_bytes(whole[: SECTOR + SECTOR + 8])
    with closing(SqliteStore(path)) as store:
        assert [row.id for row in store.sessions()] == ["one"]


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_a_pipe_beside_a_store_is_refused(path: Path, end: str) -> None:
    """SQLite would wait for its other end for ever."""
    os.mkfifo(beside(path, end))
    program = [sys.executable, "-m", "codetape", "sessions", "--store", str(path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "no regular file" in done.stderr


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_a_link_beside_a_store_changes_no_mode(path: Path, tmp_path: Path, end: str) -> None:
    """Files beside a store are made private with it: never a file elsewhere."""
    victim = tmp_path / "page.html"
    victim.write_text("for all to read")
    victim.chmod(0o644)
    path.chmod(0o644)
    beside(path, end).symlink_to(victim)
    with pytest.raises(StoreUnusable, match="no regular file"):
        SqliteStore(path)
    assert stat.S_IMODE(victim.stat().st_mode) == 0o644
    assert victim.read_text() == "for all to read"
