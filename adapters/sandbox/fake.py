"""A sandbox that runs nothing: for tests of what stands above a sandbox. Part of the testing kit.

    sandbox = FakeSandbox(runs=[failed({"test_total": ("AssertionError", "assert 1 == 2")}), passed()])

Each build and each run takes the next item of its list: a value is returned, a SandboxFailure or an
exception is raised, and what can be called is called with the spec and gives the item. When a list is
used up, a build succeeds and every test that the test file defines passes, and fails against null
solutions; `weak` has tests pass there too. Where a script follows tests that pass, it ends well, with
an output for each that is declared; `script_failed` has it fail.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from codetape.engine.ports import SandboxBroken
from codetape.states.null_solutions import KINDS
from codetape.states.python_source import defined_tests
from codetape.states.values import (
    BuildFailure,
    Declared,
    Frame,
    ImageRef,
    ImageSpec,
    NullRun,
    OutputFile,
    Problem,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    ScriptRun,
    TestReport,
    TestResult,
)

Built = ImageRef | BuildFailure | SandboxFailure | Exception
Ran = RunOutcome | SandboxFailure | Exception
Build = Built | Callable[[ImageSpec], Built]
Run = Ran | Callable[[RunSpec], Ran]
Told = tuple[str, str] | Problem  # type and message of an exception, or all of it

PYTHON = "3.11"


class FakeSandbox:
    """Answers at once, in memory; implements `Sandbox`.

    `specs` and `runs` are what was asked of it, in order; `left_over` counts the items not used.
    """

    def __init__(self, builds: Iterable[Build] = (), runs: Iterable[Run] = ()) -> None:
        self._builds = list(builds)
        self._runs = list(runs)
        self.specs: list[ImageSpec] = []
        self.runs: list[RunSpec] = []
        self.closed = False

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Return the next build; without one, an image whose name follows from the spec."""
        self._open()
        self.specs.append(spec)
        item: Build = self._builds.pop(0) if self._builds else built
        outcome = item(spec) if callable(item) else item
        if isinstance(outcome, (SandboxFailure, Exception)):
            raise _raised(outcome)
        return outcome

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Return the next run; without one, all tests pass."""
        self._open()
        self.runs.append(spec)
        item: Run = self._runs.pop(0) if self._runs else passed()
        outcome = item(spec) if callable(item) else item
        if isinstance(outcome, (SandboxFailure, Exception)):
            raise _raised(outcome)
        return outcome

    async def close(self) -> None:
        """Refuse all that comes later."""
        self.closed = True

    def left_over(self) -> tuple[int, int]:
        """Return how many builds and runs of the script were not used."""
        return len(self._builds), len(self._runs)

    def _open(self) -> None:
        if self.closed:
            raise SandboxBroken(SandboxFailure(message="the sandbox is closed"))


def _raised(failure: SandboxFailure | Exception) -> Exception:
    return SandboxBroken(failure) if isinstance(failure, SandboxFailure) else failure


def built(spec: ImageSpec) -> ImageRef:
    """An image: equal specs, equal names."""
    return ImageRef(ref=f"fake:{spec.key[:12]}", spec_key=spec.key, python=PYTHON)


def passed(*ids: str) -> Callable[[RunSpec], RunOutcome]:
    """These tests pass, and no other is found; without ids: all that the test file defines."""
    return lambda spec: _reported(spec, {}, ids)


def failed(problems: Mapping[str, Told], *, captured: str = "") -> Callable[[RunSpec], RunOutcome]:
    """These tests fail with type and message; the others of the test file pass."""
    return lambda spec: _reported(spec, problems, (), captured)


def script_failed(
    exit_status: int = 1, *, stderr: str = "", outputs: Mapping[str, str] = {}
) -> Callable[[RunSpec], RunOutcome]:
    """All tests pass; the script after them ends so, and leaves these texts as its outputs."""
    script = ScriptRun(exit_status=exit_status, stderr=stderr, seconds=0.0)
    files = tuple(_file(name, text) for name, text in outputs.items())
    update = {"script": script, "outputs": files}
    return lambda spec: _reported(spec, {}, ()).model_copy(update=update)


def not_collected(
    type: str,
    message: str,
    *,
    module: str | None = None,
    frames: tuple[Frame, ...] = (),
) -> RunOutcome:
    """Pytest finds no tests: an exception while it imports them."""
    problem = Problem(type=type, message=message, module=module, frames=frames)
    report = TestReport(finished=True, errors=(problem,), python=PYTHON)
    return RunOutcome(exit_status=2, seconds=0.0, out_of_memory=False, report=report)


def broke(message: str, *, missing: bool = False) -> SandboxFailure:
    """The sandbox itself breaks."""
    return SandboxFailure(message=message, missing=missing)


def timed_out(running: str | None = None, stdout: str = "") -> RunOutcome:
    """The time limit ends the run, in the test `running` if it is given."""
    report = _unfinished(running)
    return RunOutcome(
        timed_out=True, seconds=0.0, out_of_memory=False, stdout=stdout, report=report
    )


def out_of_memory(running: str | None = None, stdout: str = "") -> RunOutcome:
    """The memory limit ends the run, in the test `running` if it is given."""
    report = _unfinished(running)
    return RunOutcome(out_of_memory=True, signal=9, seconds=0.0, stdout=stdout, report=report)


def ended(
    exit_status: int = 0,
    *,
    stdout: str = "",
    stderr: str = "",
    outputs: Mapping[str, str] = {},
) -> RunOutcome:
    """A script ends; `outputs` are texts by name, written to a fresh temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="codetape-fake-")) if outputs else Path()
    files = []
    for name, text in outputs.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        files.append(OutputFile(name=name, path=str(path), size=path.stat().st_size, text=text))
    facts = RunOutcome(exit_status=exit_status, seconds=0.0, out_of_memory=False)
    told = {"stdout": stdout, "stderr": stderr, "outputs": tuple(files)}
    return facts.model_copy(update=told)


