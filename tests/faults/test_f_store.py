"""Faults of stores: many writers, full disks, hostile values. Others stand beside the store's tests."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store import database, files
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.engine.chain import GENESIS
from codetape.engine.ports import ConcurrentAppend, EventStore, StoreUnusable
from codetape.engine.tape import read
from codetape.replay.export import export_tape
from codetape.replay.imports import OtherContent, import_tape
from codetape.replay.replayer import replay
from codetape.states.values import Answer, RunOutcome, TestReport, TestResult
from codetape.testing.stores import make_event, write
from tests.support.sessions import HAPPY, ID, JOB, engine, play


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.db"


def test_f5_looking_opens_nothing_for_writing(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command that only looks works while another process is writing, and waits for nobody."""
    with closing(SqliteStore(path)) as store:
        asyncio.run(play(HAPPY, store=store))
    before = path.read_bytes()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        for words in (
            ["sessions"], ["show", "last"], ["show", "last", "--events"], ["replay", "last"],
            ["replay", "--all"], ["verify"], ["diff", "last", "last"],
        ):  # fmt: skip
            assert main([*words, "--store", str(path)]) == 0, words
    capsys.readouterr()
    assert path.read_bytes() == before


@pytest.mark.filterwarnings("default:store .* lies on a network file system")
def test_f3_a_store_on_a_network_says_so_in_one_line(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_mount", lambda *_: "nfs4")
    with pytest.warns(UserWarning, match="nfs4"), closing(SqliteStore(path)) as store:
        asyncio.run(play(HAPPY, store=store))
    assert main(["replay", "last", "--store", str(path)]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"codetape: warning: store {path} lies on a network file system (nfs4): it is slower, and "
        "readers wait"
    )
    assert [file.name for file in path.parent.iterdir()] == ["tape.db"]  # no memory to share


def test_f7_a_store_that_is_locked_is_not_taken_for_a_broken_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteStore(path)) as store:
        tape = write(store, store.create("one", "autocoder", "", "alice"), 3)
    before = path.read_bytes()
    monkeypatch.setattr(database, "WAIT", 0.05)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnusable, match="another process kept it locked"):
            SqliteStore(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["tape.db"]
    with closing(SqliteStore(path)) as store:
        assert list(store.read("one")) == tape


def test_f8_of_two_appenders_none_overwrites_the_other(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        lease = store.create("one", "autocoder", "", "alice")
        start = Barrier(2)

        def work(name: str) -> None:
            with closing(SqliteStore(path)) as mine:
                start.wait()
                done = 0
                while done < 100:
                    row = next((r for r in mine.sessions()), None)
                    seq, head = (row.seq, row.head) if row else (0, GENESIS)
                    try:
                        mine.append(lease, make_event("one", seq + 1, head, data=f'"{name}"'), {})
                        done += 1
                    except ConcurrentAppend:
                        continue

        threads = [Thread(target=work, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tape = list(store.read("one"))
    assert [event.seq for event in tape] == list(range(1, 201))
    assert sorted(event.data for event in tape) == ['"a"'] * 100 + ['"b"'] * 100


HOSTILE = '{"code": "x = 1 # \x00 \\u0000 \ud800", "number": 1e999, "more": NaN, "large": %d}'


def test_f10_values_that_databases_refuse_are_kept_by_both_stores(path: Path) -> None:
    """NaN, infinities, NUL, half a character and a very large number, from model and sandbox."""
    tapes = []
    for store in (MemoryStore(), SqliteStore(path)):
        tapes.append(_hostile_tape(store))
        store.close()
    assert tapes[0] == tapes[1]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT min(json_valid(data)) FROM events").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM model_calls").fetchone()[0] >= 3


def _hostile_tape(store: EventStore) -> list[tuple[str, Any]]:
    result = TestResult(id="test_add", outcome="failed", captured="\ud800\x00")
    report = TestReport(finished=True, collected=("test_add",), results=(result,))
    run = RunOutcome(exit_status=1, seconds=float("nan"), stdout="\x00\udfff", report=report)
    hostile = Answer(text=HOSTILE % 10**400, cost=float("inf"), finish_reason="stop")
    llm = ScriptedLlm({**HAPPY, "code": [hostile, hostile, *HAPPY["code"]]})
    job = JOB.model_copy(update={"max_iterations": 1, "parameters": {"x": 10**400}})
    asyncio.run(engine(store, llm, FakeSandbox(runs=[run])).start(ID, job))
    assert replay(store, ID).identical
    return [(record.event.name, json.dumps(record.event.model_dump(mode="json"))) for record in
            read(store, ID)]  # fmt: skip


@pytest.mark.parametrize("make", [lambda _: MemoryStore(), SqliteStore], ids=["memory", "sqlite"])
def test_f14_an_id_that_comes_again_is_equal_or_an_error(
    make: Callable[[Path], EventStore], tmp_path: Path
) -> None:
    one, other = MemoryStore(), MemoryStore()
    asyncio.run(play(HAPPY, store=one))
    asyncio.run(play({"plan": []}, store=other))
    export_tape(one, ID, tmp_path / "one")
    export_tape(other, ID, tmp_path / "other")
    store = make(tmp_path / "tape.db")
    for _ in range(2):
        import_tape(tmp_path / "one", store)
    assert list(store.read(ID)) == list(one.read(ID))
    with pytest.raises(OtherContent, match=f"session {ID} is in the store already"):
        import_tape(tmp_path / "other", store)
    assert list(store.read(ID)) == list(one.read(ID))
    store.close()
