"""The key of the user and the marks made with it: which sessions were opened here."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.keys import key_file, user_key
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.marks import is_marked, mark
from codetape.states.job import Budget, Job

JOB = Job(prompt="x", network_access=True)


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CODETAPE_KEY_FILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "codetape" / "key"


def marked() -> MemoryStore:
    store = MemoryStore()
    store.create("one", "autocoder", "a name", "alice")
    mark(store, "one", JOB)
    return store


def test_a_key_is_made_once_and_private(key: Path) -> None:
    assert key_file() == key
    made = user_key()
    assert len(made) == 32
    assert key.stat().st_mode & 0o777 == 0o600
    assert user_key() == made
    assert os.listdir(key.parent) == ["key"]


def _made(number: int) -> bytes:
    return user_key()


def test_processes_at_once_have_one_key(key: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        keys = pool.map(_made, range(8), chunksize=1)
    assert set(keys) == {key.read_bytes()}
    assert os.listdir(key.parent) == ["key"]


@pytest.mark.parametrize("fault", ["short", "long", "open", "folder", "device"])
def test_what_is_no_private_key_is_refused(key: Path, fault: str) -> None:
    key.parent.mkdir(parents=True)
    if fault == "folder":
        key.mkdir()
    elif fault == "device":
        os.mkfifo(key, 0o600)
    else:
        key.write_bytes(b"x" * {"short": 31, "long": 33, "open": 32}[fault])
        key.chmod(0o644 if fault == "open" else 0o600)
    with pytest.raises(OSError, match="key"):
        user_key()


def test_a_mark_holds_for_its_session_and_job_alone(key: Path) -> None:
    store = marked()
    assert is_marked(store, "one", JOB)
    assert is_marked(store, "one", JOB.model_copy(update={"budget": Budget(calls=3)}))
    assert not is_marked(store, "one", JOB.model_copy(update={"secrets": ("A",)}))
    assert not is_marked(store, "two", JOB)
    store.create("two", "autocoder", "a name", "alice")
    store.mark("two", store.mark_of("one") or "")
    assert not is_marked(store, "two", JOB)


def test_another_key_marks_nothing(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = marked()
    monkeypatch.setenv("CODETAPE_KEY_FILE", str(key.with_name("other")))
    assert not is_marked(store, "one", JOB)


@pytest.mark.parametrize("text", ["", "é", "0" * 64])
def test_a_forged_mark_is_none(key: Path, text: str) -> None:
    store = marked()
    store.mark("one", text)
    assert not is_marked(store, "one", JOB)


def test_without_a_home_only_this_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CODETAPE_KEY_FILE", str(tmp_path / "file" / "key"))
    with caplog.at_level(logging.WARNING):
        store = marked()
        assert is_marked(store, "one", JOB)
    assert len(caplog.records) == 1
    monkeypatch.setenv("CODETAPE_KEY_FILE", str(tmp_path / "key"))
    assert not is_marked(store, "one", JOB)


def test_a_pruned_session_has_no_mark_left(key: Path, tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "a.db")) as store:
        store.release(store.create("one", "autocoder", "a name", "alice"))
        mark(store, "one", JOB)
        store.prune(["one"])
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        assert db.execute("SELECT COUNT(*) FROM marks").fetchone() == (0,)


def test_a_store_without_marks_is_marked_in_this_process(key: Path) -> None:
    class Old:
        """A store that knows no marks."""

    mark(Old(), "of-an-old-store", JOB)  # type: ignore[arg-type]
    assert is_marked(Old(), "of-an-old-store", JOB)
    assert not is_marked(Old(), "another", JOB)
