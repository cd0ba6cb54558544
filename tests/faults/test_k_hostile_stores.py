"""Faults of store files that others made: objects that are none of ours, modes that are too wide."""

from __future__ import annotations

import grp
import os
import pwd
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.store import files
from codetape.adapters.store.library import Library
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.cli.doctor import _store
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
    "computed index": "CREATE INDEX i ON events (instr(data, name))",
    "index of some": "CREATE INDEX i ON events (name)WHERE data LIKE '%a%b'",
    "index of a sum": "CREATE UNIQUE INDEX i ON blobs (body || hash)",
    "steps that are computed": """
        ALTER TABLE _sqlite_migrations RENAME TO other;
        CREATE TABLE _sqlite_migrations (migration_set TEXT, at TEXT, "name"AS(hex(at)));
        INSERT INTO _sqlite_migrations SELECT migration_set, applied_at FROM other
    """,
    "steps that are checked": """
        ALTER TABLE _sqlite_migrations RENAME TO other;
        CREATE TABLE _sqlite_migrations (
            id INTEGER PRIMARY KEY, migration_set TEXT, name TEXT CHECK(instr(name, 'x') = 0), at TEXT
        );
        INSERT INTO _sqlite_migrations SELECT * FROM other
    """,
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


@pytest.mark.parametrize("mode", [0o777, 0o757])
@pytest.mark.parametrize("above", [False, True])
def test_23_a_folder_that_others_can_change_is_told(path: Path, mode: int, above: bool) -> None:
    """They could put another file in the place of the store; the folder's mode is left as it is."""
    folder = path.parent
    if above:
        folder = path.parent / "above"
        (folder / "below").mkdir(parents=True)
        path = path.rename(folder / "below" / path.name)
    folder.chmod(mode)
    with pytest.warns(UserWarning, match="others can change") as told:
        SqliteStore(path).close()
    assert str(folder) in str(told[0].message)
    assert stat.S_IMODE(folder.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o1777, 0o755, 0o700])
def test_23_a_folder_that_others_cannot_change_is_not_told(path: Path, mode: int) -> None:
    """In one like /tmp each may change what is theirs; to read the names of files is no harm."""
    path.parent.chmod(mode)
    SqliteStore(path).close()


@pytest.mark.parametrize(("mode", "gid", "told"), [(0o775, -1, False), (0o775, 65534, True)])
def test_23_a_group_of_the_user_alone_is_the_user(mode: int, gid: int, told: bool) -> None:
    """Many systems give each user a group of the same name, and folders that it may change."""
    own = Path.home().stat()
    user = pwd.getpwuid(os.geteuid())
    gid = user.pw_gid if gid < 0 else gid
    status = os.stat_result((stat.S_IFDIR | mode, 1, 1, 1, user.pw_uid, gid, *own[6:10]))
    private = grp.getgrgid(user.pw_gid).gr_name == user.pw_name
    assert files.others_can_change(status) is (told or not private)


def test_23_doctor_tells_who_can_see_the_folder(path: Path) -> None:
    path.parent.chmod(0o755)
    assert "others can list" in _store(str(path))[1]
    path.parent.chmod(0o700)
    assert "others" not in _store(str(path))[1]
