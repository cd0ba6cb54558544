"""An event as one row: where it led, its name, and the few facts that a reader wants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from codetape.cli.text import counted, duration, listed, one_line
from codetape.engine.tape import Recorded
from codetape.states import events as e
from codetape.states.changed_tests import WRITING, changed_tests
from codetape.states.failures import Failure
from codetape.states.job import Job
from codetape.states.python_source import defined_tests
from codetape.states.tools import events as t
from codetape.states.values import ImageRef, RunOutcome


@dataclass(frozen=True, slots=True)
class Row:
    """What is shown of one event."""

    seq: int
    source: str
    dest: str
    event: str
    facts: str


def row(recorded: Recorded, tests: str = "") -> Row:
    """Return an event as a row; `tests` is the test file that the session had before it."""
    event = recorded.event
    changed = changed_tests(tests, event.source) if tests and isinstance(event, WRITING) else ()
    said = one_line("; ".join(filter(None, (*changed, *facts(event)))))
    return Row(recorded.seq, recorded.source, recorded.dest, event.name, said)


def facts(event: e.Event) -> tuple[str, ...]:
    """Return what is worth knowing of an event, the most telling first."""
    match event:
        case e.SessionOpened():
            job = event.job
            return (f"model {job.model}", f"sandbox {job.sandbox}", f"at most {_most(job)}")
        case e.SandboxReady() | e.ImageBuilt():
            return _image(event.image)
        case e.Ran() | e.SandboxBroke() | e.RepairFailed():
            return _run(event)
        case e.Diagnosed() | e.Reclassified():
            return _labels(event)
        case e.BuildEnded():
            return (one_line(event.failure.message, 120), duration(event.failure.seconds))
        case e.Answered() | e.CallFailed():
            return (*_answer(event), duration(event.outcome.seconds if event.outcome else None))
    return _outside(event)


def _most(job: Job) -> str:
    if job.personas:
        return counted(job.fix_cycles, "repair of a crash", "repairs of a crash")
    return counted(job.max_iterations, "attempt")


def _answer(event: e.Answered | e.CallFailed) -> tuple[str, ...]:
    match event:
        case e.ConstraintParsed():
            found = f"{event.check.kind} of {event.check.column}" if event.check else "no check"
            return (f"{one_line(event.constraint, 90)}: {found}",)
        case e.Planned():
            return (one_line(event.description, 90),)
        case e.CodeWritten():
            packages = f"packages: {listed(event.packages)}" if event.packages else ""
            return (_lines(event.source), packages)
        case e.TestsWritten():
            return (counted(len(defined_tests(event.source)), "test"), _lines(event.source))
        case e.TestsPatched():
            return (f"patched: {listed(event.patched)}", *event.refused)
        case e.PatchRefused():
            return event.reasons
        case e.FixesVerified() | e.PatchesVerified():
            missing = counted(len(event.missing), "fix is missing", "fixes are missing")
            return (event.unread or (missing if event.missing else "every fix is in"),)
        case t.FindingWritten():
            source = f", {_lines(event.source)}" if event.source else ""
            return (f"{event.persona}{source}",)
        case t.HarnessWritten():
            return (_lines(event.source),)
        case t.HarnessRefused():
            return event.reasons
        case e.PackageReplaced():
            return (event.unread or f"{event.rejected} -> {event.replacement or 'nothing'}",)
        case e.AnswerRejected():
            return (f"{event.kind} answer {event.reason}", one_line(event.detail, 120))
        case e.CallFailed():
            return (f"{event.kind} call, {event.failure.reason}", event.failure.message)
    return ()


def _run(event: e.Event) -> tuple[str, ...]:
    match event:
        case e.TestsPassed():
            known = "known from an equal run" if event.run.cached else duration(event.run.seconds)
            return (f"{_passed(event.run)} passed{_weak(event)}", known, _script(event))
        case e.TestsFailed():
            total = len(event.run.report.results) if event.run.report else 0
            failed = f"{len(event.failures)} of {total} failed"
            return (f"{failed}: {_tests(event.failures)}", duration(event.run.seconds))
        case e.ScriptFailed():
            how = (f", {f.problem.type}: {one_line(f.headline, 120)}" for f in event.failures[:1])
            tests = f"{counted(_passed(event.run), 'test')} passed"
            return (f"the script failed{''.join(how)}", tests, duration(event.run.seconds))
        case e.TestsNotCollected():
            problem = event.failure.problem
            return (f"{event.failure.label}, {problem.type}: {one_line(problem.message, 120)}",)
        case t.ScriptRan():
            return ("it ran", duration(event.run.seconds))
        case t.ScriptCrashed():
            last = event.failure.problem.message.strip().split("\n")[-1]
            return (event.failure.problem.type, one_line(last, 120), duration(event.run.seconds))
        case e.SandboxBroke():
            return (event.failure.message,)
        case e.RepairFailed():
            return (event.reason,)
    return ()


def _labels(event: e.Diagnosed | e.Reclassified) -> tuple[str, ...]:
    if isinstance(event, e.Diagnosed):
        counts = Counter(str(failure.label) for failure in event.failures)
        fixes = dict.fromkeys(one_line(f.fix, 120) for f in event.failures if f.fix)
        return (
            (_counts(counts), *fixes) if event.by == "model" else (_counts(counts), "by evidence")
        )
    flips = [f"{x.test_id}: {x.before} -> {x.after}" for x in event.labels if x.before != x.after]
    return (_counts(Counter(str(label.after) for label in event.labels)), *flips)


def _outside(event: e.Event) -> tuple[str, ...]:
    match event:
        case e.AttemptsSpent():
            return (counted(event.attempts, "attempt"),)
        case e.BudgetSpent():
            return (f"{event.limit}: {event.spent:g} of {event.allowed:g}",)
        case e.Paused() | e.Cancelled():
            return (f"by {event.by}",)
        case e.Resumed():
            return ("with another budget",) if event.budget else ()
        case e.Noted():
            return (event.text,)
        case e.Forked():
            changed = f"with another {listed(event.changed)}" if event.changed else ""
            given = "the next outcome is given, it did not happen" if event.given else ""
            return (f"from event {event.seq} of {event.parent}", changed, given)
    return ()


def _image(image: ImageRef) -> tuple[str, ...]:
    how = {True: "found", False: "built", None: ""}[image.cached]
    python = f"Python {image.python}" if image.python else ""
    return (image.sandbox or "", image.tool or "", python, how, duration(image.seconds))


def _passed(run: RunOutcome) -> int:
    results = run.report.results if run.report else ()
    return sum(result.outcome == "passed" for result in results)


def _weak(event: e.TestsPassed) -> str:
    """Say how many tests of a pass are not counted."""
    weak = len(event.weak_tests)
    return f", {weak} of them check no result" if weak else ""


def _script(event: e.TestsPassed) -> str:
    """Say what came of the script itself; nothing where it was not to be run."""
    if event.script_not_run:
        return f"the script was not run: {event.script_not_run}"
    if event.run.script is None:
        return ""
    outputs = counted(len(event.run.outputs), "output")
    return f"the script ran, {outputs}, {duration(event.run.script.seconds)}"


def _tests(failures: Iterable[Failure]) -> str:
    return listed([failure.test_id for failure in failures])


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {label}" for label, number in counts.items())


def _lines(source: str) -> str:
    return counted(source.count("\n"), "line")
