"""The progress of a tool's making, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass

from codetape.engine.tape import Recorded
from codetape.states.events import Answered, Ran
from codetape.states.machine import State
from codetape.states.session import Session
from codetape.states.tools.session import ToolSession

PREVIEW = 200
"""Characters of an answer or of an output."""

_STAGES = {
    State.NEEDS_REBUILD: "install",
    State.TESTING: "run",
    State.NEEDS_TESTS: "harness",
    State.DIAGNOSING: "check",
    State.RECLASSIFY: "check",
    State.DONE: "done",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """An event and where it leaves the making.

    `stage` is the name of the persona whose turn it is, install, run, fix, harness, check or done.
    `cycle` counts repairs of crashes. `preview` is the beginning of what was answered or printed.
    """

    recorded: Recorded
    session: Session
    stage: str
    cycle: int
    preview: str


def progress(recorded: Recorded, session: Session) -> Progress:
    """Say what an event means for the making of a tool."""
    cycle = session.fixes if isinstance(session, ToolSession) else 0
    return Progress(recorded, session, _stage(session), cycle, _preview(recorded))


def _stage(session: Session) -> str:
    if session.state is State.NEEDS_CODE and isinstance(session, ToolSession):
        return session.persona.name if session.persona else "fix"
    return _STAGES.get(session.state, "fix")


def _preview(recorded: Recorded) -> str:
    match recorded.event:
        case Answered() as event:
            said = event.answer.text or ""
        case Ran() as event:
            said = event.run.stderr or event.run.stdout
        case _:
            said = ""
    return said.strip()[:PREVIEW]
