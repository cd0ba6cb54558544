"""The log of a run: each test with its outcome, and what was printed."""

from __future__ import annotations

from collections.abc import Iterator

from codetape.states.values import RunOutcome, TestResult


def log_of(run: RunOutcome) -> str:
    """Return the log of a run as a text; empty if there is nothing to tell."""
    return "\n".join(part for part in _parts(run) if part)


def _parts(run: RunOutcome) -> Iterator[str]:
    for result in run.report.results if run.report else ():
        yield f"{result.id} {result.outcome.upper()}{_problem(result)}"
    for problem in run.report.errors if run.report else ():
        yield f"ERROR {problem.type}: {problem.message}"
    yield run.stdout.rstrip("\n")
    if run.script:
        yield run.script.stdout.rstrip("\n")


def _problem(result: TestResult) -> str:
    problem = result.problem
    return f"\n    {problem.type}: {problem.message}" if problem else ""
