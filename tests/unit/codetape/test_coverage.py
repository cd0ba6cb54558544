"""Which rows real sessions take, and what `codetape check` says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codetape.adapters.store.memory import MemoryStore
from codetape.cli import main
from codetape.states.workflow import AUTOCODER, TOOLMAKER
from codetape.testing.coverage import coverage
from tests.support.sessions import HAPPY, ID, play

BROKEN = """
from dataclasses import replace

from codetape.states.machine import Machine, Row, State
from codetape.states.workflow import AUTOCODER

idle = Row("imagined", State.TESTING, State.DONE)
IDLE = replace(AUTOCODER, machine=Machine((*AUTOCODER.machine.table, idle)))
"""


def test_the_rows_that_sessions_took_are_counted() -> None:
    store = MemoryStore()
    for session in (ID, "another"):
        asyncio.run(play(HAPPY, store=store, session_id=session))
    taken = coverage(AUTOCODER, store, [ID, "another"])
    rows = {place.row.event for place, times in taken.items() if times == 2}
    assert rows == {
        *("session_opened", "sandbox_ready", "planned", "code_written", "tests_written"),
        *("image_built", "tests_passed"),
    }
    assert sum(taken.values()) == 14


def test_a_name_that_is_no_workflow_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "autocoda"]) == 2
    assert "autocoda is none of autocoder, toolmaker" in capsys.readouterr().err
    assert main(["check", "nowhere.rules:MINE"]) == 2
    assert "is it installed, or in this folder?" in capsys.readouterr().err


@pytest.mark.slow
def test_check_ends_with_1_and_names_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_rules.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["check", "broken_rules:IDLE"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "Testing imagined -> Done" in told
    assert "1 finding." in told


@pytest.mark.slow
def test_nothing_is_wrong_with_the_tables_that_ship(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    told = capsys.readouterr().out
    for workflow in (AUTOCODER, TOOLMAKER):
        assert f"{workflow.name}: nothing is wrong." in told
