"""L. What a tape may spend is granted too: its budget is a word of others until this user says it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codetape import Authority, Budget, NotGranted, fork, open_tape
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.authority import permit, read_grants
from codetape.cli import main
from codetape.engines import standing
from codetape.halflive import half_live
from codetape.replay.imports import put_tape, tape_of
from codetape.states import events as e
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.sharing import paid
from codetape.states.values import Answer, Usage
from tests.faults.test_l_events import AFTER_PLAN, append, foreign
from tests.support.sessions import HAPPY, ID, play
from tests.unit.codetape.test_agent import agent


def paused(**fields: Any) -> MemoryStore:
    """A session of others whose budget is spent after its plan."""
    store = MemoryStore()
    job = Job(prompt="x", **{"budget": Budget(calls=1), **fields})
    asyncio.run(play(HAPPY, job=job, store=store))
    return store


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        (Budget(usd=2.5), "up to $2.50"),
        (Budget(calls=7, tokens=1000), "1,000 tokens"),
        (Budget(), "no limit"),
        (Budget(usd=float("nan")), "no limit"),
    ],
)
def test_what_a_foreign_tape_may_spend_is_told_and_granted(budget: Budget, told: str) -> None:
    store, session = foreign(budget=budget)
    for given in (None, Authority(limits=True, address=True)):
        with pytest.raises(NotGranted, match="--allow budget") as caught:
            permit(store, session, given, ("model",))
        assert told in str(caught.value)
    permit(store, session, read_grants(["budget"]), ("model",))
    permit(store, session, None, ("run",))


def test_a_budget_that_is_given_to_go_on_is_a_yes() -> None:
    """Nobody serves this model: the refusal of its name is the next thing, and comes from here."""
    store = paused(model="nobody/x")
    silent = agent(store=store, llm=None, sandbox=FakeSandbox())
    with pytest.raises(NotGranted, match="budget"):
        silent.resume(ID)
    assert not silent.resume(ID, budget=Budget(calls=1)).success
    assert not silent.resume(ID).success, "it was given here"


def test_a_model_of_the_callers_needs_no_budget() -> None:
    store = paused()
    assert agent(AFTER_PLAN, store=store).resume(ID, budget=Budget(calls=9)).success


def test_a_session_of_this_user_spends_what_it_was_given() -> None:
    store = MemoryStore()
    session = agent(store=store, budget=Budget(calls=1)).generate("Write add(a, b).").session
    stands = standing(store, session)
    assert permit(store, stands.session, None, ("model",))
    agent(store=store).resume(session, budget=Budget(calls=1, usd=3.0))
    assert permit(store, standing(store, session).session, None, ("model",))


def test_an_event_that_raises_the_budget_of_a_session_is_asked_about() -> None:
    store = MemoryStore()
    session = agent(store=store, budget=Budget(calls=1)).generate("Write add(a, b).").session
    raised = append(store, session, e.Resumed(budget=Budget(usd=1e6)))
    with pytest.raises(NotGranted, match=r"\$1,000,000") as caught:
        permit(store, raised, None, ("model", "sandbox"))
    assert [need.grant for need in caught.value.needs] == ["budget"]
    assert permit(store, raised, Authority(budget=True), ("model", "sandbox"))


def test_a_fork_takes_no_raised_budget_over() -> None:
    store = MemoryStore()
    session = agent(store=store, budget=Budget(calls=1)).generate("Write add(a, b).").session
    append(store, session, e.Resumed(budget=Budget(usd=1e6)))
    tape = open_tape(store, session)
    plain, other = fork(tape, at=len(tape)), fork(tape, at=len(tape), timeout=60.0)
    for made in (plain, other):
        with pytest.raises(NotGranted, match="budget"):
            permit(store, made[-1].session, None, ("model",))
    given = fork(tape, at=len(tape), usd=2.0)
    assert permit(store, given[-1].session, None, ("model",))


def test_half_live_with_a_model_spends_nothing_without_a_grant() -> None:
    store, session = foreign(model="nobody/x", budget=Budget(usd=9.0))
    with pytest.raises(NotGranted, match=r"up to \$9\.00"):
        asyncio.run(half_live(open_tape(store, session.id), "model"))
    asyncio.run(half_live(open_tape(store, session.id), "model", llm=ScriptedLlm(HAPPY)))


def test_the_budget_of_a_fork_is_recorded_when_it_goes_on() -> None:
    """A fork that was not run yet has lost no process, and still is told what it may spend."""
    store = MemoryStore()
    made = agent(store=store, budget=Budget(calls=1)).generate("Write add(a, b).")
    tape = open_tape(store, made.session)
    forked = fork(tape, at=2, max_iterations=3)
    result = agent(store=store).resume(forked.id, budget=Budget(calls=2))
    assert result.folded.job.budget == Budget(calls=2)
    assert result.folded.own.calls <= 2


@pytest.mark.parametrize("cost", [-1000.0, float("nan"), float("-inf")])
def test_no_answer_of_a_tape_gives_money_back(cost: float) -> None:
    usage = Usage(input_tokens=-(10**9), output_tokens=-(10**9))
    answer = Answer(text="x", cost=cost, usage=usage, seconds=-1e9)
    after = paid(Session("a"), e.Planned(answer=answer, description="", approach=""))
    assert (after.totals.usd, after.totals.input_tokens, after.seconds) == (0.0, 0, 0.0)
    assert (after.totals.unpriced_calls, after.totals.uncounted_calls) == (1, 1)


def test_a_foreign_tape_that_makes_a_model_cheaper_gets_no_money() -> None:
    """The most that a call may cost follows from its price: one that is free has no limit."""
    pytest.importorskip("litellm")
    free = {"gpt-4.1": {"input": 0.0, "output": 0.0}}
    store = paused(model="gpt-4.1", prices=free)
    silent = agent(store=store, llm=None, sandbox=FakeSandbox())
    with pytest.raises(ValueError, match=r"gpt-4\.1 costs less"):
        silent.resume(ID, budget=Budget(usd=2.0))


def test_the_refusal_of_the_command_line_tells_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(SqliteStore(tmp_path / "codetape.db")) as store:
        put_tape(tape_of(paused(budget=Budget(calls=1, usd=50.0)), ID), store)
    assert main(("resume", ID)) == 2
    told = capsys.readouterr().err
    assert "budget: up to $50.00" in told
    assert "--allow budget" in told
