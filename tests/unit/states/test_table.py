"""The table of the auto-coder: every row is walked, and what it does not accept changes nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any, cast

import pytest

from codetape.states import autocoder, guards
from codetape.states import events as e
from codetape.states.autocoder import ALIVE, ASKING, MACHINE, TABLE
from codetape.states.failures import Failure
from codetape.states.job import Job
from codetape.states.machine import BadTable, IllegalTransition, Machine, Row, State
from codetape.states.session import Rejected, Repair, Session, Solution, Tests
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    FailureClass,
    ImageRef,
    Problem,
)
from codetape.states.weak_tests import WEAK
from codetape.states.workflow import AUTOCODER

JOB = Job(prompt="Add.", sandbox_retries=1)
SKIPPING = Job(prompt="Add.", skip_tests=True)
CODE = Solution("x = 1\n")
TESTS = Tests("def test_x():\n    assert 1\n")
NEW = Session(id="s", job=JOB)
WRITTEN = replace(NEW, code=CODE)
TESTED = replace(WRITTEN, tests=TESTS)
STALE = replace(TESTED, image=ImageRef(ref="old", spec_key="another"))
READY = replace(TESTED, image=ImageRef(ref="img", spec_key=TESTED.spec.key))
SKIPPED = replace(WRITTEN, job=SKIPPING)
SKIPPED = replace(SKIPPED, image=ImageRef(ref="img", spec_key=SKIPPED.spec.key))


def failing(label: FailureClass, facts: Session = READY) -> Session:
    problem = Problem(type="AssertionError", message="assert 1 == 2")
    return replace(facts, failures=(Failure(test_id="test_x", problem=problem, label=label),))


def weak(label: FailureClass) -> Session:
    problem = Problem(type=WEAK, message="the test checks no result")
    return replace(READY, failures=(Failure(test_id="test_x", problem=problem, label=label),))


def repairing(of: Any, verdict: Any, rounds: int = 1, facts: Session = READY) -> Session:
    return replace(facts, repair=Repair(of, rounds=rounds, verdict=verdict))


def built(cause: str) -> Session:
    failure = BuildFailure.model_validate({"cause": cause, "message": "no"})
    return replace(TESTED, build_failure=failure)


def rejected(facts: Session, patched: tuple[str, ...] = (), test: str = "test_x") -> Session:
    """Test `test` is to be repaired, and the second answer in a row was unusable."""
    failures = (failing(TEST).failures[0].model_copy(update={"test_id": test}),)
    repair = Repair("tests", patched=patched)
    return replace(facts, failures=failures, repair=repair, rejections=2)


def called(retryable: bool, times: int = 1) -> Session:
    failure = CallFailure(reason="other", message="no", retryable=retryable)
    return replace(READY, call_failure=failure, call_failures=times)


WEAK_LEFT = weak(FailureClass.TEST_ERROR).failures
SPENT = Repair("tests", rounds=guards.ROUNDS, verdict="refused", patched=("test_x",))
MANY = tuple(Rejected(f"p{n}", "package", "no") for n in range(guards.REJECTIONS))
LOGIC, TEST, ENV = FailureClass.LOGIC, FailureClass.TEST_ERROR, FailureClass.ENVIRONMENT
CODE_S, TESTS_S, REBUILD = State.NEEDS_CODE, State.NEEDS_TESTS, State.NEEDS_REBUILD
TESTING, DIAGNOSING, RECLASSIFY = State.TESTING, State.DIAGNOSING, State.RECLASSIFY
DONE = State.DONE

Walk = tuple[str, State, Session, State]

WALKS: list[Walk] = [
    *((name, CODE_S, NEW, CODE_S) for name in ("session_opened", "sandbox_ready")),
    *((name, CODE_S, NEW, CODE_S) for name in ("constraint_parsed", "planned")),
    ("code_written", CODE_S, repairing("code", "unproven"), CODE_S),
    ("code_written", CODE_S, repairing("code", "missing", 2), CODE_S),
    ("code_written", CODE_S, WRITTEN, TESTS_S),
    ("code_written", CODE_S, STALE, REBUILD),
    ("code_written", CODE_S, READY, TESTING),
    ("code_written", CODE_S, repairing("code", "missing", guards.ROUNDS), TESTING),
    ("fixes_verified", CODE_S, repairing("code", "missing", 1), CODE_S),
    ("fixes_verified", CODE_S, repairing("code", "applied", facts=STALE), REBUILD),
    ("fixes_verified", CODE_S, repairing("code", "applied"), TESTING),
    ("tests_written", TESTS_S, TESTED, REBUILD),
    ("tests_written", TESTS_S, READY, TESTING),
    *(
        walk
        for name in ("tests_patched", "patches_verified")
        for walk in (
            (name, TESTS_S, repairing("tests", "missing", 1), TESTS_S),
            (name, TESTS_S, repairing("tests", "applied", facts=STALE), REBUILD),
            (name, TESTS_S, repairing("tests", "applied"), TESTING),
        )
    ),
    ("patch_refused", TESTS_S, repairing("tests", "refused", 1), TESTS_S),
    ("patch_refused", TESTS_S, repairing("tests", "refused", 1, weak(TEST)), TESTING),
    ("patch_refused", TESTS_S, repairing("tests", "refused", guards.ROUNDS), RECLASSIFY),
    (
        "patch_refused",
        TESTS_S,
        replace(STALE, repair=SPENT),
        REBUILD,
    ),
    (
        "patch_refused",
        TESTS_S,
        replace(READY, repair=SPENT),
        TESTING,
    ),
    ("image_built", TESTS_S, WRITTEN, TESTS_S),
    ("image_built", REBUILD, SKIPPED, DONE),
    ("image_built", REBUILD, READY, TESTING),
    ("image_built", REBUILD, WRITTEN, TESTS_S),
    ("package_rejected", TESTS_S, replace(WRITTEN, rejected=MANY), DONE),
    ("package_rejected", REBUILD, replace(TESTED, rejected=MANY), DONE),
    ("package_rejected", TESTS_S, replace(WRITTEN, rejected=MANY[:1]), TESTS_S),
    ("package_rejected", REBUILD, replace(TESTED, rejected=MANY[:1]), REBUILD),
    ("package_replaced", REBUILD, TESTED, REBUILD),
    ("packages_held", TESTS_S, WRITTEN, TESTS_S),
    ("packages_held", REBUILD, TESTED, REBUILD),
    *(("build_failed", state, built("conflict"), CODE_S) for state in (TESTS_S, REBUILD)),
    *(("build_failed", state, built("download"), state) for state in (TESTS_S, REBUILD)),
    *(("build_failed", state, built("disk"), DONE) for state in (TESTS_S, REBUILD)),
    ("tests_passed", TESTING, READY, DONE),
    ("tests_failed", TESTING, failing(LOGIC), DIAGNOSING),
    ("script_failed", TESTING, failing(LOGIC), DIAGNOSING),
    ("tests_not_collected", TESTING, replace(failing(TEST), comes_back=True), RECLASSIFY),
    ("tests_not_collected", TESTING, failing(TEST), TESTS_S),
    ("tests_not_collected", TESTING, failing(ENV, STALE), REBUILD),
    ("tests_not_collected", TESTING, failing(ENV), CODE_S),
    ("tests_not_collected", TESTING, failing(LOGIC), CODE_S),
    ("repair_failed", TESTING, READY, RECLASSIFY),
    ("repair_failed", REBUILD, built("conflict"), CODE_S),
    ("diagnosed", DIAGNOSING, failing(LOGIC), RECLASSIFY),
    ("reclassified", RECLASSIFY, failing(FailureClass.STUCK), DONE),
    ("reclassified", RECLASSIFY, weak(TEST), TESTS_S),
    ("reclassified", RECLASSIFY, failing(TEST), TESTS_S),
    ("reclassified", RECLASSIFY, failing(LOGIC), CODE_S),
    ("reclassified", RECLASSIFY, failing(FailureClass.RESOURCE), CODE_S),
    ("reclassified", RECLASSIFY, failing(ENV, STALE), REBUILD),
    *(
        walk
        for state in (CODE_S, TESTS_S, REBUILD, TESTING)
        for walk in (
            ("sandbox_broke", state, replace(READY, broken=1), state),
            ("sandbox_broke", state, replace(READY, broken=2), DONE),
            ("sandbox_broke", state, replace(READY, broken=1, sandbox_missing=True), DONE),
        )
    ),
    *(
        ("answer_rejected", state, replace(READY, rejections=1), state)
        for state in (CODE_S, TESTS_S, DIAGNOSING)
    ),
    ("answer_rejected", CODE_S, replace(READY, rejections=2), CODE_S),
    ("answer_rejected", TESTS_S, replace(WRITTEN, rejections=2), TESTS_S),
    ("answer_rejected", TESTS_S, rejected(READY, test="test_y"), TESTS_S),
    ("answer_rejected", TESTS_S, rejected(READY), RECLASSIFY),
    ("answer_rejected", TESTS_S, rejected(STALE, ("test_z",)), RECLASSIFY),
    ("answer_rejected", DIAGNOSING, replace(READY, rejections=2), RECLASSIFY),
    ("answer_rejected", TESTS_S, replace(weak(TEST), rejections=1), TESTING),
    ("call_failed", TESTS_S, replace(called(retryable=False), failures=WEAK_LEFT), TESTING),
    *(("call_failed", state, called(retryable=True), state) for state in ASKING),
    *(("call_failed", state, called(retryable=False), DONE) for state in ASKING),
    *(("call_failed", state, called(retryable=True, times=6), DONE) for state in ASKING),
    *(("attempts_spent", state, READY, DONE) for state in ASKING),
    *(("cancelled", state, READY, DONE) for state in ALIVE),
    *(("budget_spent", state, READY, state) for state in ASKING),
    *(
        (name, state, READY, state)
        for name in ("paused", "resumed", "noted", "forked")
        for state in ALIVE
    ),
    *(("resumed", state, replace(READY, crashes=4), state) for state in ALIVE),
    *(("resumed", state, replace(READY, crashes=5), DONE) for state in ALIVE),
]


@pytest.mark.parametrize(("event", "source", "facts", "dest"), WALKS)
def test_a_walk_leads_where_the_row_says(
    event: str, source: State, facts: Session, dest: State
) -> None:
    assert MACHINE.next_state("s", source, event, facts) is dest


def taken(event: str, source: State, facts: Session) -> Row:
    """The first row whose guards hold: the one that the machine takes."""
    rows = (row for row in TABLE if row.event == event and source in row.sources)
    return next(row for row in rows if all(guard(facts) for guard in row.guards))


def test_every_row_is_walked_from_every_source() -> None:
    walked = {(taken(event, source, facts), source) for event, source, facts, _ in WALKS}
    assert walked == {(row, source) for row in TABLE for source in row.sources}


def test_every_guard_that_is_there_is_used_and_named() -> None:
    used = {name for row in TABLE for name in row.guard_names}
    public = {
        name
        for name, value in vars(guards).items()
        if callable(value) and not name.startswith("_") and value.__module__ == guards.__name__
    }
    assert used == public


def test_table_events_and_states_agree() -> None:
    assert {row.event for row in TABLE} == {event.name for event in e.EVENTS}
    assert {source for row in TABLE for source in row.sources} == set(State) - {DONE}
    assert {row.dest for row in TABLE} == set(State)
    assert set(ALIVE) == set(State) - {DONE}


REFUSED = [
    (state, event.name)
    for state in State
    for event in e.EVENTS
    if event.name not in MACHINE.accepts(state)
]


@pytest.mark.parametrize(("state", "event"), REFUSED)
def test_what_the_table_does_not_accept_is_refused_with_its_facts(state: State, event: str) -> None:
    with pytest.raises(IllegalTransition) as caught:
        MACHINE.next_state("s", state, event, READY)
    assert (caught.value.session, caught.value.state, caught.value.event) == ("s", state, event)
    assert event in str(caught.value)
    # and the machine still works: nothing of the refusal is left in it
    assert MACHINE.next_state("s", TESTING, "tests_passed", READY) is DONE


def test_a_refused_event_changes_nothing() -> None:
    session = replace(READY, state=State.TESTING, seq=7)
    before = replace(session)
    planned = e.Planned(description="d", approach="a", answer=Answer(text="x"))
    with pytest.raises(IllegalTransition):
        AUTOCODER.advance(session, planned)
    assert session == before


def test_a14_nothing_leaves_done() -> None:
    assert MACHINE.accepts(DONE) == ()


def test_a_guard_that_fails_leaves_the_machine_as_it_was() -> None:
    def broken(_: object) -> bool:
        raise ZeroDivisionError

    machine = Machine([Row("go", CODE_S, DONE, (broken,)), Row("go", CODE_S, TESTS_S)])
    with pytest.raises(ZeroDivisionError):
        machine.next_state("s", CODE_S, "go", READY)
    other = Machine([Row("go", CODE_S, TESTS_S)])
    assert other.next_state("s", CODE_S, "go", READY) is TESTS_S


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([Row("go", DONE, CODE_S)], "Done is the end"),
        ([Row("go", CODE_S, DONE, (guards.code_due,))], "must have no guard"),
        ([Row("go", CODE_S, DONE), Row("go", CODE_S, TESTS_S)], "after the one without guards"),
        ([Row("go", cast(Any, "Foo"), DONE)], "'Foo' is no State"),
        ([Row("go", CODE_S, cast(Any, "Foo"))], "'Foo' is no State"),
        ([Row("go", CODE_S, DONE, cast(Any, guards.code_due))], r"go: guards are a tuple"),
        ([Row("go", CODE_S, DONE, cast(Any, ("code_due",)))], "'code_due' is no function"),
    ],
)
def test_a_table_that_breaks_the_rules_is_refused(rows: list[Row], words: str) -> None:
    with pytest.raises(BadTable, match=words):
        Machine(rows)


def test_two_machines_and_many_threads_do_not_meet() -> None:
    """No state at class level, and none that threads share."""
    wrong: list[State] = []

    def drive(event: str, source: State, facts: Session, dest: State) -> None:
        for _ in range(200):
            found = MACHINE.next_state("s", source, event, facts)
            if found is not dest:
                wrong.append(found)

    threads = [threading.Thread(target=drive, args=walk) for walk in WALKS[:16]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_library_is_seen_by_nobody_else() -> None:
    assert not any(
        type(value).__module__.startswith("transitions") for value in vars(autocoder).values()
    )
    assert not any(
        type(value).__module__.startswith("transitions") for value in vars(MACHINE).values()
    )
