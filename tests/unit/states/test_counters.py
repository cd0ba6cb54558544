"""What is counted, and where a count turns: calls, prices, sandboxes that are gone."""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states import guards as g
from codetape.states.folding import folded
from codetape.states.job import Job
from codetape.states.ladder import is_given_up
from codetape.states.session import Session
from codetape.states.values import Answer, CallFailure, SandboxFailure, Usage

JOB = Job(prompt="Add.", call_retries=2, sandbox_retries=2)
BLANK = Session(id="s", job=JOB)
BUSY = CallFailure(reason="rate_limited", message="slow down", retryable=True)


def planned(cost: float | None, tokens: int | None = 5) -> e.Planned:
    usage = Usage(input_tokens=tokens, output_tokens=tokens)
    answer = Answer(text="{}", finish_reason="stop", cost=cost, usage=usage)
    return e.Planned(description="Add.", approach="One function.", answer=answer)


def test_a_price_that_is_unknown_makes_the_sum_unknown() -> None:
    session = folded(folded(BLANK, planned(0.5)), planned(None, None))
    assert (session.totals.calls, session.totals.usd, session.totals.cost) == (2, 0.5, None)
    assert (session.totals.unpriced_calls, session.totals.uncounted_calls) == (1, 1)
    assert folded(BLANK, planned(0.0)).totals.cost == 0.0


@pytest.mark.parametrize(("failures", "given_up"), [(1, False), (2, False), (3, True)])
def test_a_call_is_made_again_as_often_as_the_job_says(failures: int, given_up: bool) -> None:
    session = BLANK
    for _ in range(failures):
        session = folded(session, e.CallFailed(kind="plan", failure=BUSY))
    assert is_given_up(session) is given_up
    assert g.call_retry_left(session) is not given_up


def test_an_answer_ends_the_counting_of_failed_calls() -> None:
    session = folded(BLANK, e.CallFailed(kind="plan", failure=BUSY))
    assert session.call_failures == 1
    session = folded(session, planned(0.5))
    assert (session.call_failures, session.call_failure) == (0, None)


@pytest.mark.parametrize("missing", [True, False])
def test_a_sandbox_that_is_not_there_is_not_tried_again(missing: bool) -> None:
    failure = SandboxFailure(message="no socket", missing=missing)
    session = folded(BLANK, e.SandboxBroke(failure=failure))
    assert session.broken == 1
    assert g.sandbox_retry_left(session) is not missing
