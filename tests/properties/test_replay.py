"""Whatever happens in a session: it replays, it travels, and no change to its tape goes unseen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codetape.adapters.store.memory import MemoryStore
from codetape.engine import codec
from codetape.engine.ports import StoredEvent
from codetape.replay.export import export_tape, tape_lines
from codetape.replay.imports import import_tape, read_tape_file
from codetape.replay.reading import open_tape
from codetape.replay.replayer import OUTSIDE, replay
from codetape.replay.totals import own_totals
from codetape.states.machine import State
from codetape.states.values import canonical
from codetape.states.workflow import AUTOCODER
from tests.support.forks import forked, resumed
from tests.support.sessions import ID
from tests.unit.replay.sessions import (
    Script,
    changed,
    forged,
    played,
    scripts,
    tape_of,
    taped,
)

FEW = settings(max_examples=40)  # a session and its replay take some 15 ms


@given(scripts)
@FEW
def test_every_session_replays_and_travels(script: Script) -> None:
    store, other = MemoryStore(), MemoryStore()
    live = played(script, store)
    report = replay(store, ID, keep_going=True)
    assert (report.differences, report.events, report.ending) == ((), live.seq, live.ending)
    assert open_tape(store, ID)[-1].session == live
    with TemporaryDirectory() as folder:
        one, two = Path(folder, "one"), Path(folder, "two")
        export_tape(store, ID, one)
        import_tape(one, other)
        export_tape(other, ID, two)
        assert one.read_bytes() == two.read_bytes()
        assert read_tape_file(one) == tape_of(store)
    assert list(other.read(ID)) == list(store.read(ID))


@given(scripts, scripts, st.data())
@FEW
def test_every_session_can_be_forked_anywhere(
    script: Script, other: Script, data: st.DataObject
) -> None:
    """The fork goes on to an end of its own, whatever comes; the parent's tape stays as it is."""
    store, copy = MemoryStore(), MemoryStore()
    live = played(script, store)
    before = list(tape_lines(store, ID))
    at = data.draw(st.integers(1, live.seq - 1))
    job = data.draw(st.sampled_from([None, other.job]))
    forked(store, at, job=job)
    made = resumed(store, "fork00000001", other.answers, other.runs)
    assert made.session.done
    assert list(tape_lines(store, ID)) == before
    assert list(store.read("fork00000001"))[:at] == list(store.read(ID))[:at]
    report = replay(store, "fork00000001", keep_going=True)
    assert (report.differences, report.events) == ((), made.session.seq)
    assert made.session.own == own_totals(store, store.sessions()[-1])
    with TemporaryDirectory() as folder:
        export_tape(store, "fork00000001", Path(folder, "one"))
        import_tape(Path(folder, "one"), copy)
    lines = list(tape_lines(copy, "fork00000001"))
    assert lines == list(tape_lines(store, "fork00000001"))


# --- a tape that says something else --------------------------------------------------------------


def one_of(rows: Sequence[StoredEvent], data: st.DataObject) -> StoredEvent:
    assume(rows)
    return data.draw(st.sampled_from(rows))


@given(scripts, st.data())
@FEW
def test_another_destination_is_found_where_it_is(script: Script, data: st.DataObject) -> None:
    tape = taped(script)
    row = one_of(tape.rows, data)
    dest = data.draw(st.sampled_from([state.value for state in State if state != row.dest]))
    found = replay(changed(tape, row.seq, dest=dest), ID).differences[0]
    assert (found.seq, found.kind) == (row.seq, "destination")
    assert found.expected == f"{row.source} -> {dest}"
    assert found.found == f"{row.source} -> {row.dest}"


@given(scripts, st.data())
@FEW
def test_another_source_is_found_where_it_is(script: Script, data: st.DataObject) -> None:
    tape = taped(script)
    row = one_of(tape.rows, data)
    source = data.draw(st.sampled_from([state.value for state in State if state != row.source]))
    found = replay(changed(tape, row.seq, source=source), ID).differences[0]
    assert (found.seq, found.kind) == (row.seq, "destination")


@given(scripts, st.data())
@FEW
def test_another_request_is_found_where_it_is(script: Script, data: st.DataObject) -> None:
    tape = taped(script)
    asked = [row for row in tape.rows if row.request_key]
    row = one_of(asked, data)
    keys = {None, "0" * 64, *(other.request_key for other in asked)} - {row.request_key}
    key = data.draw(st.sampled_from(sorted(keys, key=str)))
    found = replay(changed(tape, row.seq, request_key=key), ID).differences[0]
    # Where two requests are wanted at once, the other one's key is right and its outcome is not.
    assert (found.seq, found.kind) in {(row.seq, "request"), (row.seq, "interpretation")}