def _unfinished(running: str | None) -> TestReport:
    found = (running,) if running else ()
    return TestReport(finished=False, collected=found, running=running, python=PYTHON)


def _reported(
    spec: RunSpec, problems: Mapping[str, Told], ids: tuple[str, ...], captured: str = ""
) -> RunOutcome:
    if spec.purpose == "script":
        return ended()
    tests = [file.text for file in spec.files if file.name == "test_solution.py"]
    found = ids or tuple(test.id for text in tests for test in defined_tests(text))
    bases = {test.partition("[")[0] for test in problems}
    every = (*(test for test in found if test not in bases), *problems)
    results = tuple(_result(test, problems.get(test), captured) for test in every)
    report = TestReport(finished=True, collected=every, results=results, python=PYTHON)
    status = 1 if problems else 0
    run = RunOutcome(exit_status=status, seconds=0.0, out_of_memory=False, report=report)
    if status == 0 and spec.nulls:
        run = against_nulls(run)
    return with_script(spec, run) if spec.script and status == 0 else run


def against_nulls(run: RunOutcome, passing: Mapping[str, Sequence[str]] = {}) -> RunOutcome:
    """Return a run of tests that all fail against null solutions, but those of `passing`, by kind."""
    tests = run.report.results if run.report else ()
    nulls: list[NullRun] = []
    for kind in KINDS:
        failed = tuple(test.id for test in tests if test.id not in passing.get(kind, ()))
        nulls.append(NullRun(solution=kind, failed=failed))
        if len(failed) == len(tests):  # the others would tell nothing new
            break
    return run.model_copy(update={"nulls": tuple(nulls)})


def weak(*ids: str, smoke: bool = False) -> Callable[[RunSpec], RunOutcome]:
    """All tests pass, and these do also with null solutions; with `smoke` not with one that raises."""
    kinds = [kind for kind in KINDS if not (smoke and kind == "raises")]

    def run(spec: RunSpec) -> RunOutcome:
        told = _reported(spec, {}, ())
        return against_nulls(told, dict.fromkeys(kinds, ids)) if spec.nulls else told

    return run


def with_script(spec: RunSpec, run: RunOutcome) -> RunOutcome:
    """Return a run of tests whose script ended well, and left what was declared."""
    script = ScriptRun(exit_status=0, seconds=0.0)
    files = tuple(_fitting(output) for output in spec.declared)
    return run.model_copy(update={"script": script, "outputs": files})


def _fitting(output: Declared) -> OutputFile:
    if output.type == "Dir":
        return OutputFile(name=output.name, path="", is_folder=True)
    texts = {"bool": "true", "datetime": "2000-01-01"}
    return _file(output.name, texts.get(output.type, "1"))


def _file(name: str, text: str) -> OutputFile:
    return OutputFile(name=name, path="", size=len(text.encode()), text=text)


def _result(test: str, told: Told | None, captured: str) -> TestResult:
    if told is None:
        return TestResult(id=test, outcome="passed")
    problem = told if isinstance(told, Problem) else Problem(type=told[0], message=told[1])
    return TestResult(id=test, outcome="failed", problem=problem, captured=captured)
