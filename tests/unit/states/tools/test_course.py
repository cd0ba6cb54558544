"""The course of the tool maker: what is asked in which order, and how it ends."""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states.job import Job, Persona
from codetape.states.machine import State
from codetape.states.requests import BuildImage, ReplacePackage, RunTests
from codetape.states.session import Solution
from codetape.states.tools.ending import harness_status, status
from codetape.states.tools.personas import PERSONAS
from codetape.states.tools.requests import RunScript, WriteHarness
from codetape.states.tools.session import ToolSession
from codetape.states.values import FailureClass, RunOutcome
from codetape.states.workflow import TOOLMAKER
from tests.unit.states.driving import Driven

JOB = Job(prompt="Count words.", personas=PERSONAS, today="2026-11-30")

DESIGN = "One function, count(text) -> int."
SCRIPT = "def count(text):\n    return len(text.split()){more}\n\n\nprint(count('a b'))\n"
TOOL = SCRIPT.format(more="")
HARNESS = "def test_logic():\n    assert count('a b') == 2, 'two words'\n"


def fenced(source: str) -> str:
    return f"Here it is.\n\n```python\n{source}```\n"


def fix(number: int) -> str:
    return fenced(SCRIPT.format(more=f" + {number}"))


def drive(job: Job = JOB) -> Driven:
    return Driven(job, workflow=TOOLMAKER)


def written(job: Job = JOB) -> Driven:
    """A tool whose image is built: it is about to run."""
    return drive(job).says(DESIGN).says(fenced(TOOL)).builds()


def runs(driven: Driven) -> Driven:
    return driven.script(RunOutcome(exit_status=0, stdout="2\n"))


def harnessed() -> Driven:
    """A tool that runs, with its harness about to run."""
    return runs(written()).says(fenced(HARNESS))


def test_the_whole_course_is_three_calls() -> None:
    driven = harnessed().passes()
    assert driven.kinds == ["tool_architect", "tool_implementer", "harness"]
    assert (status(driven.session), harness_status(driven.session)) == ("passed", "passed")
    assert (
        driven.names
        == (
            "session_opened sandbox_ready finding_written finding_written image_built script_ran "
            "harness_written tests_passed"
        ).split()
    )


def test_a_persona_is_told_what_the_ones_before_found_and_the_date() -> None:
    driven = drive()
    assert "Today is 2026-11-30." in driven.prompt
    assert DESIGN in driven.says(DESIGN).prompt


def test_personas_are_data() -> None:
    critic = Persona(
        name="critic", directive="You find fault.", model="other/model", temperature=0.9
    )
    driven = drive(JOB.model_copy(update={"personas": (*PERSONAS[:1], critic, PERSONAS[1])}))
    driven.says(DESIGN)
    call = next(iter(driven.workflow.wanted(driven.session))).call  # type: ignore[attr-defined]
    assert (call.kind, call.model) == ("critic", "other/model")
    assert call.parameters == {"temperature": 0.9}
    driven.says("It has no help.").says(fenced(TOOL))
    assert driven.kinds == ["tool_architect", "critic", "tool_implementer"]


def test_code_is_whose_it_is_to_write_and_the_newest_wins() -> None:
    critic = Persona(name="critic", directive="You find fault.")
    personas = (PERSONAS[1], critic)
    driven = drive(JOB.model_copy(update={"personas": personas})).says(fenced(TOOL)).says(fix(1))
    assert driven.session.code is not None
    assert driven.session.code.source == TOOL, "a critic's sketch is no tool"
    again = critic.model_copy(update={"name": "reviser", "writes_code": True})
    driven = drive(JOB.model_copy(update={"personas": (*personas, again)}))
    driven.says(fenced(TOOL)).says("It has no help.").says(fix(1))
    assert driven.session.code is not None
    assert driven.session.code.source == SCRIPT.format(more=" + 1")


def test_where_nobody_writes_code_the_last_one_is_asked_for_it() -> None:
    one, other = (Persona(name=name, directive="Help.") for name in ("one", "other"))
    driven = drive(JOB.model_copy(update={"personas": (one, other)})).says(fenced(TOOL))
    assert driven.session.code is None
    assert "Write the whole file." in driven.prompt


def test_models_are_chosen_by_lane() -> None:
    models = {"orchestrator": "big", "coder": "small", "fix_crash": "fast"}
    driven = drive(JOB.model_copy(update={"models": models})).says(DESIGN).says(fenced(TOOL))
    driven.builds().crashes()
    asked = [q.call.model for q in driven.asked if hasattr(q, "call")]
    (request,) = driven.workflow.wanted(driven.session)
    assert [*asked, request.call.model] == ["big", "small", "fast"]  # type: ignore[attr-defined]


