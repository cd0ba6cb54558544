"""The machine itself: whose moves meet nobody else's, and whose states a tape may keep."""

from __future__ import annotations

import copy
import threading

import pytest

from codetape.states import events as e
from codetape.states.machine import IllegalTransition, Machine, Row, State
from codetape.states.workflow import AUTOCODER
from tests.unit.states.driving import Driven


def test_states_are_words_that_a_tape_keeps() -> None:
    assert [state.value for state in State] == [
        "NeedsCode", "NeedsTests", "NeedsRebuild", "Testing", "Diagnosing", "Reclassify", "Done",
    ]  # fmt: skip


def test_two_threads_in_the_middle_of_a_move_do_not_meet() -> None:
    """Both are inside a guard of the same machine at once, and each arrives where it was going."""
    inside = threading.Barrier(2, timeout=30)

    def meets(_: object) -> bool:
        inside.wait()
        return True

    machine = Machine(
        [
            Row("go", State.NEEDS_CODE, State.TESTING, (meets,)),
            Row("go", State.NEEDS_CODE, State.NEEDS_CODE),
            Row("go", State.TESTING, State.DONE, (meets,)),
            Row("go", State.TESTING, State.TESTING),
        ]
    )
    arrived: dict[State, State] = {}

    def drive(source: State) -> None:
        arrived[source] = machine.next_state("s", source, "go", None)

    threads = [threading.Thread(target=drive, args=[s]) for s in (State.NEEDS_CODE, State.TESTING)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert arrived == {State.NEEDS_CODE: State.TESTING, State.TESTING: State.DONE}


def test_a_fault_in_a_guard_is_a_fault_and_not_a_refusal() -> None:
    def broken(_: object) -> bool:
        raise KeyError("no such fact")

    machine = Machine(
        [Row("go", State.TESTING, State.DONE, (broken,)), Row("go", State.TESTING, State.TESTING)]
    )
    with pytest.raises(KeyError, match="no such fact"):
        machine.next_state("s", State.TESTING, "go", None)


def test_an_unknown_event_is_refused_with_its_facts() -> None:
    machine = Machine([Row("go", State.TESTING, State.DONE)])
    with pytest.raises(IllegalTransition) as refused:
        machine.next_state("s", State.TESTING, "fly", None)
    facts = (refused.value.session, refused.value.state, refused.value.event)
    assert facts == ("s", State.TESTING, "fly")


def test_guards_hold_together_and_rows_are_tried_from_the_top() -> None:
    def yes(_: object) -> bool:
        return True

    def is_even(number: object) -> bool:
        return isinstance(number, int) and number % 2 == 0

    machine = Machine(
        [
            Row("go", State.TESTING, State.DONE, (yes, is_even)),
            Row("go", State.TESTING, State.NEEDS_CODE, (yes,)),
            Row("go", State.TESTING, State.TESTING),
        ]
    )
    assert machine.next_state("s", State.TESTING, "go", 2) is State.DONE
    assert machine.next_state("s", State.TESTING, "go", 3) is State.NEEDS_CODE


def test_a_session_carries_no_machine() -> None:
    """It is a value: a copy of it is the same session, in any process."""
    session = Driven().session
    twin = copy.deepcopy(session)
    assert twin == session
    noted = e.Noted(text="x")
    assert AUTOCODER.advance(twin, noted) == AUTOCODER.advance(session, noted)
