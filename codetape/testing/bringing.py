"""What builds and runs bring, and what an adapter brings for any request."""

from __future__ import annotations

from codetape.states import requests as r
from codetape.states.null_solutions import KINDS
from codetape.states.python_source import defined_tests
from codetape.states.values import (
    BuildFailure,
    Declared,
    ImageRef,
    ImageSpec,
    NullRun,
    Outcome,
    OutputFile,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    TestReport,
    TestResult,
)
from codetape.testing.answering import Bodies, answer, call_failure
from codetape.testing.chance import Chance
from codetape.testing.pools import (
    COLLECTION_PROBLEMS,
    CONFLICT,
    ENDED_RUNS,
    FOLLOWING_SCRIPTS,
    PROBLEMS,
    SCRIPT_RUNS,
)


def outcome(chance: Chance, request: r.Request, bodies: Bodies | None = None) -> Outcome:
    """Choose what an adapter brings for `request`. Raises TypeError for a kind that has none."""
    match request:
        case r.ModelRequest():
            return call_failure(chance) if chance.trouble() else answer(chance, request, bodies)
        case r.CheckSandbox():
            broke = chance.trouble()
            return (
                sandbox_failure(chance)
                if broke
                else ImageRef(ref="base", spec_key=request.spec.key)
            )
        case r.BuildRequest():
            return sandbox_failure(chance) if chance.trouble() else build(chance, request)
        case r.RunRequest():
            return sandbox_failure(chance) if chance.trouble() else run(chance, request.spec)
    raise TypeError(f"no outcomes of {request.name}")


def build(chance: Chance, request: r.BuildRequest) -> ImageRef | BuildFailure:
    """Choose what a build brings.

    What does not exist ("nosuch", "nolib") is never built, nor what cannot be had together.
    """
    spec = request.spec
    if unknown := tuple(n for n in spec.requirements if n.startswith("nosuch")):
        return BuildFailure(cause="unknown_package", message="no such package", packages=unknown)
    if "nolib" in spec.system_packages:
        return BuildFailure(cause="unknown_system_package", message="no", packages=("nolib",))
    if set(spec.requirements) >= CONFLICT:
        return BuildFailure(cause="conflict", message="numpy and requests do not fit together")
    if chance.trouble() and spec.requirements:
        return _gated(chance, spec)
    if not chance.trouble():
        return ImageRef(ref=f"img:{spec.key[:6]}", spec_key=spec.key, seconds=2.0)
    if spec.commands:
        return BuildFailure(cause="command", message="failed", packages=spec.commands[:1])
    cause = chance.one(["conflict", "other", "unknown_package", "download", "disk"])
    return BuildFailure.model_validate({"cause": cause, "message": "the build failed"})


def _gated(chance: Chance, spec: ImageSpec) -> ImageRef | BuildFailure:
    """Choose a package that a policy refuses, or leaves to a person; what was allowed is let in."""
    cause, name = (
        chance.one(["undecided_package", "refused_package"]),
        chance.one(spec.requirements),
    )
    if name in spec.allowed:
        return ImageRef(ref=f"img:{spec.key[:6]}", spec_key=spec.key)
    failure = {"cause": cause, "message": "It is young.", "packages": (name,)}
    return BuildFailure.model_validate(failure)


def run(chance: Chance, spec: RunSpec) -> RunOutcome:
    """Choose what a run of `spec` brings."""
    if chance.trouble():
        return chance.one(ENDED_RUNS)
    if spec.purpose == "script":
        return chance.one(SCRIPT_RUNS)
    if chance.trouble():
        report = TestReport(finished=True, errors=(chance.one(COLLECTION_PROBLEMS),))
        return RunOutcome(exit_status=2, report=report, seconds=0.5)
    report = _report(chance, spec)
    failed = any(result.outcome == "failed" for result in report.results)
    nulls = _nulls(chance, report) if spec.nulls and not failed else ()
    if not spec.script or failed:
        status = int(failed or not spec.nulls)
        return RunOutcome(exit_status=status, report=report, seconds=0.5, nulls=nulls)
    script = chance.rare(FOLLOWING_SCRIPTS[0], FOLLOWING_SCRIPTS)
    outputs = tuple(_output(chance, output) for output in spec.declared if not chance.trouble())
    run = RunOutcome(report=report, seconds=0.5, exit_status=0, script=script, outputs=outputs)
    return run.model_copy(update={"nulls": nulls})


def _nulls(chance: Chance, report: TestReport) -> tuple[NullRun, ...]:
    """Choose which tests fail against null solutions: all, mostly; else all but some, or unknown."""
    ids = tuple(result.id for result in report.results)
    if not chance.trouble():
        return (NullRun(solution="returns_none", failed=ids),)
    failed = chance.one([ids[1:], (), ids[1:], None])
    ended = failed is not None or chance.one([True, False])
    return tuple(NullRun(solution=kind, failed=failed, ended=ended) for kind in KINDS)


def _output(chance: Chance, output: Declared) -> OutputFile:
    """Choose what a script left: what fits, mostly."""
    text = chance.rare("1", ["", "one", "2000-01-01", None])
    folder = (output.type == "Dir") != chance.trouble()
    return OutputFile(name=output.name, path="/host/file", is_folder=folder, size=1, text=text)


def _report(chance: Chance, spec: RunSpec) -> TestReport:
    ids = expected_ids(spec.files[-1].text)
    results = tuple(_result(chance, test) for test in ids)
    if not chance.trouble():
        return TestReport(finished=True, collected=ids, results=results)
    finished = chance.one([True, False])
    running = None if finished else ids[-1]
    return TestReport(finished=finished, collected=ids, results=results[:-1], running=running)


def _result(chance: Chance, test: str) -> TestResult:
    kind = chance.one(["passed", "failed", "failed", "passed", "failed", "failed", "skipped"])
    problem = chance.one([*PROBLEMS[:3], *PROBLEMS]) if kind == "failed" else None
    return TestResult.model_validate({"id": test, "outcome": kind, "problem": problem})


def expected_ids(source: str) -> tuple[str, ...]:
    """The ids that pytest would report for a test file of the pool; `test_p` has two parameters."""
    ids = [test.id for test in defined_tests(source)]
    return tuple(f"{i}[{n}]" if n else i for i in ids for n in ((1, 2) if i == "test_p" else (0,)))


def sandbox_failure(chance: Chance) -> SandboxFailure:
    """Choose how a sandbox broke; now and then it is gone."""
    missing = chance.number(10) == 9
    return SandboxFailure(message="the socket is closed", missing=missing)
