"""Faults of replays, forks and recordings."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, broke
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli.stores import find_session
from codetape.engine.boundary import Boundary
from codetape.replay.export import export_tape
from codetape.replay.imports import BadTapeFile, read_tape_file
from codetape.replay.reading import Tape, open_tape
from codetape.replay.replayer import replay
from codetape.replay.totals import own_totals
from codetape.states.events import AnswerRejected, BudgetSpent, Noted, SandboxBroke
from codetape.states.job import Budget
from codetape.states.session import Totals
from codetape.states.values import Answer, FailureClass, SandboxFailure
from codetape.states.wanting import delay
from codetape.states.workflow import AUTOCODER
from tests.support.forks import forked, resumed
from tests.support.sessions import ID, JOB, engine
from tests.unit.adapters.test_llm_reading import Stream, chunk, piece
from tests.unit.adapters.test_llm_reading import read as stream
from tests.unit.replay.sessions import LONG, Script, code, played

FORK = "fork00000001"


@pytest.fixture
def store() -> MemoryStore:
    """A store with a session of twenty events, two of them notes."""
    store = MemoryStore()
    played(LONG, store)
    return store


def seqs_of(tape: Tape, name: str) -> list[int]:
    return [step.seq for step in tape if step.event.name == name]


def answered(tape: Tape, first: int = 1) -> int:
    """How many answers of models are on a tape, from event `first` on."""
    return sum(isinstance(step.event.outcome, Answer) for step in tape if step.seq >= first)


def test_h4_a_draw_more_changes_no_later_one(store: MemoryStore) -> None:
    """What is random comes from seed, session and event, not from how often one was drawn before."""
    failed = [s.session for s in open_tape(store, ID) if s.session.call_failures]
    assert failed
    call = AUTOCODER.wanted(failed[0])[0]
    waits = [delay(session, call) for session in failed]
    assert [delay(session, call) for session in reversed(failed)] == waits[::-1]
    assert replay(store, ID).identical


@pytest.mark.parametrize("at", range(9, 20))
def test_h6_a_fork_inside_a_repair_repeats_no_step(store: MemoryStore, at: int) -> None:
    parent = open_tape(store, ID)
    forked(store, at)
    made = resumed(store, FORK, LONG.answers, LONG.runs)
    tape = open_tape(store, FORK)
    for one, other in zip(parent, tape, strict=False):
        if one.seq <= at:
            assert one.record == other.record  # number, hash, request and session
    asked_for = getattr(made.llm, "calls", ())
    failed = sum(step.event.name == "call_failed" for step in tape if step.seq > at)
    assert len(asked_for) == answered(tape, at + 1) + failed


def test_h8_a_fork_before_an_approval_has_not_got_it(store: MemoryStore) -> None:
    """The parent's budget was raised after it was spent; the fork waits for a decision again."""
    other = MemoryStore()
    job = JOB.model_copy(update={"budget": Budget(calls=2)})
    played(Script(LONG.answers, LONG.runs, job=job), other)
    tape = open_tape(other, ID)
    spent = seqs_of(tape, "budget_spent")[0]
    assert tape[spent + 1].event.name == "resumed"
    session = forked(other, spent)
    assert session.paused
    assert session.job.budget == Budget(calls=2)
    earlier = forked(other, spent - 1, id="fork00000002")
    assert isinstance(AUTOCODER.settle(earlier), BudgetSpent)
    noted = seqs_of(open_tape(store, ID), "noted")[0]
    assert forked(store, noted - 1).notes == ()


def test_h9_a_fork_that_stopped_at_once_is_the_one_that_goes_on(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "tape.db")
    played(LONG, store)
    before = list(store.read(ID))
    forked(store, 12)
    store.close()  # the process ends here, before the fork has asked for anything
    store = SqliteStore(tmp_path / "tape.db")
    assert find_session(store, "fork") == FORK
    assert [row.name for row in store.read(FORK, 12)] == ["forked"]
    made = resumed(store, FORK, LONG.answers, LONG.runs)
    assert made.session.id == FORK
    assert list(store.read(ID)) == before
    store.close()


@pytest.mark.parametrize("text", ["", None, " \n"])
def test_h10_an_empty_answer_is_no_success(text: str | None) -> None:
    store = MemoryStore()
    played(Script({**LONG.answers, "plan": [Answer(text=text, finish_reason="stop")] * 3}), store)
    events = [step.event for step in open_tape(store, ID) if step.seq > 2]
    assert isinstance(events[0], AnswerRejected)
    assert events[0].reason == "empty"


