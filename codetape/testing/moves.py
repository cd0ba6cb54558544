"""What may happen next to a session, each time the same way: for a walk over all that can happen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from codetape.states import events as e
from codetape.states.job import Budget
from codetape.states.session import Session
from codetape.states.workflow import Workflow
from codetape.testing.answering import Bodies
from codetape.testing.bringing import outcome
from codetape.testing.chance import Choices, Noted, deviations

SETTLES = "what follows by itself"

SAID: tuple[e.Event, ...] = (
    e.Noted(text="The unit is kelvin."),
    e.Paused(by="an operator"),
    e.Resumed(),
    e.Resumed(budget=Budget(calls=0)),
    e.Forked(parent="another", seq=1),
    e.Cancelled(by="an operator"),
)
"""What a person may say to any session that is not done."""


@dataclass(frozen=True, slots=True)
class Move:
    """A request by its name with the choices that make its outcome; or SETTLES."""

    asked: str
    choices: Choices = ()


class Moves:
    """All moves of the sessions of a workflow."""

    def __init__(self, workflow: Workflow, bodies: Bodies | None) -> None:
        self._workflow = workflow
        self._bodies = bodies

    def of(self, session: Session, most: int) -> Iterator[tuple[Move, e.Event]]:
        """Yield what may follow; up to `most` outcomes of each request, the likeliest first."""
        if settled := self._workflow.settle(session):
            yield Move(SETTLES), settled
            return
        for request in self._workflow.wanted(session):
            make = partial(outcome, request=request, bodies=self._bodies)
            made = deviations(make, most=most)
            for choices, brought in made:
                yield Move(request.name, choices), self._workflow.interpret(request, brought)

    def again(self, session: Session, move: Move) -> e.Event | None:
        """Return the event that the same move is here; None if it cannot be made here."""
        settled = self._workflow.settle(session)
        if settled or move.asked == SETTLES:
            return settled if move.asked == SETTLES else None
        for request in self._workflow.wanted(session):
            if request.name == move.asked:
                brought = outcome(Noted(move.choices), request, self._bodies)
                return self._workflow.interpret(request, brought)
        return None


def answers_to_a_pause(session: Session) -> Iterator[e.Event]:
    """What a person may say to a paused session so that it goes on."""
    yield e.Resumed(budget=Budget())
    if session.held:
        yield e.Resumed(allow=session.held.packages)
        yield e.Resumed(deny=session.held.packages)
