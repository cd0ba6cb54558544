"""What a replay says: which event, what was expected, what was found, in words and lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codetape.adapters.store.memory import MemoryStore
from codetape.engine.ports import UnknownSession
from codetape.replay.imports import TapeFile
from codetape.replay.replayer import replay
from codetape.states import events as e
from codetape.states.machine import Machine, State
from codetape.states.requests import Request
from codetape.states.session import Session
from codetape.states.values import FailureClass, Outcome
from codetape.states.workflow import AUTOCODER
from tests.support.sessions import ID
from tests.unit.replay.sessions import Script, broken, changed, code, long_tape, played

# --- results --------------------------------------------------------------------------------------


def test_a_session_that_ended_well(tape: TapeFile) -> None:
    report = replay(tape, ID)
    assert report.identical
    assert report.ending
    assert report.ending.failure is None
    assert str(report) == f"session {ID}: identical, 20 events"


def test_a_session_that_failed_replays_all_the_same() -> None:
    store = MemoryStore()
    played(Script({"code": [code("return a")]}), store)
    report = replay(store, ID)
    assert report.identical
    assert report.ending
    assert report.ending.failure is FailureClass.MODEL


def test_a_session_without_an_end() -> None:
    """What a crash leaves."""
    tape = long_tape()
    report = replay(replace(tape, rows=tape.rows[:9]), ID)
    assert (report.identical, report.events, report.ending) == (True, 9, None)


def test_no_such_session(tape: TapeFile) -> None:
    store = MemoryStore()
    store.create("reserved", "autocoder", "", "me")
    with pytest.raises(UnknownSession):
        replay(store, "another")
    with pytest.raises(UnknownSession):
        replay(store, "reserved")


# --- rules that differ ----------------------------------------------------------------------------


def test_rules_that_ask_for_something_else(tape: TapeFile) -> None:
    rules = replace(AUTOCODER, wanted=lambda s: AUTOCODER.wanted(replace(s, plan=("", ""))))
    (found,) = replay(tape, ID, [rules]).differences
    assert (found.seq, found.kind) == (3, "request")
    assert found.reason == "the tape has write_plan; today's rules have write_code"


def test_rules_that_no_longer_need_to_ask(tape: TapeFile) -> None:
    def settle(s: Session) -> e.Event | None:
        if s.state is State.DIAGNOSING:
            return e.Diagnosed(by="evidence", failures=s.failures)
        return AUTOCODER.settle(s)

    (found,) = replay(tape, ID, [replace(AUTOCODER, settle=settle)]).differences
    assert (found.seq, found.kind, found.expected) == (12, "request", "diagnose")
    assert found.found == "diagnosed, which follows by itself"


def test_rules_that_now_ask(tape: TapeFile) -> None:
    (found,) = replay(tape, ID, [replace(AUTOCODER, settle=lambda _: None)]).differences
    assert (found.seq, found.kind) == (13, "request")
    assert found.expected == "reclassified, which follows by itself"
    assert found.found == "nothing"


def test_something_else_follows_by_itself(tape: TapeFile) -> None:
    def settle(s: Session) -> e.Event | None:
        return AUTOCODER.settle(s) and e.RepairFailed(reason="")

    (found,) = replay(tape, ID, [replace(AUTOCODER, settle=settle)]).differences
    assert (found.seq, found.kind) == (13, "request")
    assert found.found == "repair_failed, which follows by itself"


def test_a_parser_that_reads_something_else(tape: TapeFile) -> None:
    def interpret(request: Request, outcome: Outcome) -> e.Event:
        event = AUTOCODER.interpret(request, outcome)
        if isinstance(event, e.CodeWritten):
            return event.model_copy(update={"packages": ("numpy", "pandas")})
        return event

    (found,) = replay(tape, ID, [replace(AUTOCODER, interpret=interpret)]).differences
    assert found.reason == "code_written differs in 1 line: packages"
    assert (found.expected, found.found) == (
        '{"packages":["numpy"]}',
        '{"packages":["numpy","pandas"]}',
    )
    assert '+packages[]: "pandas"' in found.diff


def test_a_parser_that_makes_another_event_of_it(tape: TapeFile) -> None:
    def interpret(request: Request, outcome: Outcome) -> e.Event:
        event = AUTOCODER.interpret(request, outcome)
        return e.TestsPassed(run=event.run) if isinstance(event, e.TestsFailed) else event

    (found,) = replay(tape, ID, [replace(AUTOCODER, interpret=interpret)]).differences
    assert (found.seq, found.kind) == (11, "interpretation")
    assert (found.expected, found.found) == ("tests_failed", "tests_passed")


def test_events_of_equal_fields_are_not_the_same_event(tape: TapeFile) -> None:
    def interpret(request: Request, outcome: Outcome) -> e.Event:
        event = AUTOCODER.interpret(request, outcome)
        return e.SandboxReady(image=event.image) if isinstance(event, e.ImageBuilt) else event

    (found,) = replay(tape, ID, [replace(AUTOCODER, interpret=interpret)]).differences
    assert (found.expected, found.found) == ("image_built", "sandbox_ready")


def test_a_table_that_leads_elsewhere(tape: TapeFile) -> None:
    table = [
        replace(row, dest=State.DONE) if row.event == "image_built" and not row.guards else row
        for row in AUTOCODER.machine.table
    ]
    rules = replace(AUTOCODER, machine=Machine(table))
    (found,) = replay(tape, ID, [rules]).differences
    assert (found.seq, found.kind) == (9, "destination")
    assert (found.expected, found.found) == ("NeedsRebuild -> Testing", "NeedsRebuild -> Done")
    assert replay(tape, ID, [rules], keep_going=True).events == 20


def test_a_table_that_refuses_an_event(tape: TapeFile) -> None:
    table = [row for row in AUTOCODER.machine.table if row.event != "noted"]
    rules = replace(AUTOCODER, machine=Machine(table))
    report = replay(tape, ID, [rules], keep_going=True)
    assert [(found.seq, found.kind) for found in report.differences] == [
        (5, "refused"),
        (10, "refused"),
    ]
    assert report.differences[0].expected == "noted in NeedsCode"
    assert "code_written" in report.differences[0].found
    assert report.ending


@pytest.mark.parametrize(
    ("part", "seq", "kind"),
    [
        ("settle", 2, "request"),
        ("wanted", 2, "request"),
        ("interpret", 2, "interpretation"),
        ("folded", 1, "refused"),
    ],
)
def test_rules_that_break_are_reported_with_the_event(
    tape: TapeFile, part: str, seq: int, kind: str
) -> None:
    changes: dict[str, Any] = {part: broken}
    rules = replace(AUTOCODER, **changes)
    (found,) = replay(tape, ID, [rules]).differences
    assert (found.seq, found.kind) == (seq, kind)
    assert "break at" in found.reason
    assert found.found == "AssertionError: not thought of"


def test_where_the_rules_cannot_fold_going_on_ends(tape: TapeFile) -> None:
    report = replay(tape, ID, [replace(AUTOCODER, folded=broken)], keep_going=True)
    assert (len(report.differences), report.events) == (1, 0)


def test_a_session_is_opened_once(tape: TapeFile) -> None:
    opened = tape.rows[0]
    again = changed(tape, 4, name=opened.name, data=opened.data, request_key=None)
    assert replay(again, ID).differences[0].seq == 4


def test_an_answered_request_has_an_outcome(tape: TapeFile) -> None:
    noted = tape.rows[4]
    (found,) = replay(changed(tape, 4, name="noted", data=noted.data), ID).differences[:1]
    assert (found.seq, found.kind, found.found) == (4, "interpretation", "none")
