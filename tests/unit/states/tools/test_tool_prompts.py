"""What the tool maker tells models, whole: a change is seen in review.

`CODETAPE_GOLDEN=write make test ARGS="tests/unit/states/tools/test_tool_prompts.py"` writes the texts
anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from codetape.states.failures import Failure
from codetape.states.job import Job
from codetape.states.session import Rejected, Solution, Tests
from codetape.states.tools import prompts
from codetape.states.tools.personas import ARCHITECT, IMPLEMENTER, PERSONAS
from codetape.states.tools.session import Finding, ToolSession
from codetape.states.values import BuildFailure, FailureClass, LlmCall, Problem, RunOutcome
from tests.support.tools import CRASHING, DESIGN, HARNESS, QUESTION, WRONG

GOLDEN = Path(__file__).parents[3] / "data" / "tool_prompts"

JOB = Job(
    prompt=QUESTION,
    personas=PERSONAS,
    today="2026-11-30",
    context="format.txt:\nmethod path status",
    guidance=("Count with collections.Counter.",),
)
FIRST = ToolSession(id="s", job=JOB, notes=("Be quick.",))
DESIGNED = replace(FIRST, findings=(Finding("tool_architect", DESIGN),))
CRASH = Failure(
    test_id="(script)",
    problem=Problem(type="exit status 1", message="ValueError: invalid literal for int(): 'GET'"),
    label=FailureClass.LOGIC,
)
CRASHED = replace(
    DESIGNED,
    code=Solution(CRASHING),
    failures=(CRASH,),
    run=RunOutcome(exit_status=1, stdout="so far\n", stderr="Traceback …\nValueError: …\n"),
    rejected=(Rejected("nginxlog", "package", "no such package: nginxlog"),),
)
UNBUILT = replace(CRASHED, build_failure=BuildFailure(cause="conflict", message="a needs b<2"))
RUNS = replace(DESIGNED, code=Solution(WRONG))
REFUSED = replace(RUNS, refusals=("It asserts nothing.",), refused_harness="def test_logic(): pass")
FAILED = replace(
    RUNS,
    tests=Tests(HARNESS),
    failures=(
        CRASH.model_copy(
            update={
                "test_id": "test_logic",
                "problem": Problem(type="AssertionError", message="empty lines have none"),
            }
        ),
    ),
)

PROMPTS: dict[str, Callable[[], LlmCall]] = {
    "architect": lambda: prompts.persona(FIRST, ARCHITECT),
    "implementer": lambda: prompts.persona(DESIGNED, IMPLEMENTER),
    "fix_crash": lambda: prompts.fix_crash(CRASHED),
    "fix_build": lambda: prompts.fix_crash(UNBUILT),
    "harness": lambda: prompts.harness(RUNS),
    "harness_again": lambda: prompts.harness(REFUSED),
    "fix_logic": lambda: prompts.fix_logic(FAILED),
}


def whole(call: LlmCall) -> str:
    """A prompt as a text: who says what."""
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in call.messages) + "\n"


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_is_the_golden_one(name: str) -> None:
    text, file = whole(PROMPTS[name]()), GOLDEN / f"{name}.txt"
    if os.environ.get("CODETAPE_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


def test_no_golden_text_is_left_over() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(PROMPTS)


def test_the_request_is_the_same_part_in_every_prompt() -> None:
    """A tape keeps it once."""
    firsts = [make().messages[1].parts[:5] for make in PROMPTS.values()]
    assert all(parts == firsts[0] for parts in firsts)
