"""Where each guard turns: the numbers and causes, said once more."""

from __future__ import annotations

from typing import Any

import pytest

from codetape.states import guards as g
from codetape.states.job import Job
from codetape.states.session import Rejected, Repair, Session
from codetape.states.values import BuildFailure

JOB = Job(prompt="Add.", sandbox_retries=2)


def session(**facts: Any) -> Session:
    return Session(**{"id": "s", "job": JOB, **facts})


@pytest.mark.parametrize(("rounds", "left"), [(0, True), (2, True), (3, False), (4, False)])
def test_a_repair_is_asked_for_three_times(rounds: int, left: bool) -> None:
    for of, unproven in (("code", g.fix_unproven), ("tests", g.patch_unproven)):
        repair = Repair(of, rounds=rounds, verdict="missing")  # type: ignore[arg-type]
        assert unproven(session(repair=repair)) is left
    assert g.rounds_left(session(repair=repair)) is left


@pytest.mark.parametrize(("count", "spent"), [(9, False), (10, True), (12, True)])
def test_ten_packages_that_do_not_exist_are_too_many(count: int, spent: bool) -> None:
    rejected = tuple(Rejected(f"p{n}", "package", "no") for n in range(count))
    assert g.rejections_spent(session(rejected=rejected)) is spent


@pytest.mark.parametrize(("count", "left"), [(0, True), (1, True), (2, False)])
def test_an_answer_is_repaired_once(count: int, left: bool) -> None:
    assert g.answer_repair_left(session(rejections=count)) is left


BLAME = {
    "conflict": (True, True),
    "unknown_package": (True, True),
    "unknown_system_package": (True, True),
    "command": (True, True),
    "download": (False, True),
    "other": (False, True),
    "disk": (False, False),
    "timeout": (False, False),
}


@pytest.mark.parametrize("cause", BLAME)
def test_causes_of_a_failed_build(cause: str) -> None:
    """Who is to blame, and whether it may pass by itself."""
    failure = BuildFailure.model_validate({"cause": cause, "message": "no"})
    failed = session(build_failure=failure)
    assert (g.code_asks_too_much(failed), g.build_may_pass(failed)) == BLAME[cause]


def test_tests_that_nobody_wants_are_not_missing() -> None:
    skipped = JOB.model_copy(update={"skip_tests": True})
    assert g.tests_missing(session())
    assert not g.tests_missing(session(job=skipped))
    assert g.tests_skipped(session(job=skipped))
