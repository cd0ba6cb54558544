"""A change of rules is a rule set of its own: an old session goes on under the one it began with."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, failed
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock
from codetape.engine.loop import Engine
from codetape.replay.reading import open_tape
from codetape.replay.replayer import replay
from codetape.replay.rules import UnknownRules, opened, rules_for
from codetape.states.autocoder import TABLE
from codetape.states.events import Paused
from codetape.states.machine import Machine, State
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER, Workflow
from tests.support.sessions import ID, JOB, ONE_REPAIR

IMPATIENT = tuple(
    replace(row, dest=State.DONE) if row.event == "tests_failed" else row for row in TABLE
)
"""The table of a later version: it gives up at the first failure."""

FIRST = AUTOCODER
SECOND = replace(AUTOCODER, rules=2, machine=Machine(IMPATIENT))
BOTH = (FIRST, SECOND)
FAILS = failed({"test_add": ("AssertionError", "assert -1 == 3")})


def run(store: MemoryStore, rules: Workflow, *, until: str = "", resume: bool = False) -> Session:
    """Run a session, or go on with it; one that is interrupted `until` an event pauses there."""

    def on_event(record: object, _: Session) -> None:
        if getattr(record, "event").name == until:  # noqa: B009
            engine.post(Paused(by="an interruption"))

    script = {**ONE_REPAIR, "code": ONE_REPAIR["code"][1:]} if resume else ONE_REPAIR
    engine = Engine(
        rules,
        store=store,
        llm=ScriptedLlm(script),
        sandbox=FakeSandbox((), [FAILS]),
        clock=FixedClock(),
        on_event=on_event,
    )
    return asyncio.run(engine.resume(ID) if resume else engine.start(ID, JOB))


def path(store: MemoryStore) -> list[str]:
    return [f"{record.event.name} {record.dest}" for record in opened(store, ID, BOTH)[1]]


def test_a_session_begins_under_the_rules_of_its_time() -> None:
    store = MemoryStore()
    run(store, SECOND)
    assert path(store)[-1] == "tests_failed Done"
    assert opened(store, ID, BOTH)[0] is SECOND


def test_an_old_session_is_resumed_under_the_rules_it_began_with() -> None:
    store = MemoryStore()
    assert run(store, FIRST, until="tests_written").paused
    rules, _ = opened(store, ID, BOTH)
    assert rules is FIRST
    session = run(store, rules, resume=True)
    assert "tests_failed Diagnosing" in path(store)
    assert session.ending is not None
    assert session.ending.failure is None


@pytest.mark.parametrize("rules", BOTH, ids=["first", "second"])
def test_each_session_replays_among_all_rules(rules: Workflow) -> None:
    store = MemoryStore()
    run(store, rules)
    report = replay(store, ID, BOTH)
    assert report.identical
    assert report.rules == rules.rules
    assert open_tape(store, ID, BOTH).session_at(-1).done


def test_without_its_rules_an_old_session_differs_where_they_changed() -> None:
    store = MemoryStore()
    run(store, FIRST)
    (difference,) = replay(store, ID, (SECOND,)).differences
    assert difference.kind == "destination"
    assert "tests_failed leads Testing -> Done today" in difference.reason


def test_rules_that_are_newer_than_all_are_not_guessed_at() -> None:
    store = MemoryStore()
    run(store, SECOND)
    with pytest.raises(UnknownRules, match="a newer version of codetape wrote them"):
        rules_for("autocoder", 2, [FIRST])
    (difference,) = replay(store, ID, (FIRST,)).differences
    assert difference.kind == "unreadable"