def test_no_code_is_skipped_and_the_findings_stay() -> None:
    driven = drive().says(DESIGN).says("I would rather not.")
    assert driven.state is State.DONE
    assert status(driven.session) == "skipped"
    assert [f.text for f in driven.session.findings] == [DESIGN, "I would rather not."]  # type: ignore[attr-defined]


def test_the_largest_block_that_parses_is_the_code() -> None:
    answer = f"```python\nx = 1\n```\n{fenced(TOOL)}```python\ndef broken(:\n{'# long' * 99}\n```"
    driven = drive().says(DESIGN).says(answer)
    assert driven.session.code is not None
    assert driven.session.code.source == TOOL


def test_a_script_without_functions_is_code_if_its_fence_says_so() -> None:
    driven = drive().says(DESIGN).says("```python\nprint(sum(range(10)))\n```")
    assert driven.session.code is not None
    for idle in ("```python\n# nothing yet\n```", "```python\nno_code\n```", "```\nprint(1)\n```"):
        assert status(drive().says(DESIGN).says(idle).session) == "skipped"


def test_code_that_nothing_closes_was_cut_and_is_asked_for_again() -> None:
    driven = drive().says(DESIGN).says(f"Here it is.\n```python\n{TOOL}")
    assert driven.session.rejection == "truncated: a fenced block is not closed"
    driven = driven.says(fenced(TOOL)).builds()
    driven = runs(driven).says(f"```python\n{HARNESS}")
    assert driven.session.rejected_kind == "harness"
    assert status(driven.says(fenced(HARNESS)).passes().session) == "passed"


def test_a_design_may_end_in_the_middle_of_a_block() -> None:
    assert drive().says("```python\ndef count(text)").names[-1] == "finding_written"


def test_a_harness_that_is_nested_too_deeply_is_refused() -> None:
    deep = f"assert count('') == {'+'.join('1' * 2000)}"
    driven = runs(written()).says(f"```python\n{deep}\n```")
    assert isinstance(driven.session, ToolSession)
    assert driven.session.refusals == ("It does not parse: it is nested deeper than 100 levels.",)


def test_a_crash_is_repaired_at_most_as_often_as_the_job_says() -> None:
    driven = written().crashes("Traceback …\nValueError: no words")
    assert "ValueError: no words" in driven.prompt
    for number in range(JOB.fix_cycles):
        assert driven.state is State.NEEDS_CODE
        driven.says(fix(number)).crashes(f"ValueError: case {number}")
    assert driven.session.done
    assert (status(driven.session), harness_status(driven.session)) == ("exhausted", "missing")
    assert driven.kinds.count("fix_crash") == JOB.fix_cycles


def test_a_crash_that_was_repaired_is_passed() -> None:
    driven = runs(written().crashes().says(fix(0))).says(fenced(HARNESS)).passes()
    assert status(driven.session) == "passed"
    assert driven.session.attempts == 3


def test_a_repair_that_changes_nothing_is_not_run_again() -> None:
    driven = written().crashes().says(fenced(TOOL))
    assert driven.names[-1] == "repair_failed"
    assert driven.state is State.NEEDS_CODE
    driven.says(fenced(TOOL)).says(fenced(TOOL))
    assert driven.session.done
    assert status(driven.session) == "exhausted"


def test_a_time_limit_is_a_crash_and_no_exit_status_is_the_sandbox() -> None:
    driven = written().script(RunOutcome(timed_out=True))
    assert driven.session.failures[0].label is FailureClass.RESOURCE
    broken = written().script(RunOutcome())
    assert broken.names[-1] == "sandbox_broke"


def test_a_failing_harness_gets_one_repair_and_the_script_runs_first() -> None:
    driven = harnessed().fails(test_logic="assert 3 == 2")
    assert driven.names[-3:] == ["tests_failed", "diagnosed", "reclassified"]
    assert "assert 3 == 2" in driven.prompt
    assert HARNESS in driven.prompt
    driven.says(fix(1))
    assert driven.wanted(RunScript)
    runs(driven).passes()
    assert (status(driven.session), harness_status(driven.session)) == ("fixed", "passed")
    assert driven.kinds[-1] == "fix_logic"


def test_failing_again_keeps_the_tool_and_says_so() -> None:
    driven = harnessed().fails(test_logic="assert 3 == 2").says(fix(1))
    runs(driven).fails(test_logic="assert 4 == 2")
    assert driven.state is State.DONE
    assert (status(driven.session), harness_status(driven.session)) == (
        "logic_test_failed",
        "failed",
    )
    assert driven.session.code is not None


def test_a_repair_of_logic_that_crashes_is_the_end() -> None:
    driven = harnessed().fails(test_logic="assert 3 == 2").says(fix(1)).crashes()
    assert status(driven.session) == "logic_test_failed"
    assert "broke the tool" in (driven.session.ending.reason if driven.session.ending else "")


