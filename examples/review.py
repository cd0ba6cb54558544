"""A workflow of one's own: the auto-coder, with a review between the passed tests and Done.

A second model reads the code. What it objects to goes back to the coder as a note, at most twice.
Check it: `codetape check examples.review:REVIEWED`. docs/own-workflow.md explains its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as changed

from codetape.states import events as e
from codetape.states import guards as g
from codetape.states import requests as r
from codetape.states.answers import Shape, Unusable, read
from codetape.states.autocoder import TABLE
from codetape.states.budget import overspent
from codetape.states.changing import replace
from codetape.states.machine import Machine, Row, State
from codetape.states.session import Ending, Session
from codetape.states.sharing import paid
from codetape.states.values import Answer, LlmCall, Message, Outcome, canonical
from codetape.states.workflow import AUTOCODER


class Verdict(Shape):
    approved: bool
    objections: str = ""


class Review(r.ModelRequest):
    name = "review"


class Reviewed(e.Answered):
    name = "reviewed"
    objections: str


@dataclass(frozen=True)
class ReviewedSession(Session):
    objections: str = ""
    reviews: int = 0


def objected(s: ReviewedSession) -> bool:
    return bool(s.objections) and s.reviews <= 2


def due(s: Session) -> bool:
    """This very code has passed its tests, and the review is what is left."""
    return s.state is State.TESTING and s.run_key in s.runs and not s.failures


def wanted(s: ReviewedSession) -> tuple[r.Request, ...]:
    if s.done or s.paused or not due(s) or s.code is None:
        return AUTOCODER.wanted(s)
    ask = (f"Does this code do what was asked for?\n{s.job.prompt}", s.code.source)
    call = LlmCall(
        kind="review",
        model=s.job.model,
        messages=(Message(role="user", parts=ask),),
        answer_schema=canonical(Verdict.model_json_schema()),
    )
    return (Review(call=call),)


def settle(s: ReviewedSession) -> e.Event | None:
    if s.done or s.paused or not due(s):
        return AUTOCODER.settle(s)
    return overspent(s, wanted(s))


def interpret(request: r.Request, outcome: Outcome) -> e.Event:
    if not (isinstance(request, Review) and isinstance(outcome, Answer)):
        return AUTOCODER.interpret(request, outcome)
    try:
        verdict = read(outcome, Verdict)
    except Unusable as why:
        return e.AnswerRejected(kind="review", reason=why.reason, detail=why.detail, answer=outcome)
    return Reviewed(objections="" if verdict.approved else verdict.objections, answer=outcome)


def folded(s: ReviewedSession, event: e.Event) -> Session:
    if not isinstance(event, Reviewed):
        return AUTOCODER.folded(s, event)
    notes = (*s.notes, event.objections) if event.objections else s.notes
    s = replace(paid(s, event), objections=event.objections, reviews=s.reviews + 1)
    return replace(s, notes=notes)


def ending(s: ReviewedSession, event: e.Event) -> Ending:
    if isinstance(event, Reviewed) or (isinstance(event, e.AttemptsSpent) and s.objections):
        left = f"; the review still objects: {s.objections}" if s.objections else " and the review"
        return Ending(None, f"the code passed its tests{left}")
    return AUTOCODER.ending(s, event)


T, DONE = State.TESTING, State.DONE
REVIEWED = changed(
    AUTOCODER,
    name="reviewed",
    machine=Machine((
        *(changed(row, dest=T) if row.event == "tests_passed" else row for row in TABLE),
        Row("reviewed", T, State.NEEDS_CODE, (objected,)),
        Row("reviewed", T, DONE),
        Row("answer_rejected", T, T, (g.answer_repair_left,)),
        Row("answer_rejected", T, DONE),
        Row("call_failed", T, T, (g.call_retry_left,)),
        Row("call_failed", T, DONE),
        Row("budget_spent", T, T),
    )),
    settle=settle,
    wanted=wanted,
    interpret=interpret,
    folded=folded,
    ending=ending,
    session=ReviewedSession,
)  # fmt: skip

BODIES = {"review": ({"approved": True}, {"approved": False, "objections": "Name it plus."})}
"""What a reviewer may say, for `codetape check` and the strategies."""
