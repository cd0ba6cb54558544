"""The file of a store: how it is made, kept private, refused, filled up, and how large it gets."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from codetape.adapters.owner import current_owner
from codetape.adapters.store import database, remedies, schema
from codetape.adapters.store.remedies import remedy
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.chain import GENESIS
from codetape.engine.ports import SessionOwned, StoreUnusable
from codetape.states.values import canonical
from codetape.testing.store_cases import HandClock
from codetape.testing.stores import make_event, write


def local(_: Path) -> str:
    return "ext4"


def open_store(path: Path) -> SqliteStore:
    return SqliteStore(path, filesystem=local)


def ask(path: Path, sql: str) -> object:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchone()[0]


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.db"


# --- private files --------------------------------------------------------------------------------


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_f18_only_the_owner_may_look(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "tape.db"
    with closing(open_store(path)) as store:
        write(store, store.create("one", "autocoder", "", "alice"))
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    assert modes == {"tape.db": 0o600, "tape.db-wal": 0o600, "tape.db-shm": 0o600}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in path.parents[:2]} == {0o700}


@pytest.mark.usefixtures("usual_umask")
def test_only_the_owner_may_look_at_what_a_link_names(tmp_path: Path) -> None:
    target = tmp_path / "away" / "tape.db"
    link = tmp_path / "tape.db"
    link.symlink_to(target)
    open_store(link).close()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_relative_path_is_kept_when_the_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_store(Path("tape.db"))) as store:
        tape = write(store, store.create("one", "autocoder", "", "alice"))
        store.close()
        monkeypatch.chdir("/")
        assert list(store.read("one")) == tape


# --- the journal ----------------------------------------------------------------------------------


class Watched(sqlite3.Connection):
    """A connection that remembers what it was told."""

    told: ClassVar[list[str]] = []

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        self.told.append(sql)
        return super().execute(sql, *parameters)


def test_f4_opening_a_finished_store_only_looks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(path)), closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")  # nobody waits for this one
        monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))
        open_store(path).close()
    settings = [line for line in Watched.told if "=" in line and line.startswith("PRAGMA")]
    assert settings == [
        "PRAGMA trusted_schema = OFF",  # of this connection; nothing is written
        "PRAGMA synchronous = FULL",
        "PRAGMA wal_autocheckpoint = 8000",
        "PRAGMA secure_delete = ON",
    ]
    assert "PRAGMA journal_mode" in Watched.told


def test_a_local_store_has_a_write_ahead_log(path: Path) -> None:
    with closing(open_store(path)) as store:
        assert ask(path, "PRAGMA journal_mode") == "wal"
        with store._using() as db:
            assert db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_f3_a_store_on_a_network_has_a_rollback_journal(path: Path) -> None:
    open_store(path).close()
    with pytest.warns(UserWarning, match=r"tape.db lies on a network file system \(virtiofs\)"):
        store = SqliteStore(path, filesystem=lambda _: "virtiofs")
    with closing(store), store._using() as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)
    open_store(path).close()
    assert ask(path, "PRAGMA journal_mode") == "wal"


def test_a_reader_does_not_hold_up_a_writer(path: Path) -> None:
    with closing(open_store(path)) as store, closing(open_store(path)) as other:
        lease = store.create("one", "autocoder", "", "alice")
        write(store, lease, 2)
        reading = other.read("one")
        next(reading)
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM events").fetchone()
            assert len(write(store, lease)) == 3


# --- the schema -----------------------------------------------------------------------------------


def test_steps_that_are_new_are_done_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(path)) as store:
        tape = write(store, store.create("one", "autocoder", "", "alice"))
    monkeypatch.setitem(schema.MIGRATIONS, "m002_more", ("CREATE TABLE more (id)",))
    for _ in range(2):
        with closing(open_store(path)) as store:
            assert list(store.read("one")) == tape
    assert ask(path, "SELECT count(*) FROM more") == 0


def test_a_step_that_fails_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(path).close()
    before = path.read_bytes()
    with monkeypatch.context() as context:
        context.setitem(
            schema.MIGRATIONS, "m002_bad", ("CREATE TABLE more (id)", "CREATE nonsense")
        )
        with pytest.raises(StoreUnusable, match="nonsense"):
            open_store(path)
    assert path.read_bytes() == before
    open_store(path).close()


def test_a_store_of_a_newer_version_is_left_alone(path: Path) -> None:
    open_store(path).close()
    change(
        path,
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
        " VALUES ('codetape', 'm999_from_the_future', '')",
    )
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match=r"tape.db: a newer codetape has written it: use"):
        open_store(path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with closing(open_store(path)) as store:
        write(store, store.create("one", "autocoder", "", "alice"))


# --- what is no store -----------------------------------------------------------------------------


def test_another_programs_file_is_left_alone(path: Path) -> None:
    change(path, "CREATE TABLE mine (id)")
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match=r"tape.db: it holds another program's data"):
        open_store(path)
    assert path.read_bytes() == before


def test_what_is_no_database_is_left_alone(path: Path) -> None:
    path.write_text("some notes\n" * 1000)
    with pytest.raises(StoreUnusable, match=r"tape.db: it is no SQLite file"):
        open_store(path)
    assert path.read_text() == "some notes\n" * 1000
    with pytest.raises(StoreUnusable, match="it cannot be opened"):
        open_store(path.parent)
    with pytest.raises(StoreUnusable, match="it cannot be opened") as caught:
        open_store(Path("/proc/nowhere/tape.db"))
    assert caught.value.path == "/proc/nowhere/tape.db"


@contextmanager
def nobody() -> Iterator[None]:
    """Act as a user without special rights, whoever runs the tests."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is closed to other users
        path = Path(folder, "tape.db")
        with closing(open_store(path)) as store:
            tape = write(store, store.create("one", "autocoder", "", "alice"))
            path.chmod(0o444)
            Path(folder).chmod(0o755)
        before = path.read_bytes()
        with nobody(), pytest.raises(StoreUnusable, match=r"it cannot be (written|opened)"):
            open_store(path).create("two", "autocoder", "", "bob")
        assert path.read_bytes() == before
        path.chmod(0o600)
        with closing(open_store(path)) as store:
            assert list(store.read("one")) == tape


