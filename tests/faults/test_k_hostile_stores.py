"""Faults of store files that others made: objects that are none of ours, modes that are too wide."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.store.library import Library
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.engine.ports import StoreUnusable
from tests.unit.adapters.test_sqlite_pruning import fill

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"

FORGERIES = {
    "endless view": f"""
        ALTER TABLE sessions RENAME TO other;
        CREATE VIEW sessions AS {ENDLESS}
        SELECT x AS id, 'w' AS workflow, 'n' AS name, 's' AS state, 1 AS seq, 'h' AS head,
            '' AS started_at, '' AS updated_at, NULL AS parent, NULL AS parent_seq,
            NULL AS token, NULL AS owner, NULL AS expires FROM n
    """,
    "steps that are a view": f"""
        ALTER TABLE _sqlite_migrations RENAME TO other;
        CREATE VIEW _sqlite_migrations AS {ENDLESS}
        SELECT 'codetape' AS migration_set, 'm' || x AS name FROM n
    """,
    "trigger": "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM sessions; END",
    "generated column": "ALTER TABLE sessions ADD COLUMN more TEXT AS (hex(zeroblob(99)))",
    "other text": "DROP VIEW session_summary; CREATE VIEW Session_Summary AS SELECT 1 AS session",
    "virtual table": "DROP TABLE blobs; CREATE VIRTUAL TABLE blobs USING fts5 (hash, body)",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tape.db"
    with closing(SqliteStore(path)) as store:
        fill(store, "one")
    return path


@pytest.mark.parametrize("name", FORGERIES)
def test_24_objects_that_are_none_of_ours_are_refused(
    path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are looked at before anything in the file runs."""
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(FORGERIES[name])
    for kind in (SqliteStore, Library):
        with pytest.raises(StoreUnusable, match="none of ours"):
            kind(path)
    assert main(["sessions", "--store", str(path)]) != 0
    assert "Traceback" not in capsys.readouterr().err


def test_24_a_store_with_lessons_and_an_own_view_is_opened(path: Path) -> None:
    with closing(Library(path)) as library:
        library.learn("one", "autocoder", "a request", ["keep it short"])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE VIEW mine AS SELECT id FROM sessions")
        db.execute("CREATE INDEX by_name ON sessions (name)")
    with closing(SqliteStore(path)) as store:
        store.compact()
    for _ in range(2):
        with closing(SqliteStore(path)) as store, closing(Library(path)) as library:
            assert [row.id for row in store.sessions()] == ["one"]
            assert len(library.lessons()) == 1


def test_23_a_store_that_others_could_read_is_made_private(path: Path) -> None:
    path.chmod(0o644)
    with sqlite3.connect(path) as held:  # it has sidecar files of the same mode
        held.execute("UPDATE sessions SET name = 'other'")
        held.commit()
        with pytest.warns(UserWarning, match="could be read by others"):
            store = SqliteStore(path)
        modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert modes == {0o600}
        store.close()
    held.close()
    SqliteStore(path).close()  # says nothing
