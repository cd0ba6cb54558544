"""A workflow: a rule table and its pure helpers, as the engine sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from codetape.states import autocoder, toolmaker
from codetape.states import events as e
from codetape.states.changing import replace
from codetape.states.ending import ending
from codetape.states.folding import folded
from codetape.states.machine import IllegalTransition, Machine
from codetape.states.reading import interpret
from codetape.states.requests import Request
from codetape.states.session import Ending, Session
from codetape.states.settling import settle
from codetape.states.tools import ending as tool_ending
from codetape.states.tools import folding as tool_folding
from codetape.states.tools import reading as tool_reading
from codetape.states.tools import settling as tool_settling
from codetape.states.tools import wanting as tool_wanting
from codetape.states.tools.session import ToolSession
from codetape.states.values import Outcome
from codetape.states.wanting import delay, wanted


@dataclass(frozen=True, slots=True)
class Workflow:
    """The rules of one kind of session. `rules` numbers the rule set that a tape lives under.

    Each helper is given sessions of the class `session`, which may know more than Session does.
    """

    name: str
    rules: int
    machine: Machine
    settle: Callable[[Any], e.Event | None]
    wanted: Callable[[Any], tuple[Request, ...]]
    delay: Callable[[Any, Request], float]
    interpret: Callable[[Request, Outcome], e.Event]
    folded: Callable[[Any, e.Event], Session]
    ending: Callable[[Any, e.Event], Ending]
    session: type[Session] = Session

    def blank(self, session_id: str) -> Session:
        """A session before its first event."""
        return self.session(id=session_id)

    def with_facts(self, session: Session, event: e.Event) -> Session:
        """Return the session with what an event says, in the state before it.

        Raises IllegalTransition for an event that the table has no row for there and that the fold
        makes nothing of, as one of another workflow.
        """
        try:
            return self.folded(session, event)
        except Exception:  # a fold may fail in any way on what it was not made for
            if event.name in self.machine.accepts(session.state):
                raise
            raise IllegalTransition(session.id, session.state, event.name) from None

    def advance(self, session: Session, event: e.Event) -> Session:
        """Return the session after `event`. Raises IllegalTransition; the session is a value, so
        whoever is refused still has it as it was."""
        facts = self.with_facts(session, event)
        state = self.machine.next_state(session.id, session.state, event.name, facts)
        after = replace(facts, state=state, seq=session.seq + 1)
        return replace(after, ending=self.ending(after, event)) if after.done else after


AUTOCODER = Workflow(
    name="autocoder",
    rules=1,
    machine=autocoder.MACHINE,
    settle=settle,
    wanted=wanted,
    delay=delay,
    interpret=interpret,
    folded=folded,
    ending=ending,
)

TOOLMAKER = Workflow(
    name="toolmaker",
    rules=1,
    machine=toolmaker.MACHINE,
    settle=tool_settling.settle,
    wanted=tool_wanting.wanted,
    delay=delay,
    interpret=tool_reading.interpret,
    folded=tool_folding.folded,
    ending=tool_ending.ending,
    session=ToolSession,
)

WORKFLOWS = (AUTOCODER, TOOLMAKER)
"""The workflows of this version."""