@given(scripts, st.data())
@FEW
def test_a_request_where_none_was_made_is_found(script: Script, data: st.DataObject) -> None:
    tape = taped(script)
    row = one_of([row for row in tape.rows if not row.request_key], data)
    key = one_of([row for row in tape.rows if row.request_key], data).request_key
    found = replay(changed(tape, row.seq, request_key=key), ID).differences[0]
    assert (found.seq, found.kind) in {(row.seq, "request"), (row.seq, "interpretation")}


TELLING = {
    "planned": "approach",
    "code_written": "source",
    "tests_written": "source",
    "tests_patched": "source",
    "answer_rejected": "detail",
    "reclassified": "labels",
    "tests_failed": "failures",
    "repair_failed": "reason",
    "call_failed": "kind",
    "attempts_spent": "attempts",
}
"""A field of an event that is made of what came back, or of the session."""


@given(scripts, st.data())
@FEW
def test_another_interpretation_is_found_where_it_is(script: Script, data: st.DataObject) -> None:
    tape = taped(script)
    row = one_of([row for row in tape.rows if row.name in TELLING], data)
    facts = json.loads(row.data)
    field = TELLING[row.name]
    facts[field] = _another(facts[field])
    found = replay(changed(tape, row.seq, data=canonical(facts)), ID).differences[0]
    assert (found.seq, found.kind) == (row.seq, "interpretation")
    assert field in found.diff


def _another(value: Any) -> Any:
    match value:
        case int():
            return value + 1
        case [first, *_]:
            return [first, first, *value]
        case []:
            assume(False)
    return "something else"


@given(scripts, st.data())
@FEW
def test_swapped_events_are_found(script: Script, data: st.DataObject) -> None:
    """Unless either may come first: then the other order is a history too."""
    tape = taped(script)
    seq = data.draw(st.integers(1, len(tape) - 1))
    one, two = tape.rows[seq - 1 : seq + 1]
    steps = open_tape(tape, ID)
    assume(one.name != two.name)
    assume(not isinstance(steps[seq].event, OUTSIDE) or seq == 1)
    assume(not isinstance(steps[seq + 1].event, OUTSIDE))
    before = AUTOCODER.wanted(steps.session_at(seq - 1)) if seq > 1 else ()
    assume(two.request_key not in [codec.pack_request(request).key for request in before])
    rows = [*tape.rows[: seq - 1], two, one, *tape.rows[seq + 1 :]]
    assert replay(forged(tape, rows), ID).differences[0].seq == seq


ANY_NUMBER = {*(event.name for event in OUTSIDE), "call_failed", "sandbox_broke"}
"""Events of which there may be one more or one less."""


@given(scripts, st.data())
@FEW
def test_an_event_that_was_doubled_is_found(script: Script, data: st.DataObject) -> None:
    tape = taped(script)
    row = one_of([row for row in tape.rows if row.name not in ANY_NUMBER], data)
    rows = [*tape.rows[: row.seq], row, *tape.rows[row.seq :]]
    assert replay(forged(tape, rows), ID).differences[0].seq == row.seq + 1


@given(scripts, st.data())
@FEW
def test_an_event_that_was_left_out_is_found(script: Script, data: st.DataObject) -> None:
    """Unless somebody did something next: that may come at any time."""
    tape = taped(script)
    pairs = zip(tape.rows, tape.rows[1:], strict=False)
    row = one_of([one for one, two in pairs if not {one.name, two.name} & ANY_NUMBER], data)
    rows = [other for other in tape.rows if other is not row]
    assert replay(forged(tape, rows), ID).differences[0].seq == row.seq


@given(scripts, st.data())
@FEW
def test_going_on_tells_of_each_difference_once(script: Script, data: st.DataObject) -> None:
    """One wrong destination is two differences at most: there, and where the next event starts."""
    tape = taped(script)
    row = one_of(tape.rows[:-1], data)
    dest = data.draw(st.sampled_from([state.value for state in State if state != row.dest]))
    report = replay(changed(tape, row.seq, dest=dest), ID, keep_going=True)
    assert {found.seq for found in report.differences} <= {row.seq, row.seq + 1}
    assert report.events == len(tape)
