"""What holds for every session, whatever models, sandboxes and operators do.

Hypothesis drives the rules of the auto-coder as the engine does, without an engine: settle, wanted,
an outcome for any of the requests in flight, interpret, advance. `PROMISES` are checked on each whole
session; a failing example shrinks towards the happy path.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetape.engine.codec import pack_event, pack_request, unpack_event
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.guards import ANSWERS, BLAMED, REJECTIONS, ROUNDS
from codetape.states.job import Job
from codetape.states.ladder import CODE_LABELS, image_would_change
from codetape.states.machine import IllegalTransition, State
from codetape.states.session import Session
from codetape.states.values import Answer, FailureClass
from codetape.states.workflow import AUTOCODER
from codetape.testing.strategies import Trace, outcomes, traces, unusable_answers

Promise = Callable[[Trace], None]


# --- the tape is all there is ---------------------------------------------------------------------


def folding_the_stored_events_gives_the_live_session(trace: Trace) -> None:
    session = AUTOCODER.blank("s")
    for step in trace:
        packed = pack_event(step.event)
        name, version = step.event.name, step.event.version
        stored = unpack_event(name, version, packed.text, packed.blobs.__getitem__)
        assert stored == step.event
        session = AUTOCODER.advance(session, stored)
        assert session == step.after


def equal_sessions_want_equal_requests(trace: Trace) -> None:
    session = AUTOCODER.blank("s")
    for step in trace:
        session = AUTOCODER.advance(session, step.event)
        keys = [pack_request(request).key for request in AUTOCODER.wanted(session)]
        assert keys == [pack_request(request).key for request in AUTOCODER.wanted(step.after)]
        assert len(set(keys)) == len(keys), "two requests in flight are the same"


def an_outcome_is_read_the_same_way_again(trace: Trace) -> None:
    for step in trace:
        if step.request is not None and step.outcome is not None:
            assert AUTOCODER.interpret(step.request, step.outcome) == step.event
            assert step.event.outcome is None or step.event.outcome == step.outcome or _named(step)


def _named(step: object) -> bool:
    """Of a rejected package the event keeps the name that the image asked for, not the report's."""
    return isinstance(getattr(step, "event", None), e.PackageRejected)


def what_was_paid_is_the_sum_over_the_events(trace: Trace) -> None:
    answers = [s.event.outcome for s in trace if isinstance(s.event.outcome, Answer)]
    totals = trace[-1].after.totals
    assert totals.calls == len(answers)
    assert totals.input_tokens == sum(a.usage.input_tokens or 0 for a in answers)
    assert totals.output_tokens == sum(a.usage.output_tokens or 0 for a in answers)
    assert math.isclose(totals.usd, sum(a.cost or 0 for a in answers))
    assert (totals.cost is None) == any(a.cost is None for a in answers)
    seconds = [s.event.outcome.seconds or 0 for s in trace if s.event.outcome is not None]
    assert math.isclose(trace[-1].after.seconds, sum(seconds))


# --- it ends --------------------------------------------------------------------------------------


def most_steps(job: Job) -> int:
    """A bound on the events of a session: what may be asked for in one attempt, each time at worst."""
    usable = 1 + ROUNDS * 4 + 2  # plan; code, patches and what verifies them; tests, diagnosis
    usable += len(job.constraints)
    calls = usable * ANSWERS * (1 + job.call_retries) * (1 + len(job.fallback_models))
    builds = 3 * (1 + job.sandbox_retries)
    rejections = REJECTIONS * (builds + 2 * (1 + job.call_retries))
    settled, operated = 4, 12
    return (job.attempts + 1) * (calls + builds + settled) + rejections + operated


def it_ends_in_bounded_steps(trace: Trace) -> None:
    last = trace[-1].after
    assert last.done or last.paused
    assert len(trace) <= most_steps(last.job)


def it_always_waits_for_something(trace: Trace) -> None:
    for step in trace:
        session = step.after
        asked, settled = AUTOCODER.wanted(session), AUTOCODER.settle(session)
        if session.done or session.paused:
            assert (asked, settled) == ((), None)
        else:
            assert asked or settled, f"nothing follows in {session.state}"


def done_is_the_end(trace: Trace) -> None:
    last = trace[-1].after
    assert [s.after.done for s in trace[:-1]] == [False] * (len(trace) - 1)
    if last.done:
        assert last.ending is not None
        assert last.ending.reason.strip()
        for event in (trace[0].event, trace[-1].event, e.Noted(text="x"), e.Resumed()):
            with pytest.raises(IllegalTransition):
                AUTOCODER.advance(last, event)


def it_ends_well_only_by_a_pass(trace: Trace) -> None:
    last = trace[-1].after
    if last.ending is not None and last.ending.failure is None:
        skipped = last.job.skip_tests and last.image is not None
        assert skipped or isinstance(trace[-1].event, e.TestsPassed)


