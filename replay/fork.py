"""Fork: a session of its own that begins with the events of another one and goes on otherwise.

The events are shared, with their numbers and hashes; the other session is not touched. The first own
event, `forked`, says whose they are and what changes. One recorded outcome may be replaced: then it is
the second own event, read by the rules like any other. Nothing is asked and nothing is run.
"""

from __future__ import annotations

from dataclasses import replace

from codetape.engine.boundary import Boundary
from codetape.engine.codec import Asked, pack_request
from codetape.engine.ports import Clock, EventStore
from codetape.engine.tape import Writer
from codetape.replay.reading import Step, Tape
from codetape.states.events import Event, Forked
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.values import Outcome
from codetape.states.workflow import Workflow


class CannotFork(ValueError):
    """A fork that makes no sense there; nothing was written."""


def fork(
    tape: Tape,
    at: int,
    *,
    store: EventStore,
    id: str,
    clock: Clock,
    owner: str,
    job: Job | None = None,
    outcome: Outcome | None = None,
    boundary: Boundary | None = None,
) -> Session:
    """Start the session `id`, which shares the events of `tape` up to event `at`, and return it.

    `job` is what is asked for from there on (None: what was). `outcome` takes the place of the one
    that event `at` + 1 recorded. Raises CannotFork, IndexError, IllegalTransition, and what the store
    raises.
    """
    boundary = boundary or Boundary()
    begin = tape[at]
    before = replace(begin.session, id=id)
    if before.done:
        raise CannotFork(f"session {tape.id} is done after event {at}; fork it before that")
    forked = _forked(tape.id, begin.seq, before.job, boundary.clean(job) if job else None)
    forked = forked.model_copy(update={"given": outcome is not None})
    after = tape.rules.advance(before, forked)
    given = _given(tape, begin.seq + 1, after, boundary.clean(outcome)) if outcome else None
    lease = store.fork(id, tape.id, begin.seq, owner)
    writer = Writer(store, tape.rules, clock, lease, begin.record.hash)
    try:
        session, _ = writer.record(before, forked)
        if given:
            session, _ = writer.record(session, *given)
    finally:
        writer.release()
    return session


def _forked(parent: str, seq: int, before: Job, job: Job | None) -> Forked:
    names = [n for n in Job.model_fields if job and getattr(job, n) != getattr(before, n)]
    return Forked(parent=parent, seq=seq, job=job if names else None, changed=tuple(names))


def _given(tape: Tape, seq: int, session: Session, outcome: Outcome) -> tuple[Event, Asked]:
    """Return the event that `outcome` is in the place of the one that event `seq` recorded."""
    rules = tape.rules
    asked = _request(tape, seq, rules, session)
    try:
        event = rules.interpret(asked.request, outcome)
    except TypeError as error:
        raise CannotFork(f"event {seq} of {tape.id} is none of that kind: {error}") from None
    rules.advance(session, event)
    return event, asked


def _request(tape: Tape, seq: int, rules: Workflow, session: Session) -> Asked:
    """Return what the session asks for where the tape has event `seq`."""
    recorded = answers(tape, seq)
    if settled := rules.settle(session):
        raise CannotFork(f"there is no outcome to give: {settled.name} follows by itself")
    wanted = [pack_request(request) for request in rules.wanted(session)]
    same = [asked for asked in wanted if asked.key == recorded.record.request_key]
    alike = [asked for asked in wanted if asked.request.name == recorded.request_name]
    if not same and not alike:
        names = ", ".join(asked.request.name for asked in wanted) or "nothing"
        reason = f"{recorded.request_name} is not asked for after these changes, but {names}"
        raise CannotFork(f"there is no outcome to give: {reason}")
    return (same or alike)[0]


def answers(tape: Tape, seq: int) -> Step:
    """Return event `seq`, which answers a request. Raises CannotFork for another one."""
    if seq > len(tape):
        raise CannotFork(f"session {tape.id} has no event {seq} whose outcome could be replaced")
    step = tape[seq]
    if step.record.request_key is None or step.event.outcome is None:
        others = ", ".join(str(s.seq - 1) for s in tape if s.event.outcome is not None) or "none"
        reason = f"event {seq} of {tape.id}, {step.event.name}, answers no request"
        raise CannotFork(f"{reason}; an outcome can be replaced at {others}")
    return step
