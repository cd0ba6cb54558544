"""Tapes from the front door."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape import AutoCoderAgent, Budget, ToolMaker, UnknownSession, fork, open_tape
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, ended, passed
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.changes import FIELDS, changed, from_text
from codetape.engine.ports import EventStore
from codetape.halflive import half_live
from codetape.replay.compare import compare
from codetape.replay.export import export_tape
from codetape.replay.fork import CannotFork
from codetape.replay.redact import redacted
from codetape.replay.replayer import replay
from codetape.states.events import Diagnosed
from codetape.states.job import Job
from codetape.states.values import Answer
from codetape.states.workflow import WORKFLOWS
from tests.support.sessions import ID, LOGIC, ONE_REPAIR, play
from tests.unit.codetape.test_toolmaker import FIXED, WRONG
from tests.unit.replay.sessions import fails


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "codetape.db"
    with closing(SqliteStore(path)) as store:
        asyncio.run(play(ONE_REPAIR, runs=[fails("test_add")], store=store))
    return path


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as store:
        yield store


def test_a_tape_is_opened_by_a_prefix_by_last_or_from_a_file(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    for name in ("last", "sess", ID):
        tape = open_tape(store, name)
        assert (tape.id, len(tape)) == (ID, 11)
    assert open_tape(path).id == ID
    export_tape(store, ID, tmp_path / "some.jsonl")
    assert open_tape(tmp_path / "some.jsonl")[-1].session == open_tape(store)[-1].session
    with pytest.raises(UnknownSession):
        open_tape(store, "other")
    with pytest.raises(FileNotFoundError, match="there is no store"):
        open_tape(tmp_path / "none.db")


def test_a_fork_goes_on_with_the_agent(store: SqliteStore) -> None:
    tape = open_tape(store)
    other = fork(tape, at=4, max_iterations=1, prompt="Add, please.")
    assert (other.parent, other.inherited) == (ID, 4)
    job = other[-1].session.job
    assert (job.max_iterations, job.prompt) == (1, "Add, please.")
    agent = AutoCoderAgent(
        model="as on the tape", store=store, llm=ScriptedLlm(ONE_REPAIR), sandbox=FakeSandbox()
    )
    result = agent.resume(other.id)
    assert result.success
    assert replay(store, other.id).identical


def test_another_answer_as_a_text_costs_nothing(store: SqliteStore) -> None:
    tape = open_tape(store)
    at = next(step.seq for step in tape if isinstance(step.event, Diagnosed)) - 1
    other = fork(tape, at, outcome=str(LOGIC).replace("'", '"').replace("logic", "test_error"))
    event = other[-1].event
    assert isinstance(event, Diagnosed)
    answer = event.answer
    assert isinstance(answer, Answer)
    assert (answer.cost, answer.notes) == (0.0, ("given by a person",))
    assert other[-1].session.own.usd == 0.0


def test_a_tape_of_a_file_has_to_be_imported_first(store: SqliteStore, tmp_path: Path) -> None:
    export_tape(store, ID, tmp_path / "some.jsonl")
    with pytest.raises(CannotFork, match="import it into a store, then fork it"):
        fork(open_tape(tmp_path / "some.jsonl"), at=3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": "blue"}, "colour: a fork cannot change that"),
        ({"timeout": 0}, "timeout: 0 is less than 0.1"),
        ({"memory": "lots"}, "'lots' is no size"),
        ({"usd": float("nan")}, "usd: nan is no limit"),
        ({"timeout": float("inf")}, "timeout: inf is no limit"),
        ({"calls": -1}, "calls: -1 is less than 0"),
        ({"base_packages": "numpy"}, "a list of texts is wanted"),
    ],
)
def test_a_wrong_change_is_named_and_nothing_happens(
    store: SqliteStore, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        fork(open_tape(store), at=4, **changes)
    assert [row.id for row in store.sessions()] == [ID]


TEXTS = {
    "prompt": "Add.", "model": "scripted/demo", "system_prompt": "Be brief.", "schema": "a: int",
    "base_packages": "numpy, Pandas", "max_iterations": "3", "sandbox_retries": "2", "plan": "no",
    "skip_tests": "yes", "network_access": "on", "seed": "7", "timeout": "1.5", "cpu": "2",
    "memory": "512Mi", "disk": "1Gi", "processes": "64", "usd": "0.5", "tokens": "1000",
    "calls": "9", "seconds": "60", "fix_cycles": "1",
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_changes_the_job_and_nothing_else(name: str) -> None:
    before = Job(prompt="-", base_packages=("scipy",))
    value = Budget(calls=1) if name == "budget" else from_text(name, TEXTS[name])
    after = changed(before, {name: value})
    differing = [n for n in Job.model_fields if getattr(before, n) != getattr(after, n)]
    assert len(differing) == 1, differing
    assert changed(after, {name: value}) == after


@given(st.sampled_from(sorted(FIELDS)), st.text(max_size=6))
def test_any_text_is_a_value_or_an_error_that_names_the_field(name: str, text: str) -> None:
    said = ""
    try:
        assert from_text(name, text) is not None
    except ValueError as error:
        said = str(error)
    assert not said or said.startswith(f"{name}: ")


def test_a_notebook_shows_tapes_and_events_with_everything_escaped(store: SqliteStore) -> None:
    other = fork(open_tape(store), at=4, prompt="<script>alert(1)</script>")
    html = other._repr_html_()
    assert "inherited" in html
    assert "forked" in html
    shown = other[-1]._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert repr(other[-1]).startswith(f"<event 5 of {other.id}: forked, NeedsTests, ")


def test_tools_have_tapes_of_the_same_kind(tmp_path: Path) -> None:
    """Everything here holds for every workflow: it looks at no table of its own."""
    runs: list[Any] = [ended(), WRONG, ended(), passed("test_logic")]
    kept = MemoryStore()

    def maker(sandbox: FakeSandbox) -> ToolMaker:
        return ToolMaker(
            model="scripted", project=tmp_path, llm=ScriptedLlm(FIXED), sandbox=sandbox, store=kept
        )

    maker(FakeSandbox(runs=runs)).make("Count words.")
    tape = open_tape(kept)
    assert tape.rules is WORKFLOWS[1]
    for at in range(1, len(tape)):
        other = fork(tape, at)
        assert replay(cast("EventStore", other.source), other.id).identical
    again, left = asyncio.run(half_live(tape, "sandbox", sandbox=FakeSandbox(runs=runs)))
    assert compare(tape, again).parting is None
    assert left.left_over() == ()
    bare = redacted(kept, tape.id)
    assert "count" not in str([row.data for row in bare.rows])
