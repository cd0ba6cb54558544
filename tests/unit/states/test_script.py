"""The rules of the script itself: how it is started, and what its run proves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.sandbox.fake import with_script as with_good_script
from codetape.states import events as e
from codetape.states.ending import ending
from codetape.states.failures import SCRIPT, Failure
from codetape.states.job import Job, Sample
from codetape.states.ladder import next_label
from codetape.states.machine import State
from codetape.states.outputs import misfit, value_of
from codetape.states.requests import RunTests
from codetape.states.script import not_run, option, with_script
from codetape.states.session import Session
from codetape.states.values import (
    Declared,
    FailureClass,
    ImageRef,
    OutputFile,
    RunOutcome,
    RunSpec,
    ScriptRun,
    TestReport,
    TestResult,
    TextFile,
)
from codetape.states.verdict import verdict
from codetape.testing.bringing import run
from codetape.testing.strategies import chances
from tests.unit.states.driving import CODES, RIGHT, Driven, labels, ready

TOTAL = Declared(name="total", type="int")
NUMBERS = Declared(name="numbers", type="File")
SAMPLE = Sample(name="numbers", path="/home/a/b.txt", file="numbers.txt", description="Numbers.")
JOB = Job(prompt="Add.", plan=False, script_runs=True, outputs=(TOTAL,))
SAMPLED = JOB.model_copy(update={"inputs": (NUMBERS,), "samples": (SAMPLE,)})
BLANK = RunSpec(
    purpose="tests",
    image=ImageRef(ref="i", spec_key="k"),
    files=(
        TextFile(name="solution.py", text=RIGHT["code"]),
        TextFile(name="test_solution.py", text="def test_a():\n    assert 1\n"),
    ),
)
SPEC = with_script(JOB, BLANK)
PASSED = RunOutcome(
    exit_status=0,
    report=TestReport(finished=True, results=(TestResult(id="test_a", outcome="passed"),)),
)
THREE = OutputFile(name="total", path="/tmp/x/total", size=1, text="3")


def ran(script: ScriptRun | None, *outputs: OutputFile, **facts: Any) -> e.Event:
    """What tests that passed and then this script become."""
    return verdict(SPEC, PASSED.model_copy(update={"script": script, "outputs": outputs, **facts}))


def the_failure(event: e.Event) -> Failure:
    assert isinstance(event, e.ScriptFailed)
    (failure,) = event.failures
    assert failure.test_id == SCRIPT
    return failure


# --- how it is started ------------------------------------------------------------------------------


def test_older_jobs_have_no_script() -> None:
    older = SAMPLED.model_copy(update={"script_runs": False})
    assert with_script(older, BLANK) == BLANK
    assert not_run(older) == ""


def test_a_spec_without_a_script_has_the_key_it_always_had() -> None:
    assert {"script", "declared"} & set(BLANK.model_dump(mode="json")) == set()


def test_samples_are_the_values_of_inputs() -> None:
    spec = with_script(SAMPLED, BLANK)
    assert spec.script
    assert spec.arguments == ("--numbers", "/var/inputs/numbers.txt")
    assert spec.outputs == ("total",)
    assert spec.seconds == 2 * spec.limits.seconds


def test_an_input_without_a_sample_keeps_the_script_from_running() -> None:
    job = SAMPLED.model_copy(
        update={"inputs": (NUMBERS, Declared(name="limit", type="int"), TOTAL)}
    )
    assert with_script(job, BLANK) == BLANK
    assert not_run(job) == "no value for limit, total"


@given(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.text(max_size=9))
def test_an_option_is_never_taken_for_two(name: str, value: str) -> None:
    words = option(name, value)
    assert words in ((f"--{name}", value), (f"--{name}={value}",))
    assert not words[-1].startswith("-") or len(words) == 1


# --- what its run proves ----------------------------------------------------------------------------


def test_a_good_end_with_every_output_is_a_pass() -> None:
    event = ran(ScriptRun(exit_status=0), THREE)
    assert isinstance(event, e.TestsPassed)
    assert [(file.path, file.text) for file in event.run.outputs] == [("", "3")]
    assert ending(Session(id="s"), event).reason == (
        "the tests passed; the script itself ran and left its outputs"
    )


def test_a_pass_without_a_run_of_the_script_says_why() -> None:
    event = verdict(BLANK, PASSED, "no value for limit")
    assert isinstance(event, e.TestsPassed)
    assert event.script_not_run == "no value for limit"
    assert "not run: no value for limit" in ending(Session(id="s"), event).reason


def test_a_sandbox_that_runs_no_script_is_broken() -> None:
    assert isinstance(ran(None), e.SandboxBroke)
    assert isinstance(ran(None, exit_status=None), e.SandboxBroke)


def test_tests_whose_process_ends_badly_are_no_pass() -> None:
    assert the_failure(ran(None, exit_status=1)).problem.type == "ScriptNotRun"
    assert "signal 11" in the_failure(ran(None, exit_status=None, signal=11)).problem.message


@pytest.mark.parametrize(
    ("script", "type", "label"),
    [
        (ScriptRun(exit_status=3, stderr="no"), "exit status 3", "logic"),
        (ScriptRun(signal=11), "signal 11", "logic"),
        (ScriptRun(timed_out=True), "TimeLimit", "resource"),
        (ScriptRun(), "ScriptNotRun", "logic"),
    ],
)
def test_a_bad_end_is_a_failure_of_the_script(script: ScriptRun, type: str, label: str) -> None:
    failure = the_failure(ran(script, THREE))
    assert (failure.problem.type, failure.label) == (type, label)


@pytest.mark.parametrize("limit", ["out_of_memory", "disk_full", "too_much_output", "timed_out"])
def test_a_limit_after_the_tests_is_of_the_script(limit: str) -> None:
    failure = the_failure(ran(ScriptRun(), THREE, **{limit: True}))
    assert failure.label is FailureClass.RESOURCE


def test_a_limit_before_the_script_is_of_the_tests() -> None:
    event = ran(None, timed_out=True, exit_status=None)
    assert isinstance(event, e.TestsFailed)


def test_failing_tests_are_told_whatever_the_script_did() -> None:
    failing = TestReport(finished=True, results=(TestResult(id="test_a", outcome="failed"),))
    event = ran(ScriptRun(exit_status=0), THREE, report=failing)
    assert isinstance(event, e.TestsFailed)


def test_a_crash_tells_what_was_printed_and_what_is_missing() -> None:
    script = ScriptRun(exit_status=1, stdout="begun", stderr="Traceback …\nKeyError: 'a'")
    failure = the_failure(ran(script))
    assert failure.headline == "KeyError: 'a'"
    assert failure.captured == "begun"
    assert "exit status 1" in failure.because
    assert "no output total" in failure.because


def test_a_refused_output_is_told_with_its_reason() -> None:
    refused = ("total: a link, not a file or folder",)
    failure = the_failure(ran(ScriptRun(exit_status=0), refused_outputs=refused))
    assert failure.problem.message == "output total is a link, not a file or folder"


@given(chances())
def test_a_verdict_of_its_own_run_is_the_same_again(chance: Any) -> None:
    """A replay reads the run as it stands on the tape."""
    job = SAMPLED.model_copy(update={"outputs": (TOTAL, Declared(name="to", type="Dir"))})
    spec = with_script(job, BLANK)
    event = verdict(spec, run(chance, spec))
    assert isinstance(event, e.Ran | e.SandboxBroke)
    assert event.run is not None
    assert verdict(spec, event.run) == event
    if isinstance(event, e.TestsPassed):
        assert event.run.script is not None
        assert event.run.script.exit_status == 0
        assert {file.name for file in event.run.outputs} == {"total", "to"}


# --- outputs ------------------------------------------------------------------------------------------

VALUES = st.one_of(
    st.integers().map(lambda v: ("int", v, str(v))),
    st.floats(allow_nan=False).map(lambda v: ("float", v, repr(v))),
    st.booleans().map(lambda v: ("bool", v, str(v))),
    st.text().map(lambda v: ("str", v, v)),
    st.datetimes().map(lambda v: ("datetime", v, v.isoformat())),
    st.timedeltas(timedelta(0), timedelta(99)).map(
        lambda v: ("timedelta", v, repr(v.total_seconds()))
    ),
)


@given(VALUES)
def test_what_is_written_as_it_is_asked_for_is_read(case: tuple[Any, Any, str]) -> None:
    kind, value, text = case
    declared = Declared(name="x", type=kind)
    assert value_of(declared, text) == value
    assert misfit(declared, OutputFile(name="x", path="", size=len(text), text=text)) == ""


@given(st.text(max_size=30), st.sampled_from(["int", "float", "bool", "datetime", "timedelta"]))
def test_any_text_is_a_value_or_refused_in_words(text: str, kind: Any) -> None:
    declared = Declared(name="x", type=kind)
    why = misfit(declared, OutputFile(name="x", path="", text=text))
    assert why == "" or why.startswith(f"output x is no {kind}: ")
    if not why:
        assert isinstance(value_of(declared, text), (int, float, bool, datetime, timedelta))


def test_bytes_that_are_no_text_are_no_number() -> None:
    assert "no int" in misfit(TOTAL, OutputFile(name="total", path="", size=9000))
    assert misfit(Declared(name="a", type="str"), OutputFile(name="a", path="", size=9000)) == ""


# --- its repair -------------------------------------------------------------------------------------


def begun() -> Driven:
    return ready(JOB, code=CODES[0])


def fails(driven: Driven, script: ScriptRun) -> Driven:
    outcome = PASSED.model_copy(
        update={
            "report": TestReport(
                finished=True,
                collected=("test_a", "test_b"),
                results=tuple(TestResult(id=i, outcome="passed") for i in ("test_a", "test_b")),
            )
        }
    )
    spec = driven.wanted(RunTests).spec
    good = with_good_script(spec, outcome)
    return driven.runs(
        good if script.exit_status == 0 else good.model_copy(update={"script": script})
    )


def test_a_failing_script_is_repaired_by_code_and_no_model_is_asked_why() -> None:
    driven = fails(begun(), ScriptRun(exit_status=3, stderr="KeyError: 'a'"))
    assert driven.names[-3:] == ["script_failed", "diagnosed", "reclassified"]
    assert driven.state is State.NEEDS_CODE
    assert labels(driven.session) == {SCRIPT: "logic"}
    assert "exit status 3" in driven.prompt
    driven.says(CODES[1])
    assert fails(driven, ScriptRun(exit_status=0)).names[-1] == "tests_passed"
    assert driven.session.attempts == 2


def test_another_failure_of_the_script_is_repaired_anew() -> None:
    driven = fails(begun(), ScriptRun(exit_status=1, stderr="KeyError: 'a'"))
    driven = fails(driven.says(CODES[1]), ScriptRun(exit_status=1, stderr="ValueError: no"))
    assert driven.state is State.NEEDS_CODE


def test_no_test_is_blamed_for_the_script() -> None:
    driven = fails(begun(), ScriptRun(exit_status=3))
    driven = fails(driven.says(CODES[1]), ScriptRun(exit_status=3))
    assert driven.state is State.NEEDS_CODE
    driven = driven.says(CODES[1])
    assert driven.session.ending
    assert driven.session.ending.failure is FailureClass.STUCK
    (failure,) = driven.session.failures
    assert next_label(driven.session, failure) is FailureClass.STUCK
