"""The script itself: how it is started on samples, and what its run proves.

Tests import the solution; a caller starts it. So tests that pass are followed by a run of the script,
and a pass needs both: it has to end with status 0 and leave every declared output in its type.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codetape.states import events as e
from codetape.states.classify import limit_problem
from codetape.states.failures import SCRIPT, Failure
from codetape.states.job import Job
from codetape.states.outputs import is_read, misfit
from codetape.states.python_source import imported_names, parsed, syntax_error
from codetape.states.values import (
    FailureClass,
    Problem,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    ScriptRun,
)

INPUTS = "/var/inputs"
TESTS = "test_solution"

LAST_WORDS = 1500
"""Characters of what a script printed last that are its failure."""


# --- how it is started ------------------------------------------------------------------------------


def option(name: str, value: str) -> tuple[str, ...]:
    """Return a value as an option; argparse takes one that begins with a dash for another option."""
    return (f"--{name}={value}",) if value.startswith("-") else (f"--{name}", value)


def place_of(file: str) -> str:
    """Return the value of an input that is a file: where it lies in the sandbox."""
    return f"{INPUTS}/{file}"


def not_run(job: Job) -> str:
    """Return why the script cannot be run without a caller; empty if it can, or is not to be run."""
    samples = {sample.name for sample in job.samples}
    lacking = [d.name for d in job.inputs if d.name not in samples]
    return f"no value for {', '.join(lacking)}" if job.script_runs and lacking else ""


def with_script(job: Job, spec: RunSpec) -> RunSpec:
    """Return a run of tests that the script follows, on the samples, if the job asks for it."""
    if not job.script_runs or not_run(job):
        return spec
    files = {sample.name: sample.file for sample in job.samples}
    options = [option(d.name, place_of(files[d.name])) for d in job.inputs]
    update = {
        "script": True,
        "arguments": tuple(word for words in options for word in words),
        "outputs": tuple(d.name for d in job.outputs),
        "declared": job.outputs,
    }
    return spec.model_copy(update=update)


def needs_tests(source: str) -> bool:
    """True for a solution that names the file of its tests, which is gone when a caller runs it."""
    if TESTS not in source or syntax_error(source) is not None:
        return False
    if any(name.partition(".")[0] == TESTS for name in imported_names(source)):
        return True
    nodes = list(ast.walk(parsed(source)))
    idle = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and id(n) not in idle]
    return any(isinstance(text, str) and TESTS in text for text in texts)


# --- what its run proves ------------------------------------------------------------------------------


def as_evidence(spec: RunSpec, run: RunOutcome) -> RunOutcome:
    """Return a run without what no verdict needs of its outputs: their places and longer texts."""
    read = {d.name for d in spec.declared if is_read(d)}
    outputs = tuple(
        file.model_copy(update={"path": "", "text": file.text if file.name in read else None})
        for file in run.outputs
    )
    return run.model_copy(update={"outputs": outputs}) if outputs else run


def script_verdict(spec: RunSpec, passed: e.TestsPassed) -> e.Event:
    """Return the pass, ScriptFailed, or SandboxBroke where nothing is known of the script."""
    run = passed.run
    if run.script is None and not _ended_badly(run):
        failure = SandboxFailure(message="the sandbox did not run the script after its tests")
        return e.SandboxBroke(failure=failure, run=run)
    failed = _not_started(run) if run.script is None else _failure(spec, run, run.script)
    if failed is None:
        return passed
    return e.ScriptFailed(run=run, expected=passed.expected, failures=(failed,))


def _ended_badly(run: RunOutcome) -> bool:
    return run.exit_status not in (0, None) or run.signal is not None


def _not_started(run: RunOutcome) -> Failure:
    message = f"the tests passed, and then their process ended with {how_ended(run)}"
    return _failed(Problem(type="ScriptNotRun", message=message), FailureClass.LOGIC, message)


def _failure(spec: RunSpec, run: RunOutcome, script: ScriptRun) -> Failure | None:
    late = run.model_copy(update={"timed_out": run.timed_out or script.timed_out})
    said = f"{script.stdout}\n{script.stderr}".strip()[-LAST_WORDS:]
    if limit := limit_problem(late):
        return _failed(limit, FailureClass.RESOURCE, f"{_command(spec)}: {limit.message}", said)
    if script.exit_status is None and script.signal is None:
        message = "the script could not begin: what the tests left could not be removed"
        return _failed(Problem(type="ScriptNotRun", message=message), FailureClass.LOGIC, message)
    misfits = _misfits(spec, run)
    if script.exit_status != 0:
        told = [f"{_command(spec)} ended with {how_ended(script)}", *misfits.values()]
        printed = script.stdout.strip()[-LAST_WORDS:] if script.stderr.strip() else ""
        return _failed(crash(script), FailureClass.LOGIC, "; ".join(told), printed)
    if not misfits:
        return None
    missing = {file.name for file in run.outputs}.isdisjoint(misfits)
    problem = Problem(
        type="OutputMissing" if missing else "OutputUnfit", message="; ".join(misfits.values())
    )
    because = f"{_command(spec)} ended with exit status 0, without every declared output"
    return _failed(problem, FailureClass.LOGIC, because, said)


def _failed(problem: Problem, label: FailureClass, because: str, captured: str = "") -> Failure:
    because = f"the tests passed, but the script has to run as well: {because}"
    return Failure(test_id=SCRIPT, problem=problem, captured=captured, label=label, because=because)


def _command(spec: RunSpec) -> str:
    return " ".join(("`python solution.py", *spec.arguments)) + "`"


def _misfits(spec: RunSpec, run: RunOutcome) -> dict[str, str]:
    """Return what is wrong with outputs, by their names."""
    files = {file.name: file for file in run.outputs}
    refused = {line.partition(": ")[0]: line.partition(": ")[2] for line in run.refused_outputs}
    told = {
        d.name: misfit(d, files[d.name]) if d.name in files else _missing(d.name, refused)
        for d in spec.declared
    }
    return {name: why for name, why in told.items() if why}


def _missing(name: str, refused: Mapping[str, str]) -> str:
    if name in refused:
        return f"output {name} is {refused[name]}"
    return f"the script wrote no output {name}: there is no /var/outputs/{name}"


def how_ended(run: RunOutcome | ScriptRun) -> str:
    """Return exit status or signal in words."""
    return f"signal {run.signal}" if run.signal else f"exit status {run.exit_status}"


def crash(run: RunOutcome | ScriptRun) -> Problem:
    """Return a script's end with an error: its status, and what it printed last."""
    said = (run.stderr.strip() or run.stdout.strip())[-LAST_WORDS:]
    return Problem(type=how_ended(run), message=said or "it printed nothing")
