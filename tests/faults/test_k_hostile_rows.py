"""Faults of rows in store files that others made: types that no column of ours has, pages in a ring."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.store.library import Library
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.engine.ports import StoreUnusable
from tests.support.sessions import HAPPY, play

PAGE = 512
READING = (
    ["sessions"],
    ["sessions", "--json"],
    ["verify"],
    ["show", "last"],
    ["replay", "--all"],
    ["lessons"],
    ["lessons", "--json"],
    ["run", "last", "--help"],
    ["prune", "--keep", "0", "--dry-run"],
)
VALUES = {"bytes": b"\xff\x1b[2J", "text": "x\x1b[2J", "negative": -7, "number": 1.5}
COLUMNS = (
    *(f"sessions.{name}" for name in ("id", "workflow", "name", "state", "seq", "head", "parent")),
    *(
        f"sessions.{name}"
        for name in ("started_at", "updated_at", "parent_seq", "owner", "expires")
    ),
    *(f"lessons.{name}" for name in ("lane", "text", "request", "session", "note", "uses", "at")),
    *("verdicts.good", "verdicts.note", "artifacts.path", "artifacts.at"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tape.db"
    with closing(SqliteStore(path)) as store:
        asyncio.run(play(HAPPY, store=store))
    with closing(Library(path)) as library:
        library.learn("one", "autocoder", "count the words", ["count them well"])
        library.feedback("one", "autocoder", good=True, note="as before", request="count the words")
        library.add_artifact("one", "tool", "/tool.py")
    return path


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", VALUES)
def test_values_of_other_types_are_no_traceback(
    path: Path, column: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite lets a column hold anything: each command reads it, or refuses in a line."""
    table, name = column.split(".")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE OR IGNORE {table} SET {name} = ?", (VALUES[value],))
    for command in READING:
        assert main([*command, "--store", str(path)]) in {0, 1, 2, 3}
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    with closing(Library(path)) as library:
        try:
            library.guidance("autocoder", "count the words")
            library.artifacts()
        except StoreUnusable as error:
            assert "unreadable" in error.reason  # noqa: PT017 - some values fit


def in_a_ring(path: Path, table: str, levels: int = 9) -> None:
    """Make the pages of a table a tree in which every branch is the same one: rows without an end."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        find = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root,) = db.execute(find, (table,)).fetchone()
    pages = bytearray(path.read_bytes())
    leaf = len(pages) // PAGE + 1
    pages += pages[(root - 1) * PAGE : root * PAGE] + bytes(PAGE * levels)
    inner = [root, *range(leaf + 1, leaf + levels)]
    for number, child in zip(inner, [*inner[1:], leaf], strict=True):
        pages[(number - 1) * PAGE : number * PAGE] = branch(child)
    pages[28:32] = struct.pack(">I", len(pages) // PAGE)
    path.write_bytes(pages)


def branch(child: int, count: int = 60) -> bytes:
    """Return an inner page of a table all of whose children are one page."""
    cells = [struct.pack(">I", child) + bytes([key + 1]) for key in range(count)]
    starts = [PAGE - 5 * (key + 1) for key in range(count)]
    header = struct.pack(">BHHHBI", 5, 0, count, starts[-1], 0, child)
    top = header + b"".join(struct.pack(">H", start) for start in starts)
    return top.ljust(starts[-1], b"\0") + b"".join(reversed(cells))


@pytest.mark.parametrize("table", ["sessions", "events", "lessons", "_sqlite_migrations"])
def test_a_store_with_rows_without_end_is_refused(path: Path, table: str) -> None:
    """What a statement may do is bounded by the size of the file."""
    in_a_ring(path, table)
    for command in (["sessions"], ["verify"], ["lessons"], ["prune", "--keep", "0", "--yes"]):
        program = [sys.executable, "-m", "codetape", *command, "--store", str(path)]
        done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in {0, 1, 3}
        assert "Traceback" not in done.stderr


def test_a_store_with_rows_without_end_says_why(path: Path) -> None:
    in_a_ring(path, "sessions")
    with (
        closing(SqliteStore(path)) as store,
        pytest.raises(StoreUnusable, match="damaged or forged"),
    ):
        store.sessions()
