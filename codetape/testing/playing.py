"""Whole sessions, driven by the rules without an engine: what is wanted, what comes, what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.job import Budget, Job
from codetape.states.session import Session
from codetape.states.values import Outcome
from codetape.states.workflow import AUTOCODER, Workflow
from codetape.testing.answering import Bodies
from codetape.testing.bringing import outcome
from codetape.testing.chance import Chance

LONGEST_TRACE = 150
"""Events after which nobody waits for the end of a session any more."""


class _Printer(Protocol):
    def text(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """One event, the sessions on both sides of it, and the request that brought it, if one did."""

    before: Session
    event: e.Event
    after: Session
    request: r.Request | None = None
    outcome: Outcome | None = None

    def __repr__(self) -> str:
        """A line that a person can read in a failing example."""
        return f"{self.before.state} {self.event.name} {self.after.state}"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        """Hypothesis would print every field of both sessions."""
        printer.text("..." if cycle else repr(self))


Trace = tuple[Step, ...]


def opening(workflow: Workflow, job: Job) -> Step:
    """The first step of a session, not yet advanced."""
    blank = workflow.blank("s")
    event = e.SessionOpened(job=job, workflow=workflow.name, rules=workflow.rules)
    return Step(blank, event, blank)


def opened(workflow: Workflow, job: Job) -> Step:
    """The first step of a session."""
    return advanced(workflow, opening(workflow, job))


def played(
    chance: Chance,
    job: Job,
    posted: Mapping[int, e.Event] | None = None,
    workflow: Workflow = AUTOCODER,
    bodies: Bodies | None = None,
) -> Trace:
    """Play a session from its opening to its end, to a pause that nobody ends, or to where it waits
    for nothing, which `check` finds.

    What is in flight may finish in any order. `posted` are events from outside, by their place;
    `bodies` are what a model says to kinds of one's own. Rules that never end are left after
    LONGEST_TRACE events.
    """
    steps = [opened(workflow, job)]
    while not (session := steps[-1].after).done and len(steps) < LONGEST_TRACE:
        event = (posted or {}).get(len(steps))
        if event is None and session.paused:
            if chance.one([True, False]):
                break
            event = _decision(session, chance)
        step = (
            Step(session, event, session) if event else going_on(workflow, session, chance, bodies)
        )
        if step is None:
            break
        steps.append(advanced(workflow, step))
    return tuple(steps)


def _decision(session: Session, chance: Chance) -> e.Event:
    held = session.held.packages if session.held else ()
    allow, deny = (held, ()) if chance.one([True, False]) else ((), held)
    return e.Resumed(budget=Budget(), allow=allow, deny=deny)


def going_on(
    workflow: Workflow, session: Session, chance: Chance, bodies: Bodies | None
) -> Step | None:
    """What follows by itself, else what a request brings, not yet advanced; None if nothing does."""
    if event := workflow.settle(session):
        return Step(session, event, session)
    if not (wanted := workflow.wanted(session)):
        return None
    request = chance.one(wanted)
    brought = outcome(chance, request, bodies)
    return Step(session, workflow.interpret(request, brought), session, request, brought)


def advanced(workflow: Workflow, step: Step) -> Step:
    """Return the step with the session that its event leads to. Raises IllegalTransition."""
    return replace(step, after=workflow.advance(step.before, step.event))
