"""How a session of the tool maker ended: a status for programs, and a reason for people."""

from __future__ import annotations

from typing import Literal

from codetape.states import ending as autocoder
from codetape.states import events as e
from codetape.states.session import Ending, Session
from codetape.states.tools import events as t
from codetape.states.tools.session import ToolSession
from codetape.states.values import FailureClass

Status = Literal["passed", "fixed", "logic_test_failed", "exhausted", "skipped", "cancelled"]
HarnessStatus = Literal["passed", "failed", "refused", "missing"]


def ending(s: ToolSession, event: e.Event) -> Ending:
    """Return the ending that `event` brought to a session that is done."""
    match event:
        case e.TestsPassed():
            how = "after one repair of its logic" if s.logic_repairs else "at once"
            return Ending(None, f"the tool runs, and its harness passed {how}")
        case t.FindingWritten():
            return Ending(FailureClass.MODEL, "no answer had code that parses")
        case t.HarnessRefused():
            return Ending(FailureClass.MODEL, f"no harness to check it: {' '.join(event.reasons)}")
        case t.ScriptCrashed():
            return Ending(event.failure.label, _crashed(s))
        case e.Reclassified() | e.RepairFailed():
            return Ending(_label(s), _failed(s))
    return autocoder.ending(s, event)


def status(s: Session) -> Status | None:
    """Return what became of the tool, or None while the session is not done."""
    if s.ending is None or not isinstance(s, ToolSession):
        return None
    if s.ending.failure is None:
        return "fixed" if s.logic_repairs else "passed"
    if s.ending.failure is FailureClass.CANCELLED:
        return "cancelled"
    if s.code is None:
        return "skipped"
    return "logic_test_failed" if s.tests and s.runs_of_harness else "exhausted"


def harness_status(s: Session) -> HarnessStatus:
    """Return what became of the harness. Missing: it was never written, or never ran to an end."""
    if not isinstance(s, ToolSession):
        return "missing"
    if s.tests is None:
        return "refused" if s.refused else "missing"
    if s.ending is not None and s.ending.failure is None:
        return "passed"
    return "failed" if s.runs_of_harness else "missing"


def _crashed(s: ToolSession) -> str:
    if s.logic_repairs:
        return f"the repair of its logic broke the tool, so it was taken back: {_problem(s)}"
    return f"it does not run after {s.fixes} repairs: {_problem(s)}"


def _failed(s: ToolSession) -> str:
    if s.tests is None:
        return f"the repairs changed nothing: {_problem(s)}"
    return f"its harness fails after one repair: {_problem(s)}"


def _problem(s: ToolSession) -> str:
    problems = [f"{f.problem.type}: {f.problem.message.strip()[:200]}" for f in s.failures[:3]]
    return "; ".join(problems) or (
        s.build_failure.message if s.build_failure else "no reason given"
    )


def _label(s: ToolSession) -> FailureClass:
    labels = [f.label for f in s.failures]
    return labels[0] if labels else FailureClass.UNKNOWN
