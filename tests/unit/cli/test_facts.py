"""Every event has a row that says what a reader wants to know."""

from __future__ import annotations

from typing import Any

import pytest

from codetape.cli.facts import facts, row
from codetape.engine.tape import Recorded
from codetape.states import events as e
from codetape.states.constraints import Check
from codetape.states.events import EVENTS, Event
from codetape.states.failures import SCRIPT, Failure
from codetape.states.job import Budget, Job
from codetape.states.tools import events as t
from codetape.states.tools.personas import PERSONAS
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    FailureClass,
    ImageRef,
    OutputFile,
    Problem,
    RunOutcome,
    SandboxFailure,
    ScriptRun,
    TestReport,
    TestResult,
)

SAID = Answer(text="{}", seconds=1.5)
IMAGE = ImageRef(ref="x", spec_key="k", python="3.11", cached=True, seconds=0.5)
FAILURE = Failure(
    test_id="test_a",
    problem=Problem(type="AssertionError", message="assert 1 == 2"),
    label=FailureClass.LOGIC,
    fix="Replace `1` with `2`",
)
RUN = RunOutcome(
    exit_status=1,
    seconds=0.5,
    report=TestReport(
        finished=True,
        results=(
            TestResult(id="test_a", outcome="failed"),
            TestResult(id="test_b", outcome="passed"),
        ),
    ),
)
LABELS = (
    e.Relabelled(test_id="test_a", before=FailureClass.LOGIC, after=FailureClass.TEST_ERROR),
    e.Relabelled(test_id="test_b", before=FailureClass.LOGIC, after=FailureClass.LOGIC),
)
NO_BUILD = BuildFailure(cause="unknown_package", message="no such package: nope", seconds=2.0)
TESTS = "def test_a():\n    pass\n"

CASES: list[tuple[Event, str]] = [
    (
        e.SessionOpened(job=Job(prompt="x", model="m"), workflow="autocoder", rules=1),
        "model m; sandbox auto; at most 10 attempts",
    ),
    (
        e.Forked(parent="s", seq=3, changed=("model", "limits")),
        "from event 3 of s; with another model, limits",
    ),
    (e.SandboxReady(image=IMAGE), "Python 3.11; found; 0.50 s"),
    (
        e.ConstraintParsed(
            constraint="not\nmuch",
            check=Check(constraint="not\nmuch", column="a", kind="less_than", arguments=(3,)),
            answer=SAID,
        ),
        "not much: less_than of a; 1.50 s",
    ),
    (e.Planned(description="Add\ntwo.", approach="x", answer=SAID), "Add two.; 1.50 s"),
    (
        e.CodeWritten(source="a\nb\n", packages=("numpy",), answer=SAID),
        "2 lines; packages: numpy; 1.50 s",
    ),
    (e.FixesVerified(missing=("x",), answer=SAID), "1 fix is missing; 1.50 s"),
    (e.TestsWritten(source=TESTS, answer=SAID), "1 test; 2 lines; 1.50 s"),
    (
        e.TestsPatched(source=TESTS, patched=("test_a",), refused=("weak",), answer=SAID),
        "patched: test_a; weak; 1.50 s",
    ),
    (e.PatchRefused(reasons=("it weakens test_a",), answer=SAID), "it weakens test_a; 1.50 s"),
    (e.PatchesVerified(answer=SAID), "every fix is in; 1.50 s"),
    (e.ImageBuilt(image=IMAGE.model_copy(update={"cached": False})), "Python 3.11; built; 0.50 s"),
    (e.PackageRejected(failure=NO_BUILD), "no such package: nope; 2.00 s"),
    (e.PackagesHeld(failure=NO_BUILD), "no such package: nope; 2.00 s"),
    (e.PackageReplaced(rejected="nope", answer=SAID), "nope -> nothing; 1.50 s"),
    (e.BuildFailed(failure=NO_BUILD), "no such package: nope; 2.00 s"),
    (e.TestsPassed(run=RUN), "1 passed; 0.50 s"),
    (e.TestsFailed(run=RUN, failures=(FAILURE,)), "1 of 2 failed: test_a; 0.50 s"),
    (
        e.ScriptFailed(run=RUN, failures=(FAILURE.model_copy(update={"test_id": SCRIPT}),)),
        "the script failed, AssertionError: assert 1 == 2; 1 test passed; 0.50 s",
    ),
    (e.TestsNotCollected(run=RUN, failure=FAILURE), "logic, AssertionError: assert 1 == 2"),
    (e.SandboxBroke(failure=SandboxFailure(message="no podman")), "no podman"),
    (e.RepairFailed(reason="nothing changed"), "nothing changed"),
    (
        e.Diagnosed(by="model", failures=(FAILURE, FAILURE), answer=SAID),
        "2 logic; Replace `1` with `2`",
    ),
    (e.Reclassified(labels=LABELS), "1 test_error, 1 logic; test_a: logic -> test_error"),
    (
        e.AnswerRejected(kind="code", reason="invalid", detail="bad", answer=SAID),
        "code answer invalid; bad; 1.50 s",
    ),
    (
        e.CallFailed(kind="plan", failure=CallFailure(reason="auth", message="no key")),
        "plan call, auth; no key",
    ),
    (e.AttemptsSpent(attempts=3), "3 attempts"),
    (e.BudgetSpent(limit="usd", spent=1.5, allowed=1), "usd: 1.5 of 1"),
    (e.Paused(by="an interruption"), "by an interruption"),
    (e.Resumed(budget=Budget(usd=1)), "with another budget"),
    (e.Noted(text="be\nbrief"), "be brief"),
    (e.Cancelled(by="me"), "by me"),
]