# --- full disks, and sizes ------------------------------------------------------------------------


class SmallDisk(SqliteStore):
    """A store whose file may have forty pages more than an empty one."""

    pages = 49

    def _opened(self) -> sqlite3.Connection:
        db = super()._opened()
        db.execute(f"PRAGMA max_page_count = {self.pages}")
        return db


def test_f11_a_full_disk_writes_nothing_by_halves(path: Path) -> None:
    with closing(SmallDisk(path, filesystem=local)) as store:
        lease = store.create("one", "autocoder", "", "alice")
        tape = write(store, lease, 5)
        body = random.Random(1).randbytes(200_000)
        name = hashlib.sha256(body).hexdigest()
        event = make_event("one", 6, tape[-1].hash)
        with pytest.raises(StoreUnusable, match="the disk is full and nothing was written"):
            store.append(lease, event, {name: body})
        assert list(store.read("one")) == tape
        with pytest.raises(KeyError):
            store.get_blob(name)
        store.pages = 1000  # somebody has made room
        store.close()
        store.append(lease, event, {name: body})
        assert list(store.read("one")) == [*tape, event]
        assert store.get_blob(name) == body


def test_small_sessions_make_a_small_file(path: Path) -> None:
    open_store(path).close()
    assert path.stat().st_size < 20_000
    file = "".join(f"def function_{i}(a, b): return a * {i} + b\n" for i in range(100))[:4096]
    blob = file.encode()
    with closing(open_store(path)) as store:
        lease = store.create("x" * 26, "autocoder", "sensor-analysis", "alice")
        previous = GENESIS
        for seq in range(1, 21):
            prompt = f"{seq}: what differs from prompt to prompt. ".encode() * 40
            blobs = {hashlib.sha256(body).hexdigest(): body for body in (blob, prompt)}
            data = canonical({"prompt": [*blobs], "more": "y" * 300})
            event = make_event("x" * 26, seq, previous, data=data, request_key="a" * 64)
            store.append(lease, event, blobs)
            previous = event.hash
    assert path.stat().st_size < 60_000
    assert [entry.name for entry in path.parent.iterdir()] == ["tape.db"]


