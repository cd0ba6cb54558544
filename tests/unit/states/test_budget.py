"""A budget is checked with the most that the next call might take."""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states.budget import input_tokens, worst_cost
from codetape.states.job import Budget, Job, Price
from codetape.states.requests import ModelRequest
from codetape.states.values import LlmCall, Usage
from codetape.states.workflow import AUTOCODER
from tests.unit.states.driving import JOB, TESTS, WRONG, Driven

PRICES = {"scripted": Price(input=1e-6, output=1e-3, output_limit=1000)}


def job(**facts: object) -> Job:
    return JOB.model_copy(update={"prices": PRICES, **facts})


def call(job_: Job) -> LlmCall:
    (request, *_) = AUTOCODER.wanted(Driven(job_).session)
    assert isinstance(request, ModelRequest)
    return request.call


def test_a_call_that_might_cost_more_than_is_left_is_not_made() -> None:
    driven = Driven(job(budget=Budget(usd=1.2))).says(WRONG, cost=0.5)  # the next may cost 1.00
    spent = driven.events[-1]
    assert isinstance(spent, e.BudgetSpent)
    assert (spent.limit, spent.spent) == ("usd", 0.5)
    assert 1.0 < spent.next < 1.01
    assert "0.5 spent, up to 1.0" in (driven.session.paused or "")


def test_a_limit_of_the_call_makes_it_cheaper() -> None:
    cheap = job(budget=Budget(usd=1.2), parameters={"max_tokens": 100})
    assert worst_cost(cheap, call(cheap)) < 0.2
    assert Driven(cheap).says(WRONG, cost=0.5).session.paused is None


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_tokens_count_the_prompt_and_the_longest_answer(name: str) -> None:
    limited = job(parameters={name: 300})
    least = input_tokens(call(limited)) + 300
    enough = limited.model_copy(update={"budget": Budget(tokens=least)})
    short = limited.model_copy(update={"budget": Budget(tokens=least - 1)})
    assert Driven(enough).session.paused is None
    assert Driven(short).names[-1] == "budget_spent"


def test_calls_that_are_made_side_by_side_are_counted_together() -> None:
    driven = Driven(job(budget=Budget(calls=2)))
    assert driven.says(WRONG).says(TESTS).session.totals.calls == 2


@pytest.mark.parametrize("limit", ["usd", "tokens"])
def test_an_answer_that_was_not_counted_is_taken_for_as_much_as_the_next_may_be(limit: str) -> None:
    budget = {"usd": Budget(usd=2.1), "tokens": Budget(tokens=4000)}[limit]  # of 1.00 and 1,509
    driven = Driven(job(budget=budget)).says(WRONG, usage=Usage(), cost=None)
    assert driven.session.paused is None
    spent = driven.says("no tests", usage=Usage(), cost=None).events[-1]
    assert isinstance(spent, e.BudgetSpent)
    assert spent.limit == limit


def test_where_nothing_is_known_of_a_call_only_what_is_spent_counts() -> None:
    unknown = JOB.model_copy(update={"budget": Budget(usd=0.6)})
    driven = Driven(unknown).says(WRONG, cost=0.5)
    assert driven.session.paused is None
    assert driven.says(TESTS, cost=0.5).builds().session.totals.usd == 1.0


def test_no_call_is_given_longer_than_the_whole_budget_of_time() -> None:
    assert call(job(budget=Budget(seconds=30.0))).seconds == 30.0
    assert call(job()).seconds == JOB.call_seconds
