"""Folding the tool maker's events; what it shares with the auto-coder is folded there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codetape.states import events as e
from codetape.states import folding
from codetape.states.changing import replace
from codetape.states.session import Session, Solution, Tests
from codetape.states.sharing import answer_rejected, paid
from codetape.states.tools import events as t
from codetape.states.tools.session import Finding, ToolSession
from codetape.states.values import FailureClass


def folded(session: ToolSession, event: e.Event) -> Session:
    """Return the session with the facts of `event`; state and seq are not touched."""
    own = _FOLDS.get(type(event))
    if own is None:
        return folding.folded(session, event)
    return own(paid(session, event), event)


def _finding(s: ToolSession, event: t.FindingWritten) -> ToolSession:
    finding = Finding(event.persona, event.answer.text or "")
    s = replace(s, findings=(*s.findings, finding))
    return replace(s, code=Solution(event.source, event.packages)) if event.source else s


def _code(s: ToolSession, event: e.CodeWritten) -> ToolSession:
    """A repair: of what the harness found if there is one, else of a crash or a build."""
    tried = {(f.identity, FailureClass.LOGIC) for f in s.failures}
    s = replace(s, tried=s.tried | tried, ran=False, build_failure=None)
    code = Solution(event.source, event.packages)
    if s.tests is not None:
        return replace(s, code=code, logic_repairs=s.logic_repairs + 1)
    return replace(s, code=code, fixes=s.fixes + 1)


def _ran(s: ToolSession, event: t.ScriptRan) -> ToolSession:
    return replace(
        folding.ran(s, event.run), ran=True, sound=s.code, script_run=event.run, failures=()
    )


def _crashed(s: ToolSession, event: t.ScriptCrashed) -> ToolSession:
    s = replace(folding.ran(s, event.run), failures=(event.failure,))
    return _taken_back(s) if s.logic_repairs else replace(s, script_run=event.run)


def _repair_failed(s: ToolSession, event: e.RepairFailed) -> ToolSession:
    s = folding.repair_failed(s, event)
    return _taken_back(s) if s.logic_repairs else s


def _taken_back(s: ToolSession) -> ToolSession:
    """A repair of the logic that does not run is none: the script that ran is the better tool."""
    return replace(s, code=s.sound)


def _harness(s: ToolSession, event: t.HarnessWritten) -> ToolSession:
    return replace(s, tests=Tests(event.source, event.packages), refusals=())


def _refused(s: ToolSession, event: t.HarnessRefused) -> ToolSession:
    text = event.answer.text or ""
    return replace(s, refused=s.refused + 1, refusals=event.reasons, refused_harness=text)


def _not_collected(s: ToolSession, event: e.TestsNotCollected) -> ToolSession:
    return replace(folding.ran(s, event.run), failures=(event.failure,))


_FOLDS: dict[type[e.Event], Callable[[Any, Any], Session]] = {
    t.FindingWritten: _finding,
    e.CodeWritten: _code,
    t.ScriptRan: _ran,
    t.ScriptCrashed: _crashed,
    e.RepairFailed: _repair_failed,
    t.HarnessWritten: _harness,
    t.HarnessRefused: _refused,
    e.TestsNotCollected: _not_collected,
    e.AnswerRejected: answer_rejected,
}
