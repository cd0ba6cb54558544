"""What people see who open the file in an SQLite browser."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codetape import ToolMaker
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.sqlite import SqliteStore
from codetape.replay.reading import open_tape
from codetape.replay.totals import own_totals
from codetape.states.values import RunOutcome
from tests.support.forks import forked, resumed
from tests.support.sessions import HAPPY, ID, JOB, ONE_REPAIR, engine, play
from tests.support.tools import DESIGN, HARNESS, QUESTION, TOOL
from tests.unit.replay.sessions import LONG, fails, played


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "tape.db", filesystem=lambda _: "ext4")) as store:
        yield store


def rows(store: SqliteStore, sql: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(str(store.path))) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(sql)]


def test_a_session_in_a_row(store: SqliteStore) -> None:
    asyncio.run(play(ONE_REPAIR, runs=[fails("test_add")], store=store))
    (row,) = rows(store, "SELECT * FROM session_summary")
    totals = open_tape(store, ID)[-1].session.totals
    assert (row["session"], row["state"], row["events"]) == (ID, "Done", 11)
    assert (row["last_event"], row["test_runs"]) == ("tests_passed", 2)
    assert (row["calls"], row["input_tokens"]) == (totals.calls, totals.input_tokens)
    assert row["cost"] is None  # the price is unknown, which is not 0


def test_a_known_cost_is_a_sum(store: SqliteStore) -> None:
    run = engine(store, ScriptedLlm(HAPPY, cost=0.25), FakeSandbox())
    asyncio.run(run.start(ID, JOB))
    assert rows(store, "SELECT cost FROM session_summary") == [{"cost": 0.75}]


def test_calls_that_failed_are_told_apart(store: SqliteStore) -> None:
    played(LONG, store)
    calls = rows(store, "SELECT * FROM model_calls")
    failed = [call for call in calls if call["failure"]]
    assert [(call["event"], call["failure"]) for call in failed] == [
        ("call_failed", "rate_limited")
    ] * 2
    answered = open_tape(store, ID)[-1].session.totals.calls
    assert len(calls) - len(failed) == answered
    assert rows(store, "SELECT calls FROM session_summary") == [{"calls": answered}]
    assert all(call["output_tokens"] for call in calls if not call["failure"])


def test_runs(store: SqliteStore) -> None:
    asyncio.run(play(ONE_REPAIR, runs=[fails("test_add")], store=store))
    runs = rows(store, "SELECT event, leads_to, tests, passed, failed FROM test_runs")
    assert [tuple(run.values()) for run in runs] == [
        ("tests_failed", "Diagnosing", 1, 0, 1),
        ("tests_passed", "Done", 1, 1, 0),
    ]


def test_what_no_report_tells_is_unknown(store: SqliteStore) -> None:
    asyncio.run(play(HAPPY, runs=[RunOutcome(timed_out=True)], store=store))
    row = rows(store, "SELECT event, tests, passed, failed FROM test_runs")[0]
    assert row == {"event": "tests_failed", "tests": None, "passed": None, "failed": None}


def test_a_run_of_a_script_alone_is_no_run_of_tests(store: SqliteStore, tmp_path: Path) -> None:
    said = {"tool_architect": [DESIGN], "tool_implementer": [TOOL], "harness": [HARNESS]}
    maker = ToolMaker(
        model="x",
        project=tmp_path,
        llm=ScriptedLlm(said),
        sandbox=FakeSandbox(),
        store=store,
    )
    assert maker.make(QUESTION).success
    assert [row["event"] for row in rows(store, "SELECT event FROM test_runs")] == ["tests_passed"]
    assert rows(store, "SELECT test_runs FROM session_summary") == [{"test_runs": 1}]


def test_what_a_fork_inherited_is_not_in_its_row(store: SqliteStore) -> None:
    played(LONG, store)
    forked(store, 12)
    resumed(store, "fork00000001", LONG.answers, LONG.runs)
    summary = {row["session"]: row for row in rows(store, "SELECT * FROM session_summary")}
    for row in store.sessions():
        own = own_totals(store, row)
        told = summary[row.id]
        assert (told["calls"], told["input_tokens"]) == (own.calls, own.input_tokens)
        assert (told["parent"], told["parent_seq"]) == (row.parent, row.parent_seq)
