"""The example of a workflow of one's own: it runs, replays, and nothing is wrong with its table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.adapters.system import FixedClock
from codetape.cli import main
from codetape.engine.loop import Engine
from codetape.engine.tape import read
from codetape.replay import rules
from codetape.replay.replayer import replay
from codetape.states.session import Session
from codetape.testing import check, explore, traces
from codetape.testing.playing import Trace
from examples.review import BODIES, REVIEWED
from tests.support.sessions import ID, JOB, PLAN, RIGHT, TESTS, WRONG

YES, NO = {"approved": True}, {"approved": False, "objections": "Name it plus."}


def run(reviews: Sequence[Any], code: Sequence[Any] = (RIGHT, WRONG)) -> tuple[Session, list[str]]:
    """Run a session on the engine and replay it; return it and its path."""
    script = {"plan": [PLAN], "code": code, "tests": [TESTS], "review": reviews}
    store, llm = MemoryStore(), ScriptedLlm(script)
    engine = Engine(REVIEWED, store=store, llm=llm, sandbox=FakeSandbox(), clock=FixedClock())
    session = asyncio.run(engine.start(ID, JOB))
    assert replay(store, ID, (REVIEWED,)).identical
    return session, [f"{record.event.name} {record.dest}" for record in read(store, ID)]


def reason(session: Session) -> str:
    assert session.ending is not None
    assert session.ending.failure is None
    return session.ending.reason


def test_what_passed_is_reviewed_before_it_is_done() -> None:
    session, path = run([YES])
    assert path[-2:] == ["tests_passed Testing", "reviewed Done"]
    assert reason(session) == "the code passed its tests and the review"


def test_an_objection_goes_back_to_the_coder_as_a_note() -> None:
    session, path = run([NO, YES])
    assert path[-4:-2] == ["reviewed NeedsCode", "code_written Testing"]
    assert session.notes == ("Name it plus.",)
    assert path[-1] == "reviewed Done"


def test_code_that_stays_as_it_is_is_not_run_again() -> None:
    session, path = run([NO, NO, NO], code=[RIGHT] * 3)
    assert path.count("tests_passed Testing") == 1
    assert "the review still objects: Name it plus." in reason(session)


def test_an_answer_that_cannot_be_read_is_asked_for_again() -> None:
    _, path = run(["I like it.", YES])
    assert path[-2:] == ["answer_rejected Testing", "reviewed Done"]


@settings(max_examples=60)
@given(traces(workflow=REVIEWED, bodies=BODIES))
def test_every_session_keeps_the_invariants(trace: Trace) -> None:
    check(trace, REVIEWED)


@pytest.mark.slow
def test_nothing_is_wrong_with_its_table() -> None:
    assert explore(REVIEWED, bodies=BODIES).findings == ()


def test_check_finds_a_workflow_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "examples.review:BODIES"]) == 2
    assert "BODIES is no Workflow of examples.review; its workflows: " in capsys.readouterr().err


def test_the_command_line_knows_what_the_variable_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "_own", {})
    path = str(tmp_path / "codetape.db")
    script: dict[str, Sequence[Any]] = {
        "plan": [PLAN],
        "code": [RIGHT],
        "tests": [TESTS],
        "review": [YES],
    }
    with closing(SqliteStore(path)) as store:
        llm, sandbox = ScriptedLlm(script), FakeSandbox()
        engine = Engine(REVIEWED, store=store, llm=llm, sandbox=sandbox, clock=FixedClock())
        asyncio.run(engine.start(ID, JOB))
    assert main(["show", "last", "--events", "--store", path]) == 2
    assert "CODETAPE_WORKFLOWS=module:name" in capsys.readouterr().err
    monkeypatch.setenv("CODETAPE_WORKFLOWS", "examples.review:REVIEWED")
    assert main(["replay", "last", "--store", path]) == 0
    assert main(["show", "last", "--events", "--store", path]) == 0
    assert "reviewed" in capsys.readouterr().out
    assert main(["resume", "last", "--store", path]) == 0


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("examples.review", "'examples.review' is not of the form MODULE:WORKFLOW"),
        ("examples.review:NOBODY", "its workflows: AUTOCODER, REVIEWED"),
        ("no_such_module:X", "is it installed, or in this folder?"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, named: str, said: str
) -> None:
    monkeypatch.setenv("CODETAPE_WORKFLOWS", named)
    assert main(["sessions"]) == 2
    assert said in capsys.readouterr().err