def a_pass_is_every_test_reported_and_none_failed(trace: Trace) -> None:
    for step in trace:
        if isinstance(step.event, e.TestsPassed):
            report = step.event.run.report
            assert report is not None
            assert {result.id for result in report.results} >= set(report.collected)
            outcomes = {result.outcome for result in report.results}
            assert "passed" in outcomes
            assert "failed" not in outcomes


def attempts_are_runs_and_failed_builds_within_their_limit(trace: Trace) -> None:
    for step in trace:
        rebuilt = step.before.state is State.NEEDS_REBUILD and isinstance(
            step.event, e.RepairFailed
        )
        attempt = rebuilt or isinstance(step.event, e.Ran | e.BuildFailed)
        assert step.after.attempts == step.before.attempts + attempt
        assert step.after.attempts <= step.after.job.attempts


# --- nothing is done in vain ----------------------------------------------------------------------


def nothing_is_asked_after_which_nothing_can_follow(trace: Trace) -> None:
    for step in trace:
        if isinstance(step.request, r.ModelRequest | r.BuildImage | r.RunTests):
            assert step.before.attempts < step.before.job.attempts


def the_same_run_is_never_made_twice(trace: Trace) -> None:
    ran: set[tuple[str, ...]] = set()
    for step in trace:
        if isinstance(step.event, e.Ran) and isinstance(step.request, r.RunTests):
            spec = step.request.spec
            run = (spec.image.spec_key, *(file.text for file in spec.files))
            assert run not in ran
            ran.add(run)


def the_same_image_is_not_built_again_in_vain(trace: Trace) -> None:
    failed: set[str] = set()
    for step in trace:
        if isinstance(step.request, r.BuildImage):
            assert step.request.spec.key not in failed
            if isinstance(step.event, e.BuildFailed) and step.event.failure.cause in BLAMED:
                failed.add(step.request.spec.key)


def nothing_is_built_from_what_was_rejected(trace: Trace) -> None:
    for step in trace:
        if isinstance(step.request, r.BuildImage):
            spec = step.request.spec
            asked = {*spec.requirements, *spec.system_packages, *spec.commands}
            assert not asked & {rejected.name for rejected in step.before.rejected}


def bad_answers_and_failed_calls_are_bounded(trace: Trace) -> None:
    for step in trace:
        assert step.after.rejections <= ANSWERS
        assert step.after.call_failures <= step.after.job.call_retries + 1
        assert step.after.broken <= step.after.job.sandbox_retries + 1
        assert step.after.repair is None or step.after.repair.rounds <= ROUNDS
        assert len(step.after.rejected) <= REJECTIONS + 2  # one build may name several


def what_a_model_is_asked_survives_what_finishes_beside_it(trace: Trace) -> None:
    """It is in flight, and would be paid for twice: while an image is built, a constraint is read."""
    for step in trace:
        moved = step.before.state is not step.after.state
        if step.request is None or moved or isinstance(step.event, e.CallFailed):
            continue
        still = {request.key for request in AUTOCODER.wanted(step.after)}
        for request in AUTOCODER.wanted(step.before):
            if isinstance(request, r.ModelRequest) and request != step.request:
                assert request.key in still or isinstance(step.event, e.AnswerRejected)


def a_bad_answer_is_shown_only_where_it_was_given(trace: Trace) -> None:
    for step in trace:
        if isinstance(step.request, r.ModelRequest):
            repairs = len(step.request.call.messages) > 2
            assert repairs == (step.before.rejected_kind == step.request.call.kind)


# --- the ladder -----------------------------------------------------------------------------------


def no_failure_is_lost(trace: Trace) -> None:
    for step in trace:
        if isinstance(step.event, e.Reclassified | e.Diagnosed):
            before = [failure.test_id for failure in step.before.failures]
            assert [failure.test_id for failure in step.after.failures] == before
            assert before
            assert len(set(before)) == len(before)
        if isinstance(step.event, e.Reclassified):
            assert [label.test_id for label in step.event.labels] == before
            assert [label.before for label in step.event.labels] == _labels(step.before)
            assert [label.after for label in step.event.labels] == _labels(step.after)


def _labels(session: Session) -> list[FailureClass]:
    return [failure.label for failure in session.failures]


def every_failing_test_of_a_run_is_a_failure(trace: Trace) -> None:
    for step in trace:
        if isinstance(step.event, e.TestsFailed) and step.event.run.report:
            failed = [t.id for t in step.event.run.report.results if t.outcome == "failed"]
            assert set(failed) <= {failure.test_id for failure in step.after.failures}