SCRIPTS: list[tuple[Event, str]] = [
    (
        e.TestsPassed(run=RUN, script_not_run="no value for limit"),
        "1 passed; 0.50 s; the script was not run: no value for limit",
    ),
    (
        e.TestsPassed(
            run=RUN.model_copy(
                update={
                    "script": ScriptRun(exit_status=0, seconds=0.25),
                    "outputs": (OutputFile(name="total", path="", text="3"),),
                }
            )
        ),
        "1 passed; 0.50 s; the script ran, 1 output, 0.25 s",
    ),
]

TOOLS: list[tuple[Event, str]] = [
    (t.FindingWritten(persona="tool_architect", answer=SAID), "tool_architect; 1.50 s"),
    (
        t.FindingWritten(persona="tool_implementer", source="x = 1\n", answer=SAID),
        "tool_implementer, 1 line; 1.50 s",
    ),
    (
        e.SessionOpened(
            job=Job(prompt="x", model="m", personas=PERSONAS), workflow="toolmaker", rules=1
        ),
        "model m; sandbox auto; at most 3 repairs of a crash",
    ),
    (t.ScriptRan(run=RUN), "it ran; 0.50 s"),
    (t.ScriptCrashed(run=RUN, failure=FAILURE), "AssertionError; assert 1 == 2; 0.50 s"),
    (t.HarnessWritten(source="x = 1\n", answer=SAID), "1 line; 1.50 s"),
    (
        t.HarnessRefused(reasons=("It asserts nothing.",), answer=SAID),
        "It asserts nothing.; 1.50 s",
    ),
]


def test_all_events_are_here() -> None:
    assert [type(event) for event, _ in CASES] == list(EVENTS)


@pytest.mark.parametrize(
    ("event", "said"), [*CASES, *SCRIPTS, *TOOLS], ids=lambda x: getattr(x, "name", "")
)
def test_facts(event: Event, said: str) -> None:
    assert row(recorded(event)).facts == said


def recorded(event: Event, **more: Any) -> Recorded:
    facts_of_a_tape: dict[str, Any] = {"source": "Testing", "dest": "Done", "request_key": None}
    return Recorded(seq=7, event=event, at="", hash="", **{**facts_of_a_tape, **more})


def test_row() -> None:
    shown = row(recorded(e.AttemptsSpent(attempts=3)))
    assert (shown.seq, shown.source, shown.dest, shown.event) == (
        7,
        "Testing",
        "Done",
        "attempts_spent",
    )


def test_a_diagnosis_without_a_model() -> None:
    assert facts(e.Diagnosed(by="evidence", failures=(FAILURE,))) == ("1 logic", "by evidence")