def test_h11_a_packed_recording_is_refused_and_not_misread(
    store: MemoryStore, tmp_path: Path
) -> None:
    export_tape(store, ID, tmp_path / "plain")
    packed = tmp_path / "some.tape.jsonl"
    packed.write_bytes(gzip.compress((tmp_path / "plain").read_bytes()))
    with pytest.raises(BadTapeFile, match="line 1"):
        read_tape_file(packed)


def test_h12_a_secret_that_comes_in_pieces_is_masked_whole() -> None:
    """Pieces of a stream are joined before anybody looks for secrets in them."""
    canary = "sk-canary-4711-0815"
    pieces = [canary[n : n + 5] for n in range(0, len(canary), 5)]
    assert len(pieces) == 4
    reading = stream(Stream(*(chunk(piece(text)) for text in pieces), chunk(piece("", "stop"))))
    assert reading.text == canary
    cleaned = Boundary({"KEY": canary}).clean(Answer(text=f"it is {reading.text}."))
    assert cleaned.text == "it is <secret KEY>."
    assert "canary" not in cleaned.model_dump_json()


def test_h14_a_fork_past_a_build_says_so_if_the_image_is_gone(store: MemoryStore) -> None:
    """An image is named by its content: another one can't stand in its place."""

    built = seqs_of(open_tape(store, ID), "image_built")[-1]
    session = forked(store, built)
    assert session.image == open_tape(store, ID)[built].session.image
    gone = FakeSandbox(runs=[broke("there is no such image here: build it again")] * 9)
    run = engine(store, ScriptedLlm(LONG.answers), gone)
    after = asyncio.run(run.resume(FORK))
    assert after.ending
    assert after.ending.failure is FailureClass.INFRASTRUCTURE
    assert isinstance(open_tape(store, FORK)[-1].event, SandboxBroke)
    assert all(spec.image.ref == session.image.ref for spec in gone.runs if session.image)


def test_h14_an_outcome_that_did_not_happen_is_marked(store: MemoryStore) -> None:
    built = seqs_of(open_tape(store, ID), "image_built")[0]
    forked(store, built - 1, outcome=SandboxFailure(message="pulled the plug"))
    assert open_tape(store, FORK).simulated
    assert not open_tape(store, ID).simulated


def test_h15_no_sandbox_sees_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded lies in the working directory, and a run gets nothing but its own files."""
    monkeypatch.chdir(tmp_path)
    sandbox = FakeSandbox((), LONG.runs)
    with closing(SqliteStore("codetape.db")) as kept:
        run = engine(kept, ScriptedLlm(LONG.answers), sandbox)
        asyncio.run(run.start(ID, LONG.job))
    assert len(sandbox.runs) == 3
    for spec in sandbox.runs:
        assert [file.name for file in spec.files] == ["solution.py", "test_solution.py"]
        assert spec.host_files == ()


def test_h16_parent_and_forks_together_are_paid_once(store: MemoryStore) -> None:
    """The sum over the rows is what models were asked, however often tapes share a beginning."""
    asked = answered(open_tape(store, ID))
    for n, at in enumerate((6, 11, 16)):
        forked(store, at, id=f"fork0000000{n}")
        made = resumed(store, f"fork0000000{n}", {**LONG.answers, "code": [code("return a")] * 9})
        asked += sum(isinstance(r.event.outcome, Answer) for r in made.records if r.seq > at)
        assert made.session.own.calls == answered(open_tape(store, made.session.id), at + 1)
    rows = [own_totals(store, row) for row in store.sessions()]
    assert sum(row.calls for row in rows) == asked
    everything = sum(open_tape(store, r.id)[-1].session.totals.calls for r in store.sessions())
    assert everything > asked
    assert all(isinstance(row, Totals) for row in rows)


def test_h17_what_comes_in_while_a_step_ends_has_one_place(store: MemoryStore) -> None:
    """A note that came in while an answer did: the fold, live and replayed, takes the tape's order."""
    tape = open_tape(store, ID)
    notes = seqs_of(tape, "noted")
    assert len(notes) == 2
    for seq in notes:
        text = getattr(tape[seq].event, "text", "")
        assert isinstance(tape[seq].event, Noted)
        assert text not in tape[seq - 1].session.notes
        assert text in tape[seq].session.notes
    assert replay(store, ID).identical