def a_label_flips_only_after_its_repair_was_in_vain(trace: Trace) -> None:
    """An account of its own: which repairs were made, and when a run or a refusal judged them."""
    made: dict[tuple[str, FailureClass], int] = {}
    judged = -1
    for number, step in enumerate(trace):
        made |= dict.fromkeys(_repaired(step.before, step.event), number)
        if isinstance(step.event, e.Ran | e.RepairFailed | e.PatchRefused):
            judged = number
        if not isinstance(step.event, e.Reclassified):
            continue
        for failure, label in zip(step.before.failures, step.event.labels, strict=True):
            unknown = label.before is FailureClass.UNKNOWN
            hopeless = label.before is FailureClass.ENVIRONMENT
            hopeless = hopeless and not image_would_change(step.before)
            if label.before is not label.after and not unknown and not hopeless:
                assert made[failure.identity, label.before] <= judged


def _repaired(session: Session, event: e.Event) -> list[tuple[str, FailureClass]]:
    labels: frozenset[FailureClass] = frozenset()
    if isinstance(event, e.CodeWritten):
        labels = CODE_LABELS | {FailureClass.ENVIRONMENT}
    if isinstance(event, e.TestsPatched | e.TestsWritten | e.PatchRefused):
        labels = frozenset({FailureClass.TEST_ERROR})
    if isinstance(event, e.ImageBuilt):
        labels = frozenset({FailureClass.ENVIRONMENT})
    return [(f.identity, f.label) for f in session.failures if f.label in labels]


def a_label_leads_to_its_own_repair(trace: Trace) -> None:
    for step in trace:
        if not isinstance(step.event, e.Reclassified):
            continue
        labels = set(_labels(step.after))
        match step.after.state:
            case State.DONE:
                assert FailureClass.STUCK in labels
            case State.NEEDS_TESTS:
                assert FailureClass.TEST_ERROR in labels
            case State.NEEDS_CODE:
                assert labels & CODE_LABELS
                assert FailureClass.TEST_ERROR not in labels
            case _:
                assert labels == {FailureClass.ENVIRONMENT}


PROMISES: tuple[Promise, ...] = (
    folding_the_stored_events_gives_the_live_session,
    equal_sessions_want_equal_requests,
    an_outcome_is_read_the_same_way_again,
    what_was_paid_is_the_sum_over_the_events,
    it_ends_in_bounded_steps,
    it_always_waits_for_something,
    done_is_the_end,
    it_ends_well_only_by_a_pass,
    a_pass_is_every_test_reported_and_none_failed,
    attempts_are_runs_and_failed_builds_within_their_limit,
    nothing_is_asked_after_which_nothing_can_follow,
    the_same_run_is_never_made_twice,
    the_same_image_is_not_built_again_in_vain,
    nothing_is_built_from_what_was_rejected,
    bad_answers_and_failed_calls_are_bounded,
    what_a_model_is_asked_survives_what_finishes_beside_it,
    a_bad_answer_is_shown_only_where_it_was_given,
    no_failure_is_lost,
    every_failing_test_of_a_run_is_a_failure,
    a_label_flips_only_after_its_repair_was_in_vain,
    a_label_leads_to_its_own_repair,
)


@settings(max_examples=300, report_multiple_bugs=False)
@given(traces())
def test_every_session_keeps_the_promises(trace: Trace) -> None:
    for promise in PROMISES:
        promise(trace)


@settings(max_examples=40)
@given(traces(), st.data())
def test_whatever_an_adapter_brings_is_an_event_that_is_accepted(
    trace: Trace, data: st.DataObject
) -> None:
    session = data.draw(st.sampled_from([step.after for step in trace]))
    for request in AUTOCODER.wanted(session):
        event = AUTOCODER.interpret(request, data.draw(outcomes(request)))
        assert AUTOCODER.advance(session, event).seq == session.seq + 1
        if isinstance(request, r.ModelRequest):
            unusable = AUTOCODER.interpret(request, data.draw(unusable_answers(request)))
            assert not isinstance(unusable, e.CodeWritten | e.TestsWritten | e.Diagnosed)


PROGRAM = """
import hashlib
from codetape.engine.codec import pack_event, pack_request
from codetape.states.job import Job
from codetape.testing.strategies import Chance, played

job = Job(prompt="Add.", max_iterations=6, sandbox_retries=1, base_packages=("b", "a"))
for seed in range(12):
    data = b"".join(hashlib.sha256(f"{seed} {n}".encode()).digest() for n in range(20))
    for step in played(Chance(data, trouble=10), job):
        print(hashlib.sha256(pack_event(step.event).text.encode()).hexdigest())
        print(step.request and pack_request(step.request).key)
"""


def test_no_event_and_no_request_depends_on_the_hash_seed() -> None:
    def told(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    one = told("0")
    assert len(one.split()) > 300
    assert one == told("1")


@settings(max_examples=60)
@given(traces(operated=False))
def test_a_session_that_nobody_touches_ends_or_waits_for_a_person(trace: Trace) -> None:
    last = trace[-1].after
    assert last.done or last.held or isinstance(trace[-1].event, e.BudgetSpent)
