"""A session without an end, one step at a time: each repair of the code brings another failure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from benchmarks import scripted
from codetape.adapters.llm.scripted import Item
from codetape.adapters.sandbox.fake import built
from codetape.adapters.system import SystemClock
from codetape.engine.codec import Asked, pack_request
from codetape.engine.ports import EventStore
from codetape.engine.tape import Writer
from codetape.states.events import Event, SessionOpened
from codetape.states.requests import BuildRequest, CheckSandbox, ModelRequest, Request, RunTests
from codetape.states.session import Session
from codetape.states.values import Answer, Outcome
from codetape.states.workflow import AUTOCODER

CYCLE = 4
"""Steps of one repair: tests_failed, diagnosed, reclassified, code_written."""


def opened(store: EventStore, name: str) -> tuple[Writer, Session]:
    """Open a session whose attempts are never spent."""
    job = scripted.job(0).model_copy(update={"max_iterations": 1_000_000})
    lease = store.create(name, AUTOCODER.name, job.name, "benchmark")
    writer = Writer(store, AUTOCODER, SystemClock(), lease)
    event = SessionOpened(job=job, workflow=AUTOCODER.name, rules=AUTOCODER.rules)
    session, _ = writer.record(AUTOCODER.blank(name), event)
    return writer, session


def steps(writer: Writer, session: Session) -> Iterator[Session]:
    """Yield the session after each step. A step does all that the engine does, without a task:

    it asks the rules what is wanted, packs the request, reads the outcome and appends the event.
    """
    while True:
        event, asked = _next(session)
        session, _ = writer.record(session, event, asked)
        yield session


def _next(session: Session) -> tuple[Event, Asked | None]:
    if event := AUTOCODER.settle(session):
        return event, None
    asked = pack_request(AUTOCODER.wanted(session)[0])
    return AUTOCODER.interpret(asked.request, _outcome(asked.request, session.attempts)), asked


def _outcome(request: Request, attempt: int) -> Outcome:
    match request:
        case ModelRequest():
            answer = _ANSWERS[request.call.kind](attempt)
            return Answer(text=json.dumps(answer), finish_reason="stop", model="scripted")
        case CheckSandbox() | BuildRequest():
            return built(request.spec)
        case RunTests():
            return scripted.failing(attempt)(request.spec)
    raise TypeError(f"{request.name} is not asked for in these sessions")


_ANSWERS: dict[str, Callable[[int], Item]] = {
    "plan": scripted.plan,
    "code": scripted.code,
    "tests": scripted.tests,
    "diagnosis": scripted.diagnosis,
}
