"""What a run proves: a pass needs evidence, and the cause of a failure decides who repairs it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from codetape.states import events as e
from codetape.states.classify import failures_of, needs_of
from codetape.states.failures import COLLECTION, WHOLE_RUN, Failure, masked
from codetape.states.values import (
    Frame,
    ImageRef,
    Problem,
    RunOutcome,
    RunSpec,
    TestReport,
    TestResult,
    TextFile,
)
from codetape.states.verdict import verdict
from codetape.testing.bringing import run
from codetape.testing.chance import Chance
from codetape.testing.pools import TEST_FILES
from codetape.testing.strategies import chances

CODE = "import yaml\nimport models\n\n\ndef add(a, b):\n    return a + b\n"
TESTS = "def test_a():\n    assert 1\n\n\ndef test_p(x):\n    assert x\n"


def spec(code: str = CODE, tests: str = TESTS) -> RunSpec:
    files = (
        TextFile(name="solution.py", text=code),
        TextFile(name="test_solution.py", text=tests),
    )
    return RunSpec(purpose="tests", image=ImageRef(ref="i", spec_key="k"), files=files)


def result(test: str, outcome: Any = "passed", **facts: Any) -> TestResult:
    return TestResult(id=test, outcome=outcome, **facts)


def ran(*results: TestResult, finished: bool = True, **facts: Any) -> RunOutcome:
    report = TestReport(finished=finished, results=results, **facts)
    return RunOutcome(exit_status=0, report=report)


def places(*names: Any) -> tuple[Frame, ...]:
    return tuple(Frame(place=name, file=f"{name}.py", line=3, function="f") for name in names)


def failures(outcome: RunOutcome) -> tuple[Failure, ...]:
    event = verdict(spec(), outcome)
    assert isinstance(event, e.TestsFailed), event
    return event.failures


def collection(problem: Problem) -> Failure:
    report = TestReport(finished=True, errors=(problem,))
    event = verdict(spec(), RunOutcome(exit_status=2, report=report))
    assert isinstance(event, e.TestsNotCollected)
    assert event.failure.test_id == COLLECTION
    return event.failure


BOTH = (result("test_a"), result("test_p[1]"))


# --- a pass ---------------------------------------------------------------------------------------


def test_a_pass_is_every_expected_test_reported_and_the_marker_there() -> None:
    assert isinstance(verdict(spec(), ran(*BOTH, collected=("test_a", "test_p[1]"))), e.TestsPassed)


def test_a_skipped_test_among_passed_ones_is_no_failure() -> None:
    mixed = ran(BOTH[0], result("test_p[1]", "skipped"), result("test_x", "xfailed"))
    assert isinstance(verdict(spec(), mixed), e.TestsPassed)


@pytest.mark.parametrize("status", [0, 1, 5, None])
def test_without_a_report_nothing_is_known_whatever_the_exit_status(status: int | None) -> None:
    event = verdict(spec(), RunOutcome(exit_status=status, stdout="3 passed in 0.01s"))
    assert isinstance(event, e.SandboxBroke)
    assert event.run is not None
    assert not event.failure.missing


def test_a_status_of_failure_takes_no_pass_away() -> None:
    outcome = ran(*BOTH).model_copy(update={"exit_status": 1})
    assert isinstance(verdict(spec(), outcome), e.TestsPassed)


def test_a_missing_test_is_a_failure() -> None:
    (failure,) = failures(ran(result("test_a")))
    assert (failure.test_id, failure.problem.type) == ("test_p", "NotReported")
    assert failure.label == "test_error"


def test_a_collected_parameter_without_a_result_is_a_failure() -> None:
    """`pytest.exit()` in a test ends the session in good order, and the rest is silence."""
    (failure,) = failures(ran(*BOTH, collected=("test_a", "test_p[1]", "test_p[2]")))
    assert (failure.test_id, failure.problem.type) == ("test_p[2]", "NotReported")


@pytest.mark.parametrize("outcome", ["skipped", "xfailed", "xpassed"])
def test_nothing_executed_is_the_fault_of_the_tests(outcome: Any) -> None:
    event = verdict(spec(), ran(result("test_a", outcome), result("test_p[1]", outcome)))
    assert isinstance(event, e.TestsNotCollected)
    assert event.failure.problem.type == "NoTestsRan"
    assert "skipped proves nothing" in event.failure.because
    assert event.failure.label == "test_error"


def test_a_file_whose_tests_nobody_ran_is_the_fault_of_the_tests() -> None:
    event = verdict(spec(), ran())
    assert isinstance(event, e.TestsNotCollected)
    assert event.failure.label == "test_error"


@pytest.mark.parametrize("parameter", ["a b", "x - y", "[z]", "PASSED", "é\n", "a::b", "1]["])
def test_ids_are_compared_whole(parameter: str) -> None:
    ids = ("test_a", f"test_p[{parameter}]")
    passed = ran(*map(result, ids), collected=ids)
    assert isinstance(verdict(spec(), passed), e.TestsPassed)
    (failure,) = failures(ran(result(ids[0]), result(ids[1], "failed"), collected=ids))
    assert failure.test_id == ids[1]
    assert failure.base_id == "test_p"


@given(chances())
def test_no_report_passes_without_a_passed_test_and_all_others(chance: Chance) -> None:
    tests = chance.one(TEST_FILES)
    outcome = run(chance, spec(tests=tests))
    event = verdict(spec(tests=tests), outcome)
    assert isinstance(event, e.TestsPassed | e.TestsFailed | e.TestsNotCollected | e.SandboxBroke)
    if isinstance(event, e.TestsFailed):
        ids = [failure.test_id for failure in event.failures]
        assert ids
        assert len(set(ids)) == len(ids)
    if isinstance(event, e.TestsPassed):
        assert outcome.report is not None
        assert outcome.report.finished
        outcomes = [one.outcome for one in outcome.report.results]
        assert "passed" in outcomes
        assert "failed" not in outcomes


# --- limits and ends ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"out_of_memory": True, "signal": 9}, "OutOfMemory"),
        ({"timed_out": True}, "TimeLimit"),
        ({"disk_full": True}, "DiskFull"),
        ({"too_much_output": True}, "OutputLimit"),
        ({"timed_out": True, "forks_refused": 3}, "ProcessLimit"),
    ],
)
def test_a_limit_is_a_resource_failure_of_the_test_that_ran(
    facts: dict[str, Any], kind: str
) -> None:
    report = TestReport(finished=False, results=(result("test_a", "failed"),), running="test_p[1]")
    first, limit = failures(RunOutcome(report=report, **facts))
    assert (first.test_id, first.label) == ("test_a", "unknown")
    assert (limit.test_id, limit.problem.type, limit.label) == ("test_p[1]", kind, "resource")
    (alone,) = failures(RunOutcome(**facts))
    assert (alone.test_id, alone.label) == (COLLECTION, "resource")
    (between,) = failures(RunOutcome(report=TestReport(finished=False), **facts))
    assert (between.test_id, between.label) == (WHOLE_RUN, "resource")


def test_a_test_that_failed_and_then_met_a_limit_is_one_failure() -> None:
    report = TestReport(finished=False, results=(result("test_a", "failed"),), running="test_a")
    (failure,) = failures(RunOutcome(report=report, timed_out=True))
    assert failure.label == "resource"


def test_killed_without_evidence_of_memory_is_the_sandbox() -> None:
    event = verdict(spec(), RunOutcome(signal=9, out_of_memory=None, stderr="Killed"))
    assert isinstance(event, e.SandboxBroke)
    assert "signal 9" in event.failure.message
    assert "Killed" in event.failure.message


def test_a_process_that_ended_in_a_test_is_the_fault_of_the_code() -> None:
    report = TestReport(finished=False, results=(result("test_a"),), running="test_p[1]")
    (failure,) = failures(RunOutcome(exit_status=0, report=report))
    assert (failure.test_id, failure.label) == ("test_p[1]", "logic")
    assert "exit status 0" in failure.problem.message


# --- who is at fault ------------------------------------------------------------------------------


def test_a_failed_test_keeps_what_the_report_says_of_it() -> None:
    problem = Problem(type="AssertionError", message="assert 1 == 2", frames=places("tests"))
    failed = result("test_a", "failed", problem=problem, phase="setup", captured="hello")
    (failure,) = failures(ran(failed, BOTH[1]))
    assert (failure.problem, failure.phase, failure.captured) == (problem, "setup", "hello")
    assert failure.label == "unknown"
    (silent,) = failures(ran(result("test_a", "failed"), BOTH[1]))
    assert silent.problem.type == "Unknown"


LACKS = "[Errno 2] No such file or directory: '/var/inputs/data.csv'"
ASYNC = "async def functions are not natively supported"
MISSING = Problem(type="ModuleNotFoundError", message="No module named 'yaml'", module="yaml")


@pytest.mark.parametrize(
    ("problem", "label"),
    [
        (MISSING, "environment"),
        (MISSING.model_copy(update={"module": "yaml.nodes"}), "environment"),
        (MISSING.model_copy(update={"module": "nobody_imports_it"}), "unknown"),
        (MISSING.model_copy(update={"module": "models"}), "unknown"),
        (MISSING.model_copy(update={"module": None}), "unknown"),
        (
            Problem(type="ImportError", message="x", frames=places("tests", "installed")),
            "environment",
        ),
        (
            Problem(type="ImportError", message="x", frames=places("installed", "other")),
            "environment",
        ),
        (
            Problem(type="ImportError", message="x", frames=places("installed", "solution")),
            "unknown",
        ),
        (Problem(type="ImportError", message="x", module="solution"), "test_error"),
        (Problem(type="MemoryError", message=""), "resource"),
        (Problem(type="numpy._core._exceptions._ArrayMemoryError", message=""), "resource"),
        (Problem(type="OSError", message="[Errno 28] No space left on device"), "resource"),
        (Problem(type="OSError", message="[Errno 5] Input/output error"), "unknown"),
        (Problem(type="RuntimeError", message="can't start new thread"), "resource"),
        (Problem(type="FixtureLookupError", message="db"), "test_error"),
        (Problem(type="Failed", message="async def functions are not natively …"), "unknown"),
        (Problem(type="Failed", message=f"{ASYNC}.\nInstall a plugin"), "test_error"),
        (Problem(type="FileNotFoundError", message=LACKS, frames=places("tests")), "test_error"),
        (
            Problem(type="FileNotFoundError", message=LACKS, frames=places("tests", "installed")),
            "test_error",
        ),
        (
            Problem(type="FileNotFoundError", message=LACKS, frames=places("tests", "solution")),
            "unknown",
        ),
        (Problem(type="EOFError", message="", frames=places("tests", "solution")), "logic"),
        (Problem(type="EOFError", message="", frames=places("tests")), "unknown"),
        (Problem(type="KeyError", message="'x'", frames=places("solution")), "unknown"),
        (Problem(type="SystemExit", message="0", frames=places("solution")), "unknown"),
    ],
)
def test_evidence_labels_what_it_proves_and_no_more(problem: Problem, label: str) -> None:
    (failure,) = failures(ran(result("test_a", "failed", problem=problem), BOTH[1]))
    assert failure.label == label
    assert bool(failure.because) == (label != "unknown")


@pytest.mark.parametrize(
    ("problem", "label"),
    [
        (MISSING, "environment"),
        (Problem(type="ImportError", message="no sub", module="solution"), "test_error"),
        (Problem(type="SystemExit", message="0", frames=places("tests", "solution")), "logic"),
        (Problem(type="ValueError", message="x", frames=places("tests", "solution")), "logic"),
        (MISSING.model_copy(update={"module": "models", "frames": places("solution")}), "logic"),
        (Problem(type="ValueError", message="x", frames=places("tests")), "test_error"),
        (Problem(type="SyntaxError", message="invalid syntax"), "test_error"),
        (
            Problem(type="ImportError", message="x", frames=places("solution", "installed")),
            "environment",
        ),
    ],
)
def test_the_cause_decides_who_kept_the_tests_from_being_collected(
    problem: Problem, label: str
) -> None:
    failure = collection(problem)
    assert failure.label == label
    assert failure.because


def test_a_bare_exit_on_import_says_so() -> None:
    exits = Problem(type="SystemExit", message="0", frames=places("solution"))
    assert collection(exits).because == "the solution exits on import"


def test_one_missing_module_and_one_wrong_expectation_are_both_kept() -> None:
    wrong = Problem(type="AssertionError", message="assert 1 == 2")
    both = failures(
        ran(
            result("test_a", "failed", problem=MISSING),
            result("test_p[1]", "failed", problem=wrong),
        )
    )
    assert [failure.label for failure in both] == ["environment", "unknown"]
    assert needs_of(both, ("yaml.safe_load",)).packages == ("pyyaml",)


# --- when two failures are the same ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<Sum at 0x7f3a2b1c> != 3", "<Sum at 0x55deadbeef> != 3"),
        ("took 0.31 s", "took 12 s"),
        ("no /tmp/pytest-0/test_a0/x.csv", "no /tmp/pytest-17/test_a0/y.csv"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id FFFFFFFF-0000-1111-2222-3333ABCDEFAB"),
        ("assert 4 == 3", "assert -1.5e3 == 3"),
        ("a\n  b", "a b"),
    ],
)
def test_what_differs_from_run_to_run_is_masked(one: str, other: str) -> None:
    assert masked(one) == masked(other)


@pytest.mark.parametrize(
    ("one", "other"), [("KeyError: 'a'", "KeyError: 'b'"), ("x == 1", "x != 1"), ("a/b", "a-b")]
)
def test_what_differs_in_fact_is_not_masked(one: str, other: str) -> None:
    assert masked(one) != masked(other)


def raised(message: str, *frames: tuple[str, int], test: str = "test_a") -> Failure:
    """A failure of a test that begins in line 10, as a report tells it."""
    places = tuple(
        Frame(place=place, file="f.py", line=line, function=f"{place}_function")  # type: ignore[arg-type]
        for place, line in frames
    )
    problem = Problem(type="AssertionError", message=message, frames=places)
    result = TestResult(id=test, outcome="failed", problem=problem)
    report = TestReport(finished=True, collected=(test,), lines=(10,), results=(result,))
    return failures_of(report, ())[0]


def test_a3_wording_is_no_part_of_what_a_failure_is() -> None:
    """A model that rewrites an expected word makes no new failure of it."""
    one = raised("assert 'red' == 'green'", ("tests", 12))
    assert one.identity == raised("assert 'red' == 'blue'", ("tests", 12)).identity
    assert one.identity != raised("assert 'red' == 'blue'", ("tests", 13)).identity
    inner = raised("no such word: x", ("tests", 12), ("solution", 3))
    assert inner.identity == raised("no such word: y", ("tests", 12), ("solution", 9)).identity
    assert inner.identity != one.identity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("test_a[<object at 0x7f01>]", "test_a[<object at 0x7f99>]"),
        ("test_a[2026-12-01T10:00:01.5]", "test_a[2026-12-02T11:30:59.25]"),
        ("test_a[2026-12-01 10:00:01-x]", "test_a[2026-12-01 10:00:02-x]"),
        ("test_a[1764583200.123]", "test_a[1764583999.9]"),
        (
            "test_a[9b2f1c3e-0d4a-4f6b-8e7a-1c2d3e4f5a6b]",
            "test_a[00000000-0d4a-4f6b-8e7a-1c2d3e4f5a6c]",
        ),
        ("test_a[/tmp/pytest-1/x]", "test_a[/tmp/pytest-22/x]"),
        ("test_a[0.8444218515250481]", "test_a[0.7579544029403025]"),
    ],
)
def test_a2_ids_that_differ_in_each_run_name_the_same_failure(one: str, other: str) -> None:
    assert raised("x", ("tests", 12), test=one).identity == (
        raised("x", ("tests", 12), test=other).identity
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [("test_a[1-2]", "test_a[1-3]"), ("test_a[0.5]", "test_a[0.25]"), ("test_a1", "test_a2")],
)
def test_a2_cases_are_told_apart(one: str, other: str) -> None:
    assert raised("x", ("tests", 12), test=one).identity != (
        raised("x", ("tests", 12), test=other).identity
    )


def test_without_a_place_a_failure_is_its_test_type_and_masked_message() -> None:
    def failure(test: str, kind: str, message: str) -> Failure:
        return Failure(test_id=test, problem=Problem(type=kind, message=message))

    base = failure("test_a", "E", "at 0x1")
    assert base.identity == failure("test_a", "E", "at 0x2").identity
    others = [failure("test_b", "E", "at 0x1"), failure("test_a", "F", "at 0x1")]
    assert (
        len({base.identity, failure("test_a", "E", "x").identity, *(o.identity for o in others)})
        == 4
    )


def test_a_skip_of_the_solution_is_a_fault_of_the_code() -> None:
    skipped = Problem(type="SolutionSkipped", message="no", frames=places("tests", "solution"))
    found = failures(ran(BOTH[0], result("test_p[1]", "failed", problem=skipped)))
    assert [(failure.test_id, failure.label) for failure in found] == [("test_p[1]", "logic")]
    assert collection(skipped).label == "logic"
