"""One half from the tape, the other half real."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.halflive import half_live
from codetape.replay.compare import Pair, compare
from codetape.replay.reading import open_tape
from codetape.states.events import SandboxBroke
from codetape.states.job import Budget
from codetape.states.values import CallFailure, FailureClass
from tests.support.forks import forked, resumed
from tests.support.sessions import ID, JOB
from tests.unit.replay.sessions import LONG, Script, code, fails, played


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    played(LONG, store)
    return store


def test_the_same_sandbox_goes_the_same_way(store: MemoryStore) -> None:
    tape = open_tape(store, ID)
    again, recorded = asyncio.run(half_live(tape, "sandbox", sandbox=FakeSandbox((), LONG.runs)))
    assert compare(tape, again).parting is None
    assert recorded.left_over() == ()
    assert recorded.out_of_order == []
    assert [row.id for row in store.sessions()] == [ID]  # not kept: nothing was paid


def test_the_same_model_goes_the_same_way_and_is_kept() -> None:
    store, never_busy = (
        MemoryStore(),
        {
            kind: [said for said in answers if not isinstance(said, CallFailure)]
            for kind, answers in LONG.answers.items()
        },
    )
    played(Script(never_busy, LONG.runs), store)
    tape = open_tape(store, ID)
    llm = ScriptedLlm(never_busy)
    again, recorded = asyncio.run(half_live(tape, "model", llm=llm))
    assert compare(tape, again).parting is None
    assert recorded.left_over() == ()
    assert llm.left_over() == {}
    assert [(row.id, row.parent, row.parent_seq) for row in store.sessions()] == [
        (ID, None, None),
        (again.id, ID, 1),
    ]


def test_another_environment_is_where_they_part(store: MemoryStore) -> None:
    """The tests fail otherwise, so that a question is asked which the model was never asked."""
    tape = open_tape(store, ID)
    other: list[Any] = [fails("test_two"), *LONG.runs]
    again, _ = asyncio.run(half_live(tape, "sandbox", sandbox=FakeSandbox((), other)))
    parting = compare(tape, again).parting
    assert parting
    assert parting.events == Pair("tests_failed", "tests_failed")
    ending = again[-1].session.ending
    assert ending
    assert ending.failure is FailureClass.MODEL
    assert "this diagnosis call was not recorded: event 12 differs in" in ending.reason


def test_another_model_is_where_they_part(store: MemoryStore) -> None:
    tape = open_tape(store, ID)
    llm = ScriptedLlm({**LONG.answers, "code": [code("return 8")] * 9})
    again, _ = asyncio.run(half_live(tape, "model", llm=llm))
    parting = compare(tape, again).parting
    assert parting
    assert parting.reason.startswith("code_written differs")
    event = again[-1].event
    assert isinstance(event, SandboxBroke)
    assert "this build was not recorded" in event.failure.message


def test_what_a_person_did_is_done_again() -> None:
    store = MemoryStore()
    job = JOB.model_copy(update={"budget": Budget(calls=2)})
    played(Script(LONG.answers, LONG.runs, job=job, posts=LONG.posts), store)
    tape = open_tape(store, ID)
    names = [step.event.name for step in tape]
    assert {"budget_spent", "resumed", "noted"} <= set(names)
    again, _ = asyncio.run(half_live(tape, "sandbox", sandbox=FakeSandbox((), LONG.runs)))
    assert compare(tape, again).parting is None


def test_a_fork_is_repeated_from_where_it_begins(store: MemoryStore) -> None:
    job = open_tape(store, ID)[11].session.job.model_copy(update={"max_iterations": 2})
    forked(store, 11, job=job)
    resumed(store, "fork00000001", LONG.answers, LONG.runs)
    tape = open_tape(store, "fork00000001")
    again, recorded = asyncio.run(half_live(tape, "sandbox", sandbox=FakeSandbox((), LONG.runs)))
    assert compare(tape, again).parting is None
    assert again[-1].session.job == job
    assert recorded.left_over() == ()
