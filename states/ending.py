"""How a session ended, in words that a person understands."""

from __future__ import annotations

from codetape.states import events as e
from codetape.states.failures import Failure
from codetape.states.guards import BLAMED
from codetape.states.session import Ending, Session
from codetape.states.values import FailureClass


def ending(s: Session, event: e.Event) -> Ending:
    """Return the ending that `event` brought to a session that is done now."""
    match event:
        case e.TestsPassed():
            return Ending(None, f"the tests passed{_script(event)}")
        case e.ImageBuilt():
            return Ending(None, "the image is built; tests were not asked for")
        case e.AttemptsSpent():
            spent = f"all {event.attempts} attempts are" if event.attempts > 1 else "one attempt is"
            return Ending(_class_of(s), f"{spent} spent. {_last(s)}")
        case e.Reclassified():
            return Ending(FailureClass.STUCK, _stuck(s))
        case e.Cancelled():
            return Ending(FailureClass.CANCELLED, f"cancelled by {event.by}")
        case e.Resumed():
            why = f"the process that ran the session ended {s.crashes} times in a row at this point"
            return Ending(FailureClass.INFRASTRUCTURE, f"{why}; a fork may try again")
        case e.CallFailed():
            return Ending(FailureClass.MODEL, f"the model gave no answer: {event.failure.message}")
        case e.AnswerRejected():
            why = f"the {event.kind} answer could not be used: {event.detail}"
            return Ending(FailureClass.MODEL, why)
        case e.SandboxBroke():
            return Ending(FailureClass.INFRASTRUCTURE, event.failure.message)
        case e.PackageRejected():
            names = ", ".join(r.name for r in s.rejected)
            if any(r.kind == "command" for r in s.rejected):
                why = f"too many packages and commands cannot be had: {names}"
                return Ending(FailureClass.ENVIRONMENT, why)
            return Ending(FailureClass.ENVIRONMENT, f"too many packages do not exist: {names}")
        case e.BuildFailed():
            cls = FailureClass.INFRASTRUCTURE
            return Ending(cls, f"the image could not be built: {event.failure.message}")
    return Ending(FailureClass.UNKNOWN, f"ended by {event.name}")


def not_done(s: Session) -> str:
    """Return why a session that is not done stands still, and what makes it go on."""
    if s.paused is None:
        return "the session is not done: it was interrupted; resume goes on with it"
    if s.held is not None:
        return f"the session is not done: {s.paused} Resume it with allow or deny to answer."
    larger = " with a larger one" if s.paused.startswith("the budget") else ""
    return f"the session is not done: {s.paused}; resume it{larger} to go on"


def _class_of(s: Session) -> FailureClass:
    if s.unusable:
        return FailureClass.MODEL
    if s.build_failure:
        blamed = s.build_failure.cause in BLAMED
        return FailureClass.ENVIRONMENT if blamed else FailureClass.INFRASTRUCTURE
    labels = {f.label for f in s.failures if f.label is not FailureClass.STUCK}
    return labels.pop() if len(labels) == 1 else FailureClass.UNKNOWN


def _last(s: Session) -> str:
    if s.unusable:
        return f"Last: {s.unusable}"
    if s.build_failure:
        return f"Last: the image could not be built, {s.build_failure.message}"
    return f"Last: {'; '.join(_line(f) for f in s.failures[:5])}"


def _stuck(s: Session) -> str:
    stuck = [f for f in s.failures if f.label is FailureClass.STUCK]
    return f"every repair was tried in vain: {'; '.join(_line(f) for f in stuck[:5])}"


def _script(event: e.TestsPassed) -> str:
    """Say what is known of the script itself; nothing where it was not to be run."""
    if event.script_not_run:
        return f"; the script itself was not run: {event.script_not_run}"
    if event.run.script is None:
        return ""
    left = " and left its outputs" if event.run.outputs else ""
    return f"; the script itself ran{left}"


def _line(f: Failure) -> str:
    return f"{f.test_id} ({f.problem.type}: {f.headline[:200]})"
