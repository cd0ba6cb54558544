"""A person reads how a session ended and knows what to do."""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.ending import ending
from codetape.states.values import BuildFailure, FailureClass, RunOutcome
from tests.unit.states.driving import (
    CODES,
    JOB,
    RIGHT,
    TESTS,
    WRONG,
    Driven,
    diagnosis,
    finding,
    ready,
)


def attempts(most: int, skip_tests: bool = False) -> Driven:
    return Driven(JOB.model_copy(update={"max_iterations": most, "skip_tests": skip_tests}))


def ended(driven: Driven) -> tuple[FailureClass | None, str]:
    assert driven.session.ending is not None
    return driven.session.ending.failure, driven.session.ending.reason


def test_a_pass() -> None:
    assert ended(ready().passes()) == (None, "the tests passed")


def test_an_image_without_tests() -> None:
    driven = attempts(1, skip_tests=True).says(RIGHT).builds()
    assert ended(driven) == (None, "the image is built; tests were not asked for")


def test_attempts_that_are_spent_name_the_first_line_of_each_failure() -> None:
    driven = attempts(1).says(WRONG).says(TESTS).builds()
    driven.fails(test_a="assert 4 == 3\n  where 4 = add(1, 2)", test_b="x" * 999)
    failure, reason = ended(driven)
    assert failure is FailureClass.UNKNOWN
    assert reason == (
        "one attempt is spent. Last: test_a (AssertionError: assert 4 == 3); "
        f"test_b (AssertionError: {'x' * 200})"
    )


def test_attempts_that_are_spent_have_the_class_that_all_their_failures_have() -> None:
    driven = attempts(2).says(WRONG).says(TESTS).builds().fails(test_a="assert 4 == 3")
    driven.says(diagnosis(finding("test_a"))).says(CODES[1]).runs(RunOutcome(timed_out=True))
    failure, reason = ended(driven)
    assert failure is FailureClass.RESOURCE
    assert reason.startswith("all 2 attempts are spent. Last: (collection) (TimeLimit: ")


def test_an_image_that_could_not_be_built() -> None:
    blamed = attempts(1).says(WRONG).says(TESTS).build_fails("conflict")
    failure, reason = ended(blamed)
    assert failure is FailureClass.ENVIRONMENT
    assert reason == "one attempt is spent. Last: the image could not be built, conflict!"
    hopeless = Driven().says(WRONG).build_fails("disk")
    failure, reason = ended(hopeless)
    assert (failure, reason) == (
        FailureClass.INFRASTRUCTURE,
        "the image could not be built: disk!",
    )


def test_packages_that_do_not_exist_are_named() -> None:
    names = [f"nosuch{n}" for n in range(10)]
    driven = Driven().says({**WRONG, "packages": names}).says(TESTS)
    failure, reason = ended(driven.build_fails("unknown_package", *names))
    assert failure is FailureClass.ENVIRONMENT
    assert all(name in reason for name in names)


def test_a_model_that_gives_no_answer() -> None:
    driven = Driven().call_fails("auth", retryable=False)
    assert ended(driven) == (FailureClass.MODEL, "the model gave no answer: 503")


def test_a_model_whose_answers_cannot_be_used() -> None:
    driven = Driven(JOB.model_copy(update={"max_iterations": 1})).says("no").says("never")
    last = "the code answer could not be used: the answer is not JSON"
    reason = f"one attempt is spent. Last: {last}"
    assert ended(driven) == (FailureClass.MODEL, reason)


@pytest.mark.parametrize("missing", [True, False])
def test_a_sandbox_that_broke(missing: bool) -> None:
    driven = ready().breaks(missing)
    assert ended(driven) == (FailureClass.INFRASTRUCTURE, "the socket is closed")


def test_a_missing_sandbox_ends_it_before_anything_is_paid() -> None:
    driven = Driven(checked=False)
    driven.brings(driven.wanted(r.CheckSandbox), BuildFailure(cause="other", message="no podman"))
    assert ended(driven) == (FailureClass.INFRASTRUCTURE, "no podman")
    assert driven.kinds == []


def test_somebody_who_ends_it() -> None:
    driven = ready().happens(e.Cancelled(by="an operator"))
    assert ended(driven) == (FailureClass.CANCELLED, "cancelled by an operator")


@pytest.mark.parametrize("event", [e.Noted(text="x"), e.Paused(by="x")])
def test_an_end_that_nobody_has_words_for_has_a_name(event: e.Event) -> None:
    found = ending(Driven().session, event)
    assert (found.failure, found.reason) == (FailureClass.UNKNOWN, f"ended by {event.name}")
