"""What a run of the tests proves.

A pass needs evidence: every test that pytest found or that the file defines for certain was reported,
one passed at least, none failed, and the end marker is there. An exit status proves nothing. Where the
script itself follows its tests, it has to have run as well; where null solutions do, a test has to fail
against one of them.
"""

from __future__ import annotations

from codetape.states import events as e
from codetape.states.classify import (
    NOTHING,
    collection_failure,
    failures_of,
    limit_problem,
)
from codetape.states.expected_tests import certain_tests, replaced_tests, uncollected_class
from codetape.states.failures import COLLECTION, WHOLE_RUN, Failure, base_id
from codetape.states.python_source import imports_of
from codetape.states.script import as_evidence, script_verdict
from codetape.states.values import (
    FailureClass,
    Problem,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    TestReport,
)
from codetape.states.weak_tests import cut_short, judged


def verdict(
    spec: RunSpec, run: RunOutcome, script_not_run: str = "", *, weak_named: bool = False
) -> e.Event:
    """Return TestsPassed, TestsFailed, TestsNotCollected, ScriptFailed or SandboxBroke.

    `script_not_run` is what a pass tells of the script where it could not be run; `weak_named` says
    that tests which check no result have been named once.
    """
    run = as_evidence(spec, run) if spec.script else run
    event = cut_short(run) or _of_tests(spec, run)
    if isinstance(event, e.TestsPassed) and spec.script:
        event = script_verdict(spec, event)
    elif isinstance(event, e.TestsPassed):
        event = event.model_copy(update={"script_not_run": script_not_run})
    return judged(spec, event, named=weak_named) if isinstance(event, e.TestsPassed) else event


def _of_tests(spec: RunSpec, run: RunOutcome) -> e.Event:
    imports = imports_of(*(file.text for file in spec.files))
    # What ran out while the script was running is the script's.
    if (limit := limit_problem(run)) and run.script is None:
        return e.TestsFailed(run=run, failures=_limit_failures(run, limit, imports))
    if run.report is None:
        failure = SandboxFailure(message=_no_report(run))
        return e.SandboxBroke(failure=failure, run=run)
    if run.report.errors:
        return _not_collected(run, run.report.errors[0], imports)
    return _by_report(spec, run, run.report, imports)


def _no_report(run: RunOutcome) -> str:
    how = f"signal {run.signal}" if run.signal else f"exit status {run.exit_status}"
    return f"the run ended without a report ({how}): {run.stderr.strip()[-500:]}"


def _by_report(
    spec: RunSpec, run: RunOutcome, report: TestReport, imports: tuple[str, ...]
) -> e.Event:
    failures = failures_of(report, imports)
    if not report.finished:
        return e.TestsFailed(run=run, failures=(*failures, _cut_short(run, report)))
    left_out = uncollected_class(_tests(spec), report)
    if not report.results:
        return _not_collected(run, left_out or NOTHING, imports)
    failures += (*_unreported(spec, report), *_replaced(spec, report))
    if failures:
        return e.TestsFailed(run=run, failures=failures, expected=_expected(spec, report))
    if left_out or not any(result.outcome == "passed" for result in report.results):
        return _not_collected(run, left_out or NOTHING, imports)
    return e.TestsPassed(run=run, expected=_expected(spec, report))


def _expected(spec: RunSpec, report: TestReport) -> tuple[str, ...]:
    """Return what the text expects, for the tape; a report without lines is of an older runner."""
    return tuple(test.id for test in certain_tests(_tests(spec))) if report.lines else ()


def _tests(spec: RunSpec) -> str:
    return next((file.text for file in spec.files if file.name == "test_solution.py"), "")


def _not_collected(run: RunOutcome, problem: Problem, imports: tuple[str, ...]) -> e.Event:
    return e.TestsNotCollected(run=run, failure=collection_failure(problem, imports))


def _cut_short(run: RunOutcome, report: TestReport) -> Failure:
    """The process ended before pytest did: os._exit, a signal, a crash of an extension."""
    how = f"signal {run.signal}" if run.signal else f"exit status {run.exit_status}"
    return Failure(
        test_id=report.running or WHOLE_RUN,
        problem=Problem(type="ProcessEnded", message=f"the process ended with {how}"),
        label=FailureClass.LOGIC,
        because="the code ended the process in the middle of the tests",
    )


def _unreported(spec: RunSpec, report: TestReport) -> tuple[Failure, ...]:
    """A test that the file defines for certain or pytest found, and without a result, did not pass."""
    ids = {result.id for result in report.results}
    reported = ids | {base_id(test) for test in ids}
    expected = [test.id for test in certain_tests(_tests(spec))]
    return tuple(
        Failure(
            test_id=test,
            problem=Problem(type="NotReported", message="the run has no result for this test"),
            label=FailureClass.TEST_ERROR,
            because="pytest did not run it",
        )
        for test in dict.fromkeys((*expected, *report.collected))
        if test not in reported
    )


def _replaced(spec: RunSpec, report: TestReport) -> tuple[Failure, ...]:
    """A test in whose place pytest ran another function did not pass."""
    return tuple(
        Failure(
            test_id=test,
            problem=Problem(
                type="TestReplaced", message="pytest ran another function for this test"
            ),
            label=FailureClass.LOGIC,
            because="the solution puts another function in the place of the test",
        )
        for test in replaced_tests(_tests(spec), report)
    )


def _limit_failures(
    run: RunOutcome, limit: Problem, imports: tuple[str, ...]
) -> tuple[Failure, ...]:
    """A limit ended the run: in the test that was running, if that is known."""
    report = run.report
    failed = failures_of(report, imports) if report else ()
    where = (report.running if report else None) or (WHOLE_RUN if report else COLLECTION)
    resource = Failure(
        test_id=where, problem=limit, label=FailureClass.RESOURCE, because=limit.message
    )
    return (*(f for f in failed if f.test_id != where), resource)
