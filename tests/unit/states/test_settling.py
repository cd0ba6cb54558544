"""What follows without asking anyone, and how long to wait before asking again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.job import Budget, Job
from codetape.states.machine import State
from codetape.states.session import Session
from codetape.states.values import CallFailure, FailureClass, Problem
from codetape.states.wanting import LONGEST_ASKED, LONGEST_DELAY, delay
from codetape.states.workflow import AUTOCODER
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


def job(**facts: object) -> Job:
    return JOB.model_copy(update=facts)


# --- the happy path and what it costs -------------------------------------------------------------


def test_the_happy_path_is_two_calls_and_three_with_a_plan() -> None:
    driven = ready().passes()
    assert driven.kinds == ["code", "tests"]
    assert driven.session.ending is not None
    assert (driven.session.ending.failure, driven.session.attempts) == (None, 1)
    planned = Driven(job(plan=True)).says({"description": "d", "approach": "Use addition."})
    assert "Use addition." in planned.prompt
    assert planned.says(RIGHT).says(TESTS).kinds == ["plan", "code", "tests"]


def test_a_logic_repair_costs_two_calls_where_the_fix_names_its_text() -> None:
    fix = "Replace `a - b` with `a + b`"
    driven = ready().fails(test_a="assert 4 == 3").says(diagnosis(finding("test_a", "logic", fix)))
    driven.says(RIGHT).passes()
    assert driven.kinds == ["code", "tests", "diagnosis", "code"]


def test_a_fix_in_words_is_read_by_a_model() -> None:
    said = diagnosis(finding("test_a", "logic", "Add them."))
    driven = ready().fails(test_a="assert 4 == 3").says(said).says(RIGHT)
    assert driven.wanted(r.VerifyCode).fixes == ("Add them.",)
    driven.says({"all_fixes_applied": True}).passes()
    assert driven.kinds == ["code", "tests", "diagnosis", "code", "verify_code"]


def test_code_that_stayed_as_it_was_needs_no_reader() -> None:
    said = diagnosis(finding("test_a", "logic", "Add them."))
    driven = ready().fails(test_a="assert 4 == 3").says(said).says(WRONG)
    assert driven.wanted(r.WriteCode)
    assert "left these out. Make every one of them.\n- Add them." in driven.prompt


def test_what_a_reader_misses_is_asked_for_again() -> None:
    said = diagnosis(finding("test_a", "logic", "Add them."), finding("test_b", "logic", "Sort."))
    driven = ready().fails(test_a="assert 4 == 3", test_b="x").says(said).says(CODES[1])
    driven.says({"all_fixes_applied": False, "missing_fixes": ["Sort."]})
    assert driven.wanted(r.WriteCode)
    assert driven.prompt.count("- Sort.") == 1
    assert "- Add them." not in driven.prompt


def test_evidence_is_diagnosed_without_a_call() -> None:
    driven = ready().fails({"test_a": Problem(type="MemoryError", message="")})
    assert driven.names[-3:] == ["tests_failed", "diagnosed", "reclassified"]
    assert driven.state is State.NEEDS_CODE
    (diagnosed,) = [event for event in driven.events if isinstance(event, e.Diagnosed)]
    assert (diagnosed.by, diagnosed.answer) == ("evidence", None)


def test_one_open_failure_among_proven_ones_is_asked_about() -> None:
    memory = Problem(type="MemoryError", message="")
    driven = ready().fails({"test_a": memory}, test_b="assert 1 == 0")
    assert driven.state is State.DIAGNOSING
    assert [f.test_id for f in driven.wanted(r.Diagnose).failures] == ["test_a", "test_b"]


# --- attempts -------------------------------------------------------------------------------------


def test_nothing_is_asked_when_no_attempt_is_left() -> None:
    driven = ready(job(max_iterations=1)).fails(test_a="assert 4 == 3")
    assert driven.state is State.DONE
    assert driven.kinds == ["code", "tests"]
    assert driven.session.ending is not None
    assert "test_a (AssertionError: assert 4 == 3)" in driven.session.ending.reason
    assert driven.session.run is not None  # the last output is there for the result


def test_the_last_attempt_is_used() -> None:
    driven = ready(job(max_iterations=2)).fails(test_a="assert 4 == 3")
    driven.says(diagnosis(finding("test_a"))).says(CODES[1]).fails(test_a="assert 5 == 3")
    assert driven.session.attempts == 2
    assert driven.names[-1] == "attempts_spent"


def test_a_failed_build_is_an_attempt() -> None:
    driven = Driven(job(max_iterations=1)).says(WRONG).says(TESTS).build_fails("conflict")
    assert driven.session.ending is not None
    assert driven.session.ending.failure is FailureClass.ENVIRONMENT
    assert "conflict!" in driven.session.ending.reason


def test_the_build_that_failed_is_not_made_again_and_the_next_prompt_says_why() -> None:
    driven = Driven().says(WRONG).says(TESTS).build_fails("conflict")
    assert "conflict!" in driven.prompt
    driven.says(CODES[1])  # other code with the same needs
    assert driven.names[-1] == "repair_failed"
    assert driven.state is State.NEEDS_CODE
    assert "conflict!" in driven.prompt


def test_needs_that_failed_long_ago_end_an_attempt_each_time() -> None:
    """Another image was built and ran meanwhile; that the first one cannot be had is still known."""
    yaml = {"code": "import yaml\n\n\ndef add(a, b):\n    return 1\n"}
    driven = Driven().says(WRONG).says(TESTS).build_fails("conflict").says(yaml).builds()
    driven.fails(test_a="assert 1 == 3").says(diagnosis(finding("test_a"))).says(CODES[1])
    assert driven.names[-1] == "repair_failed"
    assert driven.session.attempts == 3
    assert "conflict!" in driven.prompt
    while not driven.session.done:
        driven.says(CODES[2])
    assert driven.session.attempts == JOB.max_iterations


def test_a_build_that_succeeds_ends_the_talk_of_the_one_that_failed() -> None:
    driven = Driven().says(WRONG).says(TESTS).build_fails("conflict")
    driven.says({"code": "import yaml\n\n\ndef add(a, b):\n    return 1\n"}).builds()
    driven.fails(test_a="assert 1 == 3").says(diagnosis(finding("test_a")))
    assert "conflict!" not in driven.prompt


def test_a_run_on_the_image_that_was_there_ends_the_talk_too() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(diagnosis(finding("test_a")))
    driven.says({"code": "import yaml\n\n\ndef add(a, b):\n    return 1\n"}).build_fails("conflict")
    driven.says(CODES[1]).fails(test_a="assert 5 == 3").says(diagnosis(finding("test_a")))
    assert driven.wanted(r.PatchTests)
    driven.says({"patches": []}).says({"patches": []}).says({"patches": []})
    assert "conflict!" not in driven.prompt


# --- budgets and pauses ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(calls=1), "calls"),
        (Budget(tokens=11), "tokens"),
        (Budget(usd=0.5), "usd"),
        (Budget(seconds=2.0), "seconds"),
        (Budget(calls=0), "calls"),
        (Budget(usd=0.0), "usd"),
    ],
)
def test_a_spent_budget_pauses_before_the_next_call(budget: Budget, limit: str) -> None:
    driven = Driven(job(budget=budget))
    if driven.session.paused is None:
        driven.says(WRONG, seconds=2.0)
    spent = driven.events[-1]
    assert isinstance(spent, e.BudgetSpent)
    assert spent.limit == limit
    assert limit.rstrip("s") in (driven.session.paused or "")
    assert AUTOCODER.wanted(driven.session) == ()


def test_a_spent_budget_stops_no_build_and_no_run() -> None:
    driven = Driven(job(budget=Budget(calls=2))).says(WRONG).says(TESTS).builds().passes()
    assert driven.state is State.DONE


def test_a_larger_budget_goes_on_and_the_same_one_pauses_again() -> None:
    driven = Driven(job(budget=Budget(calls=1))).says(WRONG)
    driven.happens(e.Resumed())
    assert isinstance(driven.events[-1], e.BudgetSpent)
    driven.happens(e.Resumed(budget=Budget(calls=2)))
    assert driven.session.paused is None
    assert driven.says(TESTS).state is State.NEEDS_REBUILD


def test_a_pause_wants_nothing_and_ends_where_it_began() -> None:
    driven = ready()
    before = AUTOCODER.wanted(driven.session)
    driven.happens(e.Paused(by="an operator"))
    assert driven.session.paused == "paused by an operator"
    assert AUTOCODER.wanted(driven.session) == ()
    driven.happens(e.Resumed())
    assert AUTOCODER.wanted(driven.session) == before


def test_a_note_is_part_of_the_request_from_then_on() -> None:
    """Code, tests and diagnosis have to follow the same request, or they disagree."""
    note = "The unit is kelvin."
    driven = Driven().happens(e.Noted(text=note))
    assert note in driven.prompt
    assert note in driven.says(WRONG).prompt
    assert note in driven.says(TESTS).builds().fails(test_a="assert 4 == 3").prompt
    assert note in driven.says(diagnosis(finding("test_a", "test_error"))).prompt


# --- calls and answers ----------------------------------------------------------------------------


def test_a_failed_call_is_made_again_and_changes_nothing_that_is_asked() -> None:
    driven = Driven()
    asked = driven.wanted(r.WriteCode)
    driven.call_fails()
    assert driven.wanted(r.WriteCode) == asked


def test_calls_that_fail_too_often_end_the_session() -> None:
    driven = Driven(job(call_retries=2)).call_fails().call_fails()
    assert driven.state is State.NEEDS_CODE
    driven.call_fails()
    assert driven.session.ending is not None
    assert driven.session.ending.failure is FailureClass.MODEL


def test_an_answer_between_them_begins_the_count_anew() -> None:
    driven = Driven(job(call_retries=1)).call_fails().says("no code").call_fails().says(RIGHT)
    assert driven.call_fails().state is State.NEEDS_TESTS


def test_what_no_retry_can_help_is_not_tried_again() -> None:
    driven = Driven().call_fails("auth", retryable=False)
    assert driven.state is State.DONE


def test_a_bad_answer_is_shown_once_with_its_fault_and_the_second_one_costs_an_attempt() -> None:
    driven = Driven(job(max_iterations=1)).says('{"code": "def add(:"}')
    assert "code: it does not parse" in driven.prompt
    assert '{"code": "def add(:"}' in driven.prompt
    driven.says('{"code": 1}')
    assert driven.session.ending is not None
    assert driven.session.ending.failure is FailureClass.MODEL
    assert "code" in driven.session.ending.reason
    assert driven.session.totals.calls == 2


def test_a_good_answer_is_no_longer_blamed() -> None:
    driven = Driven().says("no code").says(WRONG)
    assert "cannot be used" not in driven.prompt
    driven.says(TESTS).builds().fails(test_a="assert 4 == 3").says(diagnosis(finding("test_a")))
    assert "cannot be used" not in driven.prompt
    driven.says("no code again")  # the first of its row
    assert "no code again" in driven.prompt


def test_a_sandbox_may_break_so_often_in_a_row_and_a_run_begins_the_count_anew() -> None:
    driven = ready(job(sandbox_retries=2)).breaks().breaks().fails(test_a="assert 4 == 3")
    driven.says(diagnosis(finding("test_a"))).says(CODES[1]).breaks().breaks()
    assert driven.state is State.TESTING
    assert driven.breaks().names[-1] == "sandbox_broke"
    assert driven.session.done


# --- waiting --------------------------------------------------------------------------------------


def failing(times: int, seed: int = 0, seq: int = 3, after: float | None = None) -> Session:
    failure = CallFailure(reason="rate_limited", message="429", retryable=True, retry_after=after)
    session = Session(id="s", seq=seq, job=job(seed=seed))
    return replace(session, call_failures=times, call_failure=failure)


def waiting(session: Session) -> float:
    """The seconds before the next call to a model."""
    return delay(session, Driven().wanted(r.WriteCode))


def test_nothing_waits_before_the_first_call() -> None:
    assert waiting(Session(id="s")) == 0.0
    assert waiting(Driven().call_fails().says(RIGHT).session) == 0.0


@given(st.integers(1, 5000), st.integers(), st.integers(0, 10**6))
def test_waits_double_up_to_the_longest_with_a_jitter_of_a_quarter(
    times: int, seed: int, seq: int
) -> None:
    longest = min(2.0 ** min(times - 1, 20), LONGEST_DELAY)
    waits = waiting(failing(times, seed, seq))
    assert 0.75 * longest <= waits <= longest
    assert waits == waiting(failing(times, seed, seq))


def test_sessions_and_seeds_wait_differently() -> None:
    assert len({waiting(failing(4, seed)) for seed in range(20)}) > 10
    assert len({waiting(failing(4, seq=seq)) for seq in range(20)}) > 10


@pytest.mark.parametrize("after", [0.5, 90.0])
def test_what_the_provider_asks_for_is_waited(after: float) -> None:
    assert waiting(failing(3, after=after)) == after


def test_a_provider_can_make_nobody_wait_for_ever_nor_ask_without_a_pause() -> None:
    assert waiting(failing(1, after=1e9)) == LONGEST_ASKED
    assert waiting(failing(3, after=0.0)) == waiting(failing(3))