def test_f9_a_large_value_is_kept_once(path: Path) -> None:
    body = random.Random(1).randbytes(1 << 20)
    name = hashlib.sha256(body).hexdigest()
    with closing(open_store(path)) as store:
        lease = store.create("one", "autocoder", "", "alice")
        previous = GENESIS
        for seq in range(1, 51):
            event = make_event("one", seq, previous, data=f'"{name}"')
            store.append(lease, event, {name: body})
            previous = event.hash
    assert path.stat().st_size < 1.2 * len(body)


@pytest.mark.parametrize(("free", "said"), [(0, "the disk is full"), (10**9, "look at the disk")])
def test_f11_a_disk_that_is_too_full_to_read_is_called_full(free: int, said: str) -> None:
    """SQLite cannot make its log there, and calls that an I/O error."""
    assert said in remedy("SQLITE_IOERR_SHMSIZE", "disk I/O error", free)


def test_f11_free_space_is_that_of_the_disk_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remedies, "LEAST", 2**62)
    with pytest.raises(StoreUnusable, match="the disk is full"):
        SqliteStore(tmp_path)  # a folder, which SQLite cannot open


# --- what others do to the file -------------------------------------------------------------------


def remove(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def replace(path: Path) -> None:
    open_store(path.with_name("other.db")).close()
    path.with_name("other.db").replace(path)


@pytest.mark.parametrize("harm", [remove, move, replace])
def test_nothing_is_written_into_a_file_that_nobody_finds_again(
    path: Path, harm: Callable[[Path], None]
) -> None:
    with closing(open_store(path)) as store:
        lease = store.create("one", "autocoder", "", "alice")
        tape = write(store, lease)
        harm(path)
        with pytest.raises(StoreUnusable, match="deleted, moved or replaced"):
            store.append(lease, make_event("one", 2, tape[-1].hash), {})
        assert list(store.read("one")) == tape, "what was written can be saved yet"


def test_a_file_that_is_put_back_is_written_again(path: Path) -> None:
    with closing(open_store(path)) as store:
        lease = store.create("one", "autocoder", "", "alice")
        move(path)
        with pytest.raises(StoreUnusable, match="put it back and resume"):
            write(store, lease)
        path.with_name("moved.db").rename(path)
        tape = write(store, lease)
        assert list(store.read("one")) == tape


def test_a_lease_that_was_given_back_while_the_file_was_locked_is_free_here(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WAIT", 0.0)
    with closing(open_store(path)) as store, closing(sqlite3.connect(path)) as other:
        lease = store.create("one", "autocoder", "", current_owner())
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnusable, match="another process kept it locked"):
            store.release(lease)
        other.rollback()
        assert store.acquire("one", current_owner()).token != lease.token
        with pytest.raises(SessionOwned):
            store.acquire("one", current_owner())


def test_a_lease_of_a_clock_that_was_ahead_does_not_last_for_years(path: Path) -> None:
    clock = HandClock()
    with closing(SqliteStore(path, clock, filesystem=local)) as store:
        store.create("one", "autocoder", "", "alice")
        clock.move(-600)
        with pytest.raises(SessionOwned):
            store.acquire("one", "bob")  # clocks of two hosts may differ by so much
        clock.move(-1e8)
        store.acquire("one", "bob")
