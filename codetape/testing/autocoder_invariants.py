"""What holds for every session of the auto-coder: it ends, wastes nothing, and loses no failure.

Each is a function of a whole session that fails with an AssertionError. `invariants.check` asks all.
"""

from __future__ import annotations

from collections.abc import Callable

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.guards import ANSWERS, BLAMED, REJECTIONS, ROUNDS
from codetape.states.job import Job
from codetape.states.ladder import CODE_LABELS, image_would_change
from codetape.states.machine import State
from codetape.states.session import Session
from codetape.states.values import FailureClass
from codetape.states.workflow import AUTOCODER
from codetape.testing.playing import Step, Trace

Promise = Callable[[Trace], None]


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
    """Every session ends, or is paused, within `most_steps`."""
    last = trace[-1].after
    assert last.done or last.paused
    assert len(trace) <= most_steps(last.job)


def it_ends_well_only_by_a_pass(trace: Trace) -> None:
    """Nothing but passed tests, or an image where no tests were wanted, is a good end."""
    last = trace[-1].after
    if last.ending is not None and last.ending.failure is None:
        skipped = last.job.skip_tests and last.image is not None
        assert skipped or isinstance(trace[-1].event, e.TestsPassed)


def a_pass_is_every_test_reported_and_none_failed(trace: Trace) -> None:
    """A pass has evidence of each test."""
    for step in trace:
        if isinstance(step.event, e.TestsPassed):
            report = step.event.run.report
            assert report is not None
            assert {result.id for result in report.results} >= set(report.collected)
            outcomes = {result.outcome for result in report.results}
            assert "passed" in outcomes
            assert "failed" not in outcomes


def a_pass_includes_a_run_of_the_script(trace: Trace) -> None:
    """Where a job asks for it, the script ended well and left its outputs, or it is told why not."""
    for step in trace:
        if not isinstance(step.event, e.TestsPassed):
            continue
        job, script, unrun = step.before.job, step.event.run.script, step.event.script_not_run
        if not job.script_runs:
            assert not unrun
        elif unrun:
            assert {d.name for d in job.inputs} - {sample.name for sample in job.samples}
        else:
            assert script is not None
            assert script.exit_status == 0
            assert {d.name for d in job.outputs} == {f.name for f in step.event.run.outputs}


def attempts_are_runs_failed_builds_and_unusable_answers_within_their_limit(trace: Trace) -> None:
    """Attempts count what ran, failed to build or could not be used, and stay within their limit."""
    for step in trace:
        rebuilt = step.before.state is State.NEEDS_REBUILD and isinstance(
            step.event, e.RepairFailed
        )
        attempt = rebuilt or isinstance(step.event, e.Ran | e.BuildFailed) or _unusable(step)
        assert step.after.attempts == step.before.attempts + attempt
        assert step.after.attempts <= step.after.job.attempts


def _unusable(step: Step) -> bool:
    """Code or tests of which the repair request brought nothing usable either."""
    kinds = ("code", "tests")
    return isinstance(step.event, e.AnswerRejected) and step.event.kind in kinds and _given_up(step)


# --- nothing is done in vain ----------------------------------------------------------------------


def nothing_is_asked_after_which_nothing_can_follow(trace: Trace) -> None:
    """With no attempt left nobody is paid and nothing is built."""
    for step in trace:
        if isinstance(step.request, r.ModelRequest | r.BuildImage | r.RunTests):
            assert step.before.attempts < step.before.job.attempts


def the_same_run_is_never_made_twice(trace: Trace) -> None:
    """Equal code, tests and image run once."""
    ran: set[tuple[str, ...]] = set()
    for step in trace:
        if isinstance(step.event, e.Ran) and isinstance(step.request, r.RunTests):
            spec = step.request.spec
            run = (spec.image.spec_key, *(file.text for file in spec.files))
            assert run not in ran
            ran.add(run)


def the_same_image_is_not_built_again_in_vain(trace: Trace) -> None:
    """An image that cannot be built is not asked for again."""
    failed: set[str] = set()
    for step in trace:
        if isinstance(step.request, r.BuildImage):
            assert step.request.spec.key not in failed
            if isinstance(step.event, e.BuildFailed) and step.event.failure.cause in BLAMED:
                failed.add(step.request.spec.key)


def nothing_is_built_from_what_was_rejected(trace: Trace) -> None:
    """What does not exist, or is not wanted, is in no later image."""
    for step in trace:
        if isinstance(step.request, r.BuildImage):
            spec = step.request.spec
            asked = {
                *(("package", name) for name in spec.requirements),
                *(("system_package", name) for name in spec.system_packages),
                *(("command", name) for name in spec.commands),
            }
            assert not asked & {(other.kind, other.name) for other in step.before.rejected}


