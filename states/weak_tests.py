"""Tests that check no result: they pass with a null solution, too.

Evidence and not words: after the tests have passed, they are run against null solutions. A test that
passes where every function returns None, and where each returns an object without a meaning, checks no
result. If it fails where every function raises, it is a smoke test: it shows that the code runs. Else
it is vacuous. The cases of one test are judged together. Once every test has failed, no other null
solution is run.
"""

from __future__ import annotations

from codetape.states import events as e
from codetape.states.failures import Failure, base_id
from codetape.states.no_assertions import asserts_nothing
from codetape.states.values import (
    FailureClass,
    Problem,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    WeakTest,
)

WEAK = "ChecksNoResult"
"""The type of the problem of a test that checks no result, where others do."""

EMPTY = "NothingChecked"
"""The type of the problem of a test that checks no result, where no other does either."""

_BECAUSE = {
    "vacuous": "it passes also where each function of the solution returns None, returns an object "
    "without a meaning, or raises NotImplementedError",
    "smoke": "it passes also where each function of the solution returns None, or an object without a "
    "meaning: it shows only that nothing is raised",
}
_ASKED = "an assertion on a result of the solution is missing, or none is reached"


def judged(spec: RunSpec, passed: e.TestsPassed, *, named: bool) -> e.Event:
    """Return the pass with its weak tests, or TestsFailed, which names them.

    They are named once (`named`: they have been); a pass needs a test that checks a result.
    """
    if not spec.nulls or not passed.run.nulls:
        return passed
    tests = next((file.text for file in spec.files if file.name == "test_solution.py"), "")
    weak = weak_tests(passed.run, tests)
    if weak is None:
        return passed.model_copy(update={"nulls_unknown": _unknown(passed.run)})
    empty = len(weak) == len(_passed(passed.run))
    if not weak or (named and not empty):
        return passed.model_copy(update={"weak_tests": weak})
    failures = tuple(_failure(test, EMPTY if empty else WEAK) for test in weak)
    return e.TestsFailed(run=passed.run, expected=passed.expected, failures=failures)


def cut_short(run: RunOutcome) -> e.SandboxBroke | None:
    """Return that the run ended in the middle of a null solution, which says nothing of the code."""
    if all(null.ended for null in run.nulls):
        return None
    message = "the run ended while the tests ran against a null solution"
    return e.SandboxBroke(failure=SandboxFailure(message=message), run=run)


def weak_tests(run: RunOutcome, tests: str) -> tuple[WeakTest, ...] | None:
    """Return the tests that check no result; None if that cannot be known.

    Where no test of the file asserts anything, a failure is a crash: None has no len(), say.
    """
    failed = {
        null.solution: None if null.failed is None else {base_id(test) for test in null.failed}
        for null in run.nulls
    }
    found = [failed.get(kind) for kind in ("returns_none", "returns_object")]
    against = set().union(*filter(None, found))
    if None in found and not against >= {*_passed(run)}:
        return None
    checking = set() if asserts_nothing(tests) else against
    running = against | (failed.get("raises") or set())
    return tuple(
        WeakTest(test_id=test, kind="smoke" if test in running else "vacuous")
        for test in _passed(run)
        if test not in checking
    )


def only_weak(failures: tuple[Failure, ...]) -> bool:
    """True if all that is left to repair are tests that check no result, where others do."""
    return bool(failures) and all(failure.problem.type == WEAK for failure in failures)


def _passed(run: RunOutcome) -> tuple[str, ...]:
    results = run.report.results if run.report else ()
    passed = (base_id(result.id) for result in results if result.outcome == "passed")
    return tuple(dict.fromkeys(passed))


def _failure(test: WeakTest, type: str) -> Failure:
    return Failure(
        test_id=test.test_id,
        problem=Problem(type=type, message=f"the test checks no result: {_ASKED}"),
        label=FailureClass.TEST_ERROR,
        because=_BECAUSE[test.kind],
    )


def _unknown(run: RunOutcome) -> str:
    unknown = [null.solution for null in run.nulls if null.failed is None]
    return f"the tests could not be run against null solutions ({', '.join(unknown)})"
