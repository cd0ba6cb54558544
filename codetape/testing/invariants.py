"""What holds for every session of every workflow, whatever models, sandboxes and operators do.

An invariant is a function of a whole session; it fails with an AssertionError. `check` asks all that
hold for a workflow:

    @given(traces(workflow=MINE))
    def test_every_session_keeps_the_invariants(trace):
        check(trace, MINE)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from codetape.engine.codec import pack_event, pack_request, unpack_event
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.machine import IllegalTransition
from codetape.states.script import as_evidence
from codetape.states.session import Session
from codetape.states.values import Answer, RunOutcome
from codetape.states.workflow import AUTOCODER, Workflow
from codetape.testing import autocoder_invariants
from codetape.testing.playing import Step, Trace

Invariant = Callable[[Trace, Workflow], None]


def check(trace: Trace, workflow: Workflow = AUTOCODER) -> None:
    """Check what holds for all workflows; of the auto-coder also what only it promises."""
    for invariant in GENERAL:
        invariant(trace, workflow)
    if workflow is AUTOCODER:
        for promise in autocoder_invariants.PROMISES:
            promise(trace)


def folding_the_stored_events_gives_the_live_session(trace: Trace, workflow: Workflow) -> None:
    """Nothing but the tape influences a session: its events, stored and read, fold to the same one."""
    session = workflow.blank("s")
    for step in trace:
        packed = pack_event(step.event)
        name, version = step.event.name, step.event.version
        stored = unpack_event(name, version, packed.text, packed.blobs.__getitem__)
        assert stored == step.event
        session = workflow.advance(session, stored)
        assert session == step.after


def equal_sessions_want_equal_requests(trace: Trace, workflow: Workflow) -> None:
    """What is asked follows from the events alone, and no two requests in flight are the same."""
    session = workflow.blank("s")
    for step in trace:
        session = workflow.advance(session, step.event)
        keys = [pack_request(request).key for request in workflow.wanted(session)]
        assert keys == [pack_request(request).key for request in workflow.wanted(step.after)]
        assert len(set(keys)) == len(keys), "two requests in flight are the same"


def an_outcome_is_read_the_same_way_again(trace: Trace, workflow: Workflow) -> None:
    """A request and its outcome make the same event at any time, and the event keeps the outcome."""
    for step in trace:
        if step.request is not None and step.outcome is not None:
            assert workflow.interpret(step.request, step.outcome) == step.event
            assert step.event.outcome in (None, _kept(step)) or _named(step)


def _kept(step: Step) -> object:
    """Return what the event keeps of an outcome: of outputs of a script, what a verdict reads."""
    if isinstance(step.request, r.RunTests) and isinstance(step.outcome, RunOutcome):
        spec = step.request.spec
        return as_evidence(spec, step.outcome) if spec.script else step.outcome
    return step.outcome


def _named(step: Step) -> bool:
    """Of a rejected package the event keeps the name that the image asked for, not the report's."""
    return isinstance(step.event, e.PackageRejected | e.PackagesHeld)


def what_was_paid_is_the_sum_over_the_events(trace: Trace, _: Workflow) -> None:
    """Calls, tokens, dollars and seconds are sums over the tape; what is unknown stays unknown."""
    answers = [s.event.outcome for s in trace if isinstance(s.event.outcome, Answer)]
    totals = trace[-1].after.totals
    assert totals.calls == len(answers)
    assert totals.input_tokens == sum(a.usage.input_tokens or 0 for a in answers)
    assert totals.output_tokens == sum(a.usage.output_tokens or 0 for a in answers)
    assert math.isclose(totals.usd, sum(a.cost or 0 for a in answers))
    assert (totals.cost is None) == any(a.cost is None for a in answers)
    seconds = [s.event.outcome.seconds or 0 for s in trace if s.event.outcome is not None]
    assert math.isclose(trace[-1].after.seconds, sum(seconds))


def it_always_waits_for_something(trace: Trace, workflow: Workflow) -> None:
    """A session that is neither done nor paused asks for something or goes on by itself."""
    for step in trace:
        session = step.after
        asked, settled = workflow.wanted(session), workflow.settle(session)
        if session.done or session.paused:
            assert (asked, settled) == ((), None)
        else:
            assert asked or settled, f"nothing follows in {session.state}"


def done_is_the_end(trace: Trace, workflow: Workflow) -> None:
    """Done comes last, says why, and accepts nothing."""
    last = trace[-1].after
    assert [s.after.done for s in trace[:-1]] == [False] * (len(trace) - 1)
    if last.done:
        assert last.ending is not None
        assert last.ending.reason.strip()
        for event in (trace[0].event, trace[-1].event, e.Noted(text="x"), e.Resumed()):
            assert refuses(workflow, last, event), f"Done accepts {event.name}"


def refuses(workflow: Workflow, session: Session, event: e.Event) -> bool:
    """True if the table does not accept `event` after this session."""
    try:
        workflow.advance(session, event)
    except IllegalTransition:
        return True
    return False


GENERAL: tuple[Invariant, ...] = (
    folding_the_stored_events_gives_the_live_session,
    equal_sessions_want_equal_requests,
    an_outcome_is_read_the_same_way_again,
    what_was_paid_is_the_sum_over_the_events,
    it_always_waits_for_something,
    done_is_the_end,
)
"""What holds for every workflow."""
