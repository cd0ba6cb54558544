"""Where the reading of answers and runs differs on purpose from the system whose job this takes over.

One test for each weakness of that system; each would fail on what that system does.
"""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.values import FailureClass, RunOutcome, TestReport, Usage
from codetape.states.workflow import AUTOCODER
from tests.unit.states.driving import (
    JOB,
    RIGHT,
    WRONG,
    Driven,
    ready,
)


def test_w11_unusable_answers_count_and_a_missing_usage_is_unknown() -> None:
    driven = Driven().says("no code", usage=Usage(input_tokens=7, output_tokens=3), cost=0.25)
    assert (driven.session.totals.input_tokens, driven.session.totals.usd) == (7, 0.25)
    driven.says(WRONG, usage=Usage(), cost=None)
    assert driven.session.totals.calls == 2
    assert driven.session.totals.uncounted_calls == 1
    assert driven.session.totals.cost is None


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        (None, "stop"),
        (None, "content_filter"),
        ('{"code": "def add(a, b):\\n    ret', "length"),
        ('{"code": "def add(a, b):\\n    return a + b\\n"}', "length"),
        ('{"code": "def add(a, b:"}', "stop"),
    ],
)
def test_w24_w25_w36_what_is_no_code_is_never_built(text: str | None, finish: str) -> None:
    driven = Driven().says({}, text=text, finish_reason=finish)
    assert driven.session.code is None
    assert driven.wanted(r.WriteCode)
    driven.says({}, text=text, finish_reason=finish)
    assert (driven.session.code, driven.session.attempts) == (None, 1)
    while not driven.session.done:
        driven.says({}, text=text, finish_reason=finish)
    assert driven.session.ending is not None
    assert driven.session.ending.failure is FailureClass.MODEL


def test_w43_a_file_without_tests_is_no_test_file() -> None:
    driven = Driven().says(WRONG).says({"test_code": "def helper():\n    assert 1\n"})
    assert driven.session.tests is None
    assert driven.wanted(r.WriteTests)


def test_w27_w28_w49_failed_calls_are_made_again_and_cost_no_attempt() -> None:
    driven = Driven(JOB.model_copy(update={"plan": True}))
    for _ in range(JOB.call_retries):
        driven.call_fails()
        assert AUTOCODER.delay(driven.session, driven.wanted(r.WritePlan)) > 0
    assert driven.wanted(r.WritePlan)
    assert driven.session.attempts == 0
    assert driven.call_fails().session.ending is not None


@pytest.mark.parametrize(
    "run",
    [
        RunOutcome(exit_status=0, stdout="3 passed in 0.01s"),
        RunOutcome(exit_status=0, report=TestReport(finished=True)),
        RunOutcome(exit_status=0, report=TestReport(finished=False)),
    ],
)
def test_w29_w34_w35_an_exit_status_is_neither_a_pass_nor_a_failing_test(run: RunOutcome) -> None:
    driven = ready(JOB.model_copy(update={"sandbox_retries": 1})).runs(run)
    assert "tests_passed" not in driven.names
    assert "diagnosis" not in driven.kinds


def test_x06_x13_every_constraint_is_in_the_prompt_in_its_order() -> None:
    words = ("value is positive", "no sensor is twice there")
    driven = Driven(JOB.model_copy(update={"constraints": words}))
    assert "- value is positive\n- no sensor is twice there" in driven.prompt


def test_x07_fences_are_taken_off_wherever_they_stand() -> None:
    inner = 'def add(a, b):\n    """\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b\n'
    driven = Driven().says({"code": f"Here it is:\n```python\n{inner}```\nDone."})
    assert driven.session.code is not None
    assert driven.session.code.source == inner


def test_x14_a_cut_answer_is_cut_whatever_it_looks_like() -> None:
    driven = Driven().says(RIGHT, finish_reason="length")
    rejected = driven.events[-1]
    assert isinstance(rejected, e.AnswerRejected)
    assert rejected.reason == "truncated"
    assert "Be shorter" in driven.prompt
