"""A tape to look at."""

from __future__ import annotations

import pytest

from codetape.adapters.store.memory import MemoryStore
from codetape.engine.ports import UnknownSession
from codetape.replay.imports import TapeFile
from codetape.replay.reading import Tape, open_tape
from codetape.states.events import CodeWritten
from codetape.states.machine import IllegalTransition
from tests.support.sessions import ID
from tests.unit.replay.sessions import changed, long_tape


@pytest.fixture(scope="module")
def tape() -> Tape:
    return open_tape(long_tape(), ID)


def test_events_are_found_by_their_number(tape: Tape) -> None:
    assert len(tape) == 20
    assert tape[6].seq == 6
    assert isinstance(tape[6].event, CodeWritten)
    assert tape[6].state == "NeedsTests"
    assert tape[-1].seq == 20
    assert tape[-20].seq == 1
    assert [step.seq for step in tape] == list(range(1, 21))


@pytest.mark.parametrize("seq", [0, 21, -21])
def test_there_are_no_other_numbers(tape: Tape, seq: int) -> None:
    with pytest.raises(IndexError, match=f"events 1 to 20, not {seq}"):
        tape[seq]


def test_the_session_after_each_event(tape: Tape) -> None:
    assert tape.session_at(0).seq == 0
    assert tape[6].session.code
    assert tape[5].session.code is None
    assert [step.session.seq for step in tape] == list(range(1, 21))
    assert [step.session.state for step in tape] == [step.state for step in tape]
    assert tape.session_at(-1).done


def test_they_show_what_they_are(tape: Tape) -> None:
    at = tape[-1].record.at
    assert repr(tape) == f"<tape {ID}: autocoder, 20 events, Done at {at}>"
    assert repr(tape[-1]) == f"<event 20 of {ID}: tests_passed, Testing -> Done, {at}>"
    assert repr(tape[5]).startswith(f"<event 5 of {ID}: noted, NeedsCode, 2025")


def test_an_event_that_is_refused_today_can_still_be_looked_at() -> None:
    file: TapeFile = long_tape()
    noted = file.rows[4]
    tape = open_tape(changed(file, 20, name="noted", data=noted.data, source="Done"), ID)
    assert tape[20].event.name == "noted"
    tape = open_tape(changed(file, 9, name="attempts_spent", data='{"attempts":1}'), ID)
    assert tape[20].event.name == "tests_passed"
    with pytest.raises(IllegalTransition):
        _ = tape[20].session


def test_no_such_tape() -> None:
    with pytest.raises(UnknownSession):
        open_tape(MemoryStore(), ID)
