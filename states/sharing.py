"""Folds that every workflow shares: pay, opening, packages that cannot be had, what happens anywhere.

As in folding.py: none of them looks at a state or decides anything, and all of them are total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from codetape.states import events as e
from codetape.states.changing import replace
from codetape.states.ladder import is_given_up
from codetape.states.packages import name_of, permission
from codetape.states.session import Rejected, Session, Totals
from codetape.states.values import Answer

S = TypeVar("S", bound=Session)

DENIED = "The person who uses this does not want it installed. Use something else."
"""What the model is told of a package that a person has denied."""


def paid(s: S, event: e.Event) -> S:
    """Count what the outcome cost, and let it end the counting of failures."""
    outcome = event.outcome
    if outcome is None:
        return s
    seconds = s.seconds + max(0.0, outcome.seconds or 0.0)
    if not isinstance(outcome, Answer):
        return replace(s, seconds=seconds, crashes=0)
    totals = _added(s.totals, outcome)
    answered: dict[str, Any] = {} if isinstance(event, e.AnswerRejected) else _USABLE
    return replace(
        s,
        seconds=seconds,
        crashes=0,
        totals=totals,
        call_failures=0,
        call_failure=None,
        **answered,
    )


FORGOTTEN: dict[str, Any] = {"rejected_kind": "", "rejection": "", "rejected_text": ""}
"""Fields of the last unusable answer, as they are without one."""

_USABLE: dict[str, Any] = {"rejections": 0, "unusable": "", **FORGOTTEN}


def _added(totals: Totals, answer: Answer) -> Totals:
    """Count an answer. A number below zero is none: nothing that was paid comes back."""
    tokens_in, tokens_out = answer.usage.input_tokens, answer.usage.output_tokens
    counted = [n for n in (tokens_in, tokens_out) if n is not None and n >= 0]
    priced = answer.cost is not None and answer.cost >= 0  # nor is what is no number
    return Totals(
        calls=totals.calls + 1,
        input_tokens=totals.input_tokens + max(0, tokens_in or 0),
        output_tokens=totals.output_tokens + max(0, tokens_out or 0),
        usd=totals.usd + (answer.cost or 0.0 if priced else 0.0),
        uncounted_calls=totals.uncounted_calls + (len(counted) < 2),
        unpriced_calls=totals.unpriced_calls + (not priced),
    )


# --- opening --------------------------------------------------------------------------------------


def _session_opened(s: Session, event: e.SessionOpened) -> Session:
    return replace(s, job=event.job)


def _forked(s: Session, event: e.Forked) -> Session:
    """What was paid so far was paid by the parent; a model that failed it may serve the fork."""
    s = replace(s, inherited=s.totals, inherited_seconds=s.seconds)
    if event.job is None:
        return s
    return replace(s, job=event.job, given_up=0, call_failures=0, call_failure=None)


def _sandbox_ready(s: Session, event: e.SandboxReady) -> Session:
    return replace(s, sandbox=event.image, broken=0)


# --- packages -------------------------------------------------------------------------------------


def _package_rejected(s: Session, event: e.PackageRejected) -> Session:
    kind = _REJECTED_KIND.get(event.failure.cause, "package")
    named = event.failure.packages
    rejected = tuple(Rejected(name, kind, event.failure.message) for name in named)
    return replace(s, rejected=(*s.rejected, *rejected), broken=0)


def _packages_held(s: Session, event: e.PackagesHeld) -> Session:
    return replace(s, held=event.failure, broken=0)


_REJECTED_KIND: dict[str, Any] = {
    "unknown_system_package": "system_package",
    "refused_system_package": "system_package",
    "undecided_system_package": "system_package",
    "command": "command",
    "refused_command": "command",
    "undecided_command": "command",
}
"""What was rejected, by the cause of the failed build; else it is a package."""


def _package_replaced(s: Session, event: e.PackageReplaced) -> Session:
    asked = s.unanswered
    if asked is None or asked.name != event.rejected:
        return s
    answered = replace(asked, answered=True, replacement=event.replacement)
    return replace(s, rejected=tuple(answered if r is asked else r for r in s.rejected))


# --- anywhere -------------------------------------------------------------------------------------


def answer_rejected(s: S, event: e.AnswerRejected) -> S:
    """Count the unusable answers of one kind in a row, and keep the last one for its repair request."""
    return replace(
        s,
        rejections=s.rejections + 1 if event.kind == s.rejected_kind else 1,
        rejected_kind=event.kind,
        rejection=f"{event.reason}: {event.detail}",
        rejected_text=event.answer.text or "",
    )


def _call_failed(s: Session, event: e.CallFailed) -> Session:
    s = replace(s, call_failures=s.call_failures + 1, call_failure=event.failure)
    if not is_given_up(s) or s.given_up >= len(s.job.fallback_models):
        return s
    return replace(s, given_up=s.given_up + 1, call_failures=0, call_failure=None)


def _budget_spent(s: Session, event: e.BudgetSpent) -> Session:
    spent = f"{event.spent:g} spent" + (f", up to {event.next:g} next" if event.next else "")
    limit = event.limit if event.allowed != 1 or event.limit == "usd" else event.limit[:-1]
    reason = f"the budget of {event.allowed:g} {limit} does not allow the next call ({spent})"
    return replace(s, paused=reason)


def _paused(s: Session, event: e.Paused) -> Session:
    return replace(s, paused=f"paused by {event.by}")


def _resumed(s: Session, event: e.Resumed) -> Session:
    """Who resumes a session that nobody has paused tells that the process which ran it has died."""
    job = s.job if event.budget is None else s.job.model_copy(update={"budget": event.budget})
    crashes = s.crashes + (s.paused is None)
    return replace(_decided(s, event), job=job, crashes=crashes, paused=None, held=None)


def _decided(s: Session, event: e.Resumed) -> Session:
    """Allow and deny what was held; what nobody decided on is asked again."""
    held = s.held.packages if s.held else ()
    kind: Any = _REJECTED_KIND.get(s.held.cause, "package") if s.held else "package"
    allowed = [name for name in held if _named(name, kind, event.allow)]
    denied = [n for n in held if n not in allowed and _named(n, kind, event.deny)]
    rejected = (Rejected(name, kind, DENIED) for name in denied)
    permissions = tuple(permission(kind, name) for name in allowed)
    return replace(s, allowed=united(s.allowed, permissions), rejected=(*s.rejected, *rejected))


def _named(held: str, kind: str, answer: tuple[str, ...]) -> bool:
    """Say whether an answer names what is held; only a package may be named without its version."""
    return held in answer or (kind == "package" and name_of(held) in answer)


def _noted(s: Session, event: e.Noted) -> Session:
    return replace(s, notes=(*s.notes, event.text))


def _unchanged(s: Session, _: e.Event) -> Session:
    return s


def united(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """Return both, each once."""
    return tuple(dict.fromkeys((*old, *new)))


SHARED: Mapping[type[e.Event], Callable[[Any, Any], Session]] = {
    e.SessionOpened: _session_opened,
    e.Forked: _forked,
    e.SandboxReady: _sandbox_ready,
    e.PackageRejected: _package_rejected,
    e.PackagesHeld: _packages_held,
    e.PackageReplaced: _package_replaced,
    e.AnswerRejected: answer_rejected,
    e.CallFailed: _call_failed,
    e.AttemptsSpent: _unchanged,
    e.BudgetSpent: _budget_spent,
    e.Paused: _paused,
    e.Resumed: _resumed,
    e.Noted: _noted,
    e.Cancelled: _unchanged,
}
