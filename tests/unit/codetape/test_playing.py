"""Rules that are wrong are told apart from a kit that breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from codetape.states.job import Job
from codetape.states.workflow import AUTOCODER
from codetape.testing import check, explore, machine_for, played, seeded


def test_facts_that_are_none_are_found_and_not_raised() -> None:
    nothing: Any = None
    lost = replace(AUTOCODER, folded=lambda session, event: nothing)
    kinds = {finding.kind for finding in explore(lost, most=5, walks=2).findings}
    assert "fault" in kinds


def test_a_session_that_waits_for_nothing_is_played_until_there() -> None:
    """And what holds for all sessions says so, instead of an error of the kit."""
    idle = replace(AUTOCODER, wanted=lambda session: ())
    trace = played(seeded("any"), Job(prompt="Add."), workflow=idle)
    assert len(trace) == 1
    with pytest.raises(AssertionError, match="nothing follows in NeedsCode"):
        check(trace, idle)


@pytest.mark.filterwarnings("ignore")
def test_a_machine_that_waits_for_nothing_says_so() -> None:
    idle = replace(AUTOCODER, wanted=lambda session: ())
    few = settings(max_examples=2, database=None, deadline=None, derandomize=True)
    with pytest.raises(AssertionError, match="nothing follows in NeedsCode"):
        run_state_machine_as_test(machine_for(idle), settings=few)
