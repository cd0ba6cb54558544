"""What follows from a session without asking anyone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TypeVar

from codetape.states import events as e
from codetape.states.budget import UNLIMITED, overspent
from codetape.states.classify import missing_module, needs_of
from codetape.states.failures import Failure
from codetape.states.ladder import is_labelled, relabelled
from codetape.states.machine import State
from codetape.states.session import Session
from codetape.states.values import BuildFailure, FailureClass
from codetape.states.wanting import wanted

S = TypeVar("S", bound=Session)

NOTHING_FOLLOWS = frozenset(
    {State.NEEDS_CODE, State.NEEDS_TESTS, State.NEEDS_REBUILD, State.DIAGNOSING}
)
"""The states whose work would be in vain with no attempt left: nothing could run after it."""


def settle(s: Session) -> e.Event | None:
    """Return the event that follows by itself, or None if the outside world has to be asked."""
    return first_of(_RULES, s)


def first_of(rules: Iterable[Callable[[S], e.Event | None]], s: S) -> e.Event | None:
    """Return what the first rule that has something to say makes of a session; None if none has."""
    if s.done or s.paused:
        return None
    return next((event for rule in rules if (event := rule(s))), None)


def _attempts(s: Session) -> e.Event | None:
    if s.state in NOTHING_FOLLOWS and s.attempts >= s.job.attempts:
        return e.AttemptsSpent(attempts=s.attempts)
    return None


def _relabelling(s: Session) -> e.Event | None:
    return relabelled(s) if s.state is State.RECLASSIFY else None


def no_progress(s: Session) -> e.Event | None:
    """A repair that changed nothing is a failed repair."""
    if s.state is State.TESTING and s.run_key in s.runs:
        return e.RepairFailed(reason="the same code, tests and image ran before")
    if s.state is State.NEEDS_REBUILD and s.spec.key in s.failed_builds and not s.unanswered:
        return e.RepairFailed(reason="the build of the same image failed before")
    return None


def _budget(s: Session) -> e.Event | None:
    return None if s.job.budget == UNLIMITED else overspent(s, wanted(s))


def _evidence(s: Session) -> e.Event | None:
    """Nothing is left open: no model is asked for what a report proves."""
    if s.state is State.DIAGNOSING and not any(_open(s, f) for f in s.failures):
        needs = needs_of(s.failures, s.imports)
        return e.Diagnosed(by="evidence", failures=s.failures, needs=needs)
    return None


def _open(s: Session, f: Failure) -> bool:
    """The failure has no label; or the image lacks something, and nobody has been asked what."""
    if f.label is not FailureClass.ENVIRONMENT:
        return not is_labelled(f)
    asked = any(identity == f.identity for identity, _ in s.tried)
    return not asked and missing_module(f.problem, s.imports) is None


def decision(s: Session) -> e.Event | None:
    """What is held is asked of a person when nothing else is left to do."""
    if s.state is State.NEEDS_REBUILD and s.held and not s.unanswered:
        return e.Paused(by=f"a question: {_question(s.held)} {s.held.message}")
    return None


def _question(held: BuildFailure) -> str:
    if held.cause != "undecided_command":
        return f"may {', '.join(held.packages)} be installed?"
    commands = ", ".join(json.dumps(command, ensure_ascii=False) for command in held.packages)
    return f"may the build run as root, with a network: {commands}?"


_RULES: tuple[Callable[[Session], e.Event | None], ...] = (
    _relabelling,
    _attempts,
    no_progress,
    _evidence,
    decision,
    _budget,
)