def bad_answers_and_failed_calls_are_bounded(trace: Trace) -> None:
    """Every kind of trouble has a counter that ends it."""
    for step in trace:
        assert step.after.rejections <= ANSWERS
        assert step.after.call_failures <= step.after.job.call_retries + 1
        assert step.after.broken <= step.after.job.sandbox_retries + 1
        assert step.after.broken_builds <= step.after.attempts
        assert step.after.repair is None or step.after.repair.rounds <= ROUNDS
        if isinstance(step.event, e.PackageRejected):
            assert step.after.done == (len(step.after.rejected) >= REJECTIONS)


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
    """A prompt shows the last unusable answer if it was of the same kind, and else none."""
    for step in trace:
        if isinstance(step.request, r.ModelRequest):
            repairs = len(step.request.call.messages) > 2
            assert repairs == (step.before.rejected_kind == step.request.call.kind)


# --- the ladder -----------------------------------------------------------------------------------


def no_failure_is_lost(trace: Trace) -> None:
    """Diagnosing and relabelling keep the failures: the same tests, in the same order."""
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
    """No failing test of a report is passed over."""
    for step in trace:
        if isinstance(step.event, e.TestsFailed) and step.event.run.report:
            failed = [t.id for t in step.event.run.report.results if t.outcome == "failed"]
            assert set(failed) <= {failure.test_id for failure in step.after.failures}


def a_label_flips_only_after_its_repair_was_in_vain(trace: Trace) -> None:
    """An account of its own: which repairs were made, and when a run or a refusal judged them."""
    made: dict[tuple[str, FailureClass], int] = {}
    judged = -1
    for number, step in enumerate(trace):
        made |= dict.fromkeys(_repaired(step), number)
        if isinstance(step.event, e.Ran | e.RepairFailed | e.PatchRefused) or _given_up(step):
            judged = number
        if not isinstance(step.event, e.Reclassified):
            continue
        for failure, label in zip(step.before.failures, step.event.labels, strict=True):
            unknown = label.before is FailureClass.UNKNOWN
            hopeless = label.before is FailureClass.ENVIRONMENT
            hopeless = hopeless and not image_would_change(step.before)
            if label.before is not label.after and not unknown and not hopeless:
                assert made[failure.identity, label.before] <= judged


def _given_up(step: Step) -> bool:
    """An answer whose repair request failed too."""
    return isinstance(step.event, e.AnswerRejected) and step.after.rejections == ANSWERS


def _repaired(step: Step) -> list[tuple[str, FailureClass]]:
    session, event = step.before, step.event
    labels: frozenset[FailureClass] = frozenset()
    if isinstance(event, e.AnswerRejected) and event.kind == "patch_tests" and _given_up(step):
        labels = frozenset({FailureClass.TEST_ERROR})
    if isinstance(event, e.CodeWritten):
        labels = CODE_LABELS | {FailureClass.ENVIRONMENT}
    if isinstance(event, e.TestsPatched | e.TestsWritten | e.PatchRefused):
        labels = frozenset({FailureClass.TEST_ERROR})
    if isinstance(event, e.ImageBuilt):
        labels = frozenset({FailureClass.ENVIRONMENT})
    return [(f.identity, f.label) for f in session.failures if f.label in labels]


def a_label_leads_to_its_own_repair(trace: Trace) -> None:
    """Where a session goes after relabelling is what a label calls for."""
    for step in trace:
        if not isinstance(step.event, e.Reclassified):
            continue
        labels = set(_labels(step.after))
        match step.after.state:
            case State.DONE:
                assert labels == {FailureClass.STUCK}
            case State.NEEDS_TESTS:
                assert FailureClass.TEST_ERROR in labels
            case State.NEEDS_CODE:
                assert labels & CODE_LABELS
                assert FailureClass.TEST_ERROR not in labels
            case _:
                assert labels - {FailureClass.STUCK} == {FailureClass.ENVIRONMENT}


PROMISES: tuple[Promise, ...] = (
    it_ends_in_bounded_steps,
    it_ends_well_only_by_a_pass,
    a_pass_is_every_test_reported_and_none_failed,
    a_pass_includes_a_run_of_the_script,
    attempts_are_runs_failed_builds_and_unusable_answers_within_their_limit,
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
"""What holds for the auto-coder beside `invariants.GENERAL`."""