def test_a_repair_of_logic_that_does_not_run_is_taken_back() -> None:
    crashed = harnessed().fails(test_logic="assert 3 == 2").says(fix(1)).crashes()
    assert crashed.session.code == Solution(TOOL)
    assert isinstance(crashed.session, ToolSession)
    assert crashed.session.script_run == RunOutcome(exit_status=0, stdout="2\n")
    unbuilt = harnessed().fails(test_logic="assert 3 == 2").says(fenced("import yaml\n" + TOOL))
    unbuilt.build_fails("conflict")
    assert unbuilt.state is State.DONE
    assert unbuilt.session.code == Solution(TOOL)


def test_a_repair_of_logic_that_changes_nothing_is_the_end() -> None:
    driven = harnessed().fails(test_logic="assert 3 == 2").says(fenced(TOOL))
    assert driven.state is State.DONE
    assert status(driven.session) == "logic_test_failed"


@pytest.mark.parametrize(
    ("harness", "why"),
    [
        ("def test_logic():\n    count('a')\n", "asserts nothing"),
        ("def test_logic():\n    assert True\n", "asserts nothing"),
        (
            "def count(x):\n    return 2\n\n\ndef test_logic():\n    assert count('') == 2\n",
            "count",
        ),
        ("def test_logic():\n    assert len('a') == 1\n", "uses no function"),
        ("def test_logic(:\n", "does not parse"),
    ],
)
def test_a_worthless_harness_is_asked_for_once_more(harness: str, why: str) -> None:
    driven = runs(written()).says(fenced(harness) if why != "does not parse" else harness)
    assert driven.names[-1] == "harness_refused"
    assert why in driven.prompt
    driven.says(fenced(harness))
    assert driven.state is State.DONE
    assert (status(driven.session), harness_status(driven.session)) == ("exhausted", "refused")


def test_a_harness_is_behind_the_script_in_one_file() -> None:
    driven = harnessed()
    script, tests = driven.wanted(RunTests).spec.files
    assert tests.text.startswith(script.text.rstrip())
    assert tests.text.endswith(HARNESS)


def test_packages_of_the_script_are_installed_and_replaced() -> None:
    yaml = fenced("import yaml\n" + TOOL)
    driven = drive().says(DESIGN).says(yaml)
    assert "pyyaml" in driven.wanted(BuildImage).spec.requirements
    driven.build_fails("unknown_package", "pyyaml")
    assert driven.wanted(ReplacePackage)
    driven.says({"replacement": None})
    assert driven.wanted(BuildImage).spec.requirements == ("pytest",)


def test_packages_that_do_not_fit_are_a_crash_of_the_script() -> None:
    driven = drive().says(DESIGN).says(fenced("import yaml\n" + TOOL)).build_fails("conflict")
    assert driven.state is State.NEEDS_CODE
    assert "conflict!" in driven.prompt
    driven.says(fenced(TOOL)).builds()
    assert driven.wanted(RunScript)


def test_the_same_packages_again_are_not_built_again() -> None:
    driven = drive().says(DESIGN).says(fenced("import yaml\n" + TOOL)).build_fails("conflict")
    for number in range(3):
        driven.says(fenced(f"import yaml\n{SCRIPT.format(more=f' + {number}')}"))
    assert driven.state is State.DONE
    assert status(driven.session) == "exhausted"


def test_cancelled_keeps_what_was_made() -> None:
    driven = runs(written()).happens(e.Cancelled(by="somebody"))
    assert status(driven.session) == "cancelled"
    assert driven.session.code is not None
    assert driven.wanted_nothing


def test_an_answer_that_was_cut_is_asked_for_again() -> None:
    driven = drive().says(DESIGN).says("```python\ndef f(", finish_reason="length")
    assert driven.names[-1] == "answer_rejected"
    assert "cannot be used (truncated" in driven.prompt


def test_a_repair_without_code_is_asked_for_again() -> None:
    driven = written().crashes().says("Sorry, no.")
    assert "no fenced block" in driven.prompt
    assert driven.says("Sorry, no.").state is State.DONE


def test_earlier_lessons_and_the_context_are_part_of_the_prompt() -> None:
    told = {"guidance": ("Read with newline=''.",), "context": "The logs are from nginx."}
    prompt = drive(JOB.model_copy(update=told)).prompt
    assert "- Read with newline=''." in prompt
    assert "The logs are from nginx." in prompt


def test_nobody_is_asked_for_what_is_wanted_when_it_waits() -> None:
    assert not drive(JOB.model_copy(update={"fix_cycles": 0})).wanted_nothing
    waiting = runs(written())
    assert waiting.wanted(WriteHarness).source == TOOL
