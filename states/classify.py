"""What evidence says of a failure before anybody asks a model.

Only facts of the structured report count; nothing is read from terminal text. A module is missing
only if the solution or the tests import it: a name in an exception's text may be anybody's.
"""

from __future__ import annotations

from codetape.states import packages
from codetape.states.events import Needs
from codetape.states.expected_tests import NOT_COLLECTED
from codetape.states.failures import COLLECTION, Failure, place_of
from codetape.states.values import FailureClass, Problem, RunOutcome, TestReport, TestResult

LOGIC, TEST_ERROR = FailureClass.LOGIC, FailureClass.TEST_ERROR
ENVIRONMENT, RESOURCE = FailureClass.ENVIRONMENT, FailureClass.RESOURCE
UNKNOWN = FailureClass.UNKNOWN

Verdict = tuple[FailureClass, str]
NOT_TRUSTED = "ResultsNotTrusted"
"""The type of the problem of a report that proves of itself that its results are worth nothing."""

SKIPPED = "SolutionSkipped"
"""The type of the problem of a test that the solution, and not the tests, skips or expects to fail."""

NOTHING = Problem(type="NoTestsRan", message="no test was executed")
ASYNC_FIXTURE = " requested an async fixture "
"""How pytest says that no plugin takes an async fixture."""

ASYNC = "async def functions are not natively supported"
"""How pytest begins what it says of an async test that no plugin takes."""


def label_of(problem: Problem, imports: tuple[str, ...], collecting: bool) -> Verdict:
    """Return the label that evidence gives to an exception, with the reason; UNKNOWN if none does."""
    if verdict := _import_verdict(problem, imports):
        return verdict
    if problem.type == SKIPPED:
        return LOGIC, "the solution skips the test that calls it; it has to do the work, or raise"
    if problem.type.endswith("MemoryError"):  # libraries have subclasses of their own
        return RESOURCE, "memory ran out"
    if problem.type == "OSError" and problem.message.startswith("[Errno 28]"):
        return RESOURCE, "the disk of the sandbox is full"
    if problem.type == "RuntimeError" and problem.message == "can't start new thread":
        return RESOURCE, "the limit of processes and threads was reached"
    if because := _test_verdict(problem):
        return TEST_ERROR, because
    if problem.type == "EOFError" and _place(problem) == "solution":
        return LOGIC, "the solution waits for input on stdin, which is empty"
    if collecting:
        return _collection_verdict(problem)
    return UNKNOWN, ""


def _test_verdict(problem: Problem) -> str:
    """What is wrong with a test by itself, whatever the code does; empty if nothing is known to be."""
    if problem.type == "FixtureLookupError":
        return (
            "the test asks for a fixture that does not exist, and no plugin brings one: "
            "leave the parameter out and make in the test what it needs"
        )
    if problem.type == "Failed" and problem.message.startswith(ASYNC):
        return "no plugin runs async tests here: make it a plain function that calls asyncio.run"
    if problem.type == "Failed" and ASYNC_FIXTURE in problem.message:
        return (
            "no plugin runs async fixtures here: make a plain fixture, or a function that the test "
            "awaits in asyncio.run"
        )
    if problem.type == "FileNotFoundError" and "/var/inputs/" in problem.message:
        places = {frame.place for frame in problem.frames}
        if "tests" in places and "solution" not in places:
            return "the test itself reads a file that is not there; it has to make what it reads"
    if problem.type == NOT_COLLECTED:
        return problem.message
    if problem.type == NOTHING.type:
        return "no test of the file was executed, and one that is skipped proves nothing"
    return ""


def _import_verdict(problem: Problem, imports: tuple[str, ...]) -> Verdict | None:
    if problem.type not in {"ModuleNotFoundError", "ImportError"}:
        return None
    if module := missing_module(problem, imports):
        return ENVIRONMENT, f"the image lacks the module {module}"
    if _place(problem) == "installed":
        return ENVIRONMENT, "an installed package cannot import what it needs"
    if problem.module and problem.module.partition(".")[0] == "solution":
        return TEST_ERROR, "the tests import a name that the solution does not define"
    return None


def missing_module(problem: Problem, imports: tuple[str, ...]) -> str | None:
    """Return the imported module that is not installed, or None."""
    if problem.type != "ModuleNotFoundError" or not problem.module:
        return None
    missing = packages.distribution_of(problem.module)
    imported = any(packages.asks_for(name, problem.module) for name in imports)
    return problem.module if imported and missing else None


def _collection_verdict(problem: Problem) -> Verdict:
    if problem.type == NOT_TRUSTED:
        return LOGIC, "the solution changes how pytest makes results"
    if _place(problem) == "solution":
        if problem.type == "SystemExit":
            return LOGIC, "the solution exits on import"
        return LOGIC, "the solution cannot be imported"
    return TEST_ERROR, "the test file cannot be collected"


def _place(problem: Problem) -> str:
    """Whose code raised: the place of the last frame, frames of the library left out."""
    own = [frame.place for frame in problem.frames if frame.place != "other"]
    return own[-1] if own else "other"


def failures_of(report: TestReport, imports: tuple[str, ...]) -> tuple[Failure, ...]:
    """Return a labelled failure for each failed test, in the order of the report."""
    lines = dict(zip(report.collected, report.lines, strict=False))
    return tuple(
        _failure(r, imports, lines.get(r.id, 0)) for r in report.results if r.outcome == "failed"
    )


def _failure(result: TestResult, imports: tuple[str, ...], first_line: int) -> Failure:
    problem = result.problem or Problem(type="Unknown", message="the report gives no reason")
    label, because = label_of(problem, imports, collecting=False)
    if label is UNKNOWN and result.phase == "setup" and _place(problem) in ("other", "installed"):
        label, because = TEST_ERROR, "pytest could not set the test up: no code of ours was reached"
    return Failure(
        test_id=result.id,
        phase=result.phase,
        problem=problem,
        captured=result.captured,
        label=label,
        because=because,
        place=place_of(problem, first_line),
    )


def collection_failure(problem: Problem, imports: tuple[str, ...]) -> Failure:
    """Return what kept pytest from finding the tests."""
    label, because = label_of(problem, imports, collecting=True)
    return Failure(
        test_id=COLLECTION, phase="collect", problem=problem, label=label, because=because
    )


def limit_problem(run: RunOutcome) -> Problem | None:
    """Return the limit that ended a run, by evidence of the sandbox, or None."""
    if run.out_of_memory:
        return Problem(type="OutOfMemory", message="the memory limit ended the run")
    if run.timed_out and run.forks_refused:
        message = (
            "the run did not end within its time limit, and its limit of processes was reached"
        )
        return Problem(type="ProcessLimit", message=message)
    if run.timed_out:
        return Problem(type="TimeLimit", message="the run did not end within its time limit")
    if run.disk_full:
        return Problem(type="DiskFull", message="the limit on output files was reached")
    if run.too_much_output:
        return Problem(
            type="OutputLimit", message="the run was ended because it printed without end"
        )
    return None


def needs_of(failures: tuple[Failure, ...], imports: tuple[str, ...]) -> Needs:
    """Return the distributions whose absence the failures prove."""
    missing = [missing_module(f.problem, imports) for f in failures if f.label is ENVIRONMENT]
    return Needs(packages=packages.distributions_of(m for m in missing if m))
