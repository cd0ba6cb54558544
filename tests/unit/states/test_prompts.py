"""Each prompt, whole, against a golden text, so that a change is seen in review.

`CODETAPE_GOLDEN=write make test ARGS="tests/unit/states/test_prompts.py"` writes the texts anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from codetape.states import prompts
from codetape.states.constraints import Check
from codetape.states.failures import SCRIPT, Failure
from codetape.states.job import Column, Job, Sample
from codetape.states.session import Rejected, Repair, Session, Solution, Tests
from codetape.states.values import BuildFailure, Declared, FailureClass, Frame, LlmCall, Problem

GOLDEN = Path(__file__).parents[2] / "data" / "prompts"

JOB = Job(
    prompt="Report the mean of each sensor and count the readings above the threshold.",
    system_prompt="You work for a building's caretaker.",
    schema_text="sensor: text, value: degrees Celsius",
    constraints=("value is between -50 and 60", "a sensor is never read twice at once"),
    inputs=(Declared(name="readings", type="File"), Declared(name="threshold", type="float")),
    outputs=(Declared(name="report", type="File"), Declared(name="total", type="int")),
    samples=(
        Sample(
            name="readings",
            path="/home/somebody/readings.csv",
            file="readings.csv",
            description="A table of 3 rows and 2 columns.\n- sensor: str\n- value: float",
            columns=(
                Column(name="sensor", type="str", nullable=False),
                Column(name="value", type="float", nullable=True),
            ),
        ),
    ),
)
CODE = 'def mean(values):\n    """```a fence```"""\n    return sum(values) / 3\n'
TESTS = "from solution import mean\n\n\ndef test_mean():\n    assert mean([1, 2]) == 1.5\n"
WRONG = Failure(
    test_id="test_mean",
    problem=Problem(
        type="AssertionError",
        message="assert 1.0 == 1.5",
        frames=(Frame(place="tests", file="test_solution.py", line=5, function="test_mean"),),
    ),
    captured="computing …",
    label=FailureClass.LOGIC,
    root_cause="The sum is divided by a constant.",
    expected="1.5",
    actual="1.0",
    fix="Replace `/ 3` with `/ len(values)`",
)
TAUGHT = JOB.model_copy(
    update={
        "guidance": (
            "A person wants this avoided: reading all of the file at once",
            "KeyError in mean: 'sensor'. It was repaired by:\n  -    row['a']\n  +    row['b']",
        )
    }
)
RUNNING = JOB.model_copy(update={"script_runs": True})
ON_SAMPLES = RUNNING.model_copy(update={"inputs": JOB.inputs[:1]})
UNFIT = Failure(
    test_id=SCRIPT,
    problem=Problem(type="OutputUnfit", message="output total is no int: 'twelve'"),
    captured="computing …",
    label=FailureClass.LOGIC,
    because="the tests passed, but the script has to run as well",
)
FIRST = Session(
    id="s",
    job=JOB,
    checks=(
        Check(constraint=JOB.constraints[0], column="value", kind="between", arguments=(-50, 60)),
    ),
)
PLANNED = replace(FIRST, plan=("Two functions.", "Read, group, count."))
WRITTEN = replace(PLANNED, code=Solution(CODE))
FAILED = replace(
    WRITTEN,
    tests=Tests(TESTS),
    failures=(WRONG,),
    history=("after attempt 1: the code, for test_mean (AssertionError: assert 0 == 1.5)",),
    attempts=2,
)
AT_FAULT = replace(FAILED, failures=(WRONG.model_copy(update={"label": FailureClass.TEST_ERROR}),))
BUILD = BuildFailure(cause="conflict", message="a needs b<2", log="line one\nline two")
REJECTED = Rejected("sklern", "package", "no such package: sklern")
MISSING = Repair("code", rounds=1, verdict="missing", missing=(WRONG.fix,))
REFUSED = Repair("tests", rounds=2, verdict="refused", missing=("test_mean: it asserts less",))

PROMPTS: dict[str, Callable[[], LlmCall]] = {
    "parse_constraint": lambda: prompts.parse_constraint(FIRST, JOB.constraints[0], ("value",)),
    "plan": lambda: prompts.plan(FIRST),
    "code": lambda: prompts.code(PLANNED),
    "code_with_a_note": lambda: prompts.code(replace(PLANNED, notes=("Use no loops.",))),
    "code_repair": lambda: prompts.code(FAILED),
    "code_insistence": lambda: prompts.code(replace(FAILED, repair=MISSING)),
    "code_after_build": lambda: prompts.code(
        replace(WRITTEN, build_failure=BUILD, rejected=(REJECTED,))
    ),
    "code_answer_repair": lambda: prompts.code(
        replace(
            PLANNED,
            rejections=1,
            rejected_kind="code",
            rejection="truncated: the answer was cut at the limit of its length",
            rejected_text='{"code": "import',
        )
    ),
    "code_with_guidance": lambda: prompts.code(replace(PLANNED, job=TAUGHT)),
    "tests": lambda: prompts.tests(WRITTEN),
    "tests_before_script": lambda: prompts.tests(replace(WRITTEN, job=ON_SAMPLES)),
    "tests_start_script": lambda: prompts.tests(replace(WRITTEN, job=RUNNING)),
    "code_repair_of_script": lambda: prompts.code(
        replace(FAILED, job=RUNNING, failures=(UNFIT,), history=())
    ),
    "tests_again": lambda: prompts.tests(AT_FAULT),
    "diagnosis": lambda: prompts.diagnosis(FAILED),
    "patch_tests": lambda: prompts.patch_tests(AT_FAULT),
    "patch_tests_insistence": lambda: prompts.patch_tests(replace(AT_FAULT, repair=REFUSED)),
    "verify_code": lambda: prompts.verify_code(FAILED, (WRONG.fix,)),
    "verify_tests": lambda: prompts.verify_tests(FAILED, (WRONG.fix,)),
    "replace_package": lambda: prompts.replace_package(WRITTEN, REJECTED),
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


def test_no_path_of_the_host_is_in_a_prompt() -> None:
    assert not any("/home/somebody" in whole(make()) for make in PROMPTS.values())


def test_what_recurs_is_the_same_part() -> None:
    """Parts that are equal are stored once: the request, the data, the plan, the code."""
    code, tests = prompts.code(WRITTEN).messages[1].parts, prompts.tests(WRITTEN).messages[1].parts
    assert set(code[:-1]) == set(tests[:-1])


def test_a_long_text_is_cut_in_the_middle_by_lines() -> None:
    log = "".join(f"line {n}\n" for n in range(5000))
    failure = BUILD.model_copy(update={"log": log})
    text = whole(prompts.code(replace(WRITTEN, build_failure=failure)))
    assert len(text) < 20_000
    assert "line 1\n" in text
    assert "line 4999" in text
    assert "characters left out" in text
    cut = [line for line in text.split("\n") if line.startswith("line ")]
    assert all(line.removeprefix("line ").isdigit() or line == "line one" for line in cut)


def test_of_many_failures_the_first_are_told_and_the_others_named() -> None:
    many = tuple(WRONG.model_copy(update={"test_id": f"test_p[{n}]"}) for n in range(500))
    text = whole(prompts.diagnosis(replace(FAILED, failures=many)))
    assert text.count("assert 1.0 == 1.5") == prompts.MOST_FINDINGS
    assert all(failure.test_id in text for failure in many)


def test_code_with_fences_is_fenced_by_longer_ones() -> None:
    assert "````python\n" + CODE + "````" in whole(prompts.code(WRITTEN))


def test_prompts_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from tests.unit.states.test_prompts import PROMPTS, whole\n"
        "import hashlib\n"
        "print(hashlib.sha256(''.join(whole(m()) for m in PROMPTS.values()).encode()).hexdigest())"
    )
    root = Path(__file__).parents[3]
    made = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(made) == 1
