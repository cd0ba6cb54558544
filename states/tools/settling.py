"""What follows from a session of the tool maker without asking anyone."""

from __future__ import annotations

from collections.abc import Callable

from codetape.states import events as e
from codetape.states.budget import UNLIMITED, overspent
from codetape.states.classify import needs_of
from codetape.states.failures import Failure
from codetape.states.ladder import image_would_change
from codetape.states.machine import State
from codetape.states.settling import decision, first_of, no_progress
from codetape.states.tools.session import ToolSession
from codetape.states.tools.wanting import wanted
from codetape.states.values import FailureClass


def settle(s: ToolSession) -> e.Event | None:
    """Return the event that follows by itself, or None if the outside world has to be asked."""
    return first_of(_RULES, s)


def _diagnosed(s: ToolSession) -> e.Event | None:
    """No model is asked who is at fault: the harness was checked, so the script is."""
    if s.state is not State.DIAGNOSING:
        return None
    needs = needs_of(s.failures, s.imports)
    return e.Diagnosed(by="evidence", failures=s.failures, needs=needs)


def _relabelled(s: ToolSession) -> e.Event | None:
    if s.state is not State.RECLASSIFY:
        return None
    labels = (
        e.Relabelled(test_id=f.test_id, before=f.label, after=_label(s, f)) for f in s.failures
    )
    return e.Reclassified(labels=tuple(labels))


def _label(s: ToolSession, failure: Failure) -> FailureClass:
    """One repair of the logic is made; what fails after it is stuck."""
    if failure.label is FailureClass.ENVIRONMENT and image_would_change(s):
        return FailureClass.ENVIRONMENT
    return FailureClass.STUCK if s.logic_repairs else FailureClass.LOGIC


def _budget(s: ToolSession) -> e.Event | None:
    return None if s.job.budget == UNLIMITED else overspent(s, wanted(s))


_RULES: tuple[Callable[[ToolSession], e.Event | None], ...] = (
    _diagnosed,
    _relabelled,
    no_progress,
    decision,
    _budget,
)
