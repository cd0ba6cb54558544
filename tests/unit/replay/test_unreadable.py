"""A replay of what cannot be read: damage, newer versions, rules that are not here."""

from __future__ import annotations

from dataclasses import replace

from codetape.adapters.store.memory import MemoryStore
from codetape.engine import codec
from codetape.replay.imports import TapeFile
from codetape.replay.reading import open_tape
from codetape.replay.replayer import replay
from codetape.states.workflow import AUTOCODER
from tests.support.sessions import ID
from tests.unit.replay.sessions import Script, broken, changed, code, played


def test_f17_an_event_of_a_newer_version_is_named(tape: TapeFile) -> None:
    for fields in ({"name": "dreamt"}, {"version": 2}):
        report = replay(changed(tape, 7, **fields), ID, keep_going=True)
        (found,) = report.differences
        assert (found.seq, found.kind) == (7, "unreadable")
        assert found.event == fields.get("name", "call_failed")
        assert report.events == 6


def test_a_payload_that_does_not_fit_is_named(tape: TapeFile) -> None:
    (found,) = replay(changed(tape, 7, data='{"kind":1}'), ID).differences
    assert (found.seq, found.event, found.kind) == (7, "call_failed", "unreadable")


def test_a_damaged_tape_says_where() -> None:
    store = MemoryStore()
    played(Script({"code": [code("return a")]}), store)
    del store._tapes[ID][1]
    report = replay(store, ID)
    assert (report.differences[0].seq, report.differences[0].kind) == (2, "unreadable")
    assert report.events == 1


def test_a_text_that_is_gone_is_damage(tape: TapeFile) -> None:
    kept = dict(tape.blobs)
    needed = codec.pack_event(open_tape(tape, ID)[6].event).blobs
    for name in needed:
        del kept[name]
    (found,) = replay(replace(tape, blobs=kept), ID).differences
    assert (found.seq, found.kind) == (6, "unreadable")
    assert "is gone" in found.reason


def test_rules_that_are_not_here(tape: TapeFile) -> None:
    opened = open_tape(tape, ID)[1].event
    for other, words in (
        ({"rules": 2}, "a newer version of codetape"),
        ({"workflow": "nobodys"}, "no such workflow"),
    ):
        data = codec.pack_event(opened.model_copy(update=other)).text
        report = replay(changed(tape, 1, data=data), ID)
        assert (report.differences[0].seq, report.rules) == (1, None)
        assert words in report.differences[0].reason


def test_a_tape_is_read_with_its_own_rules_or_the_newest(tape: TapeFile) -> None:
    later = replace(AUTOCODER, rules=3, settle=broken)
    assert replay(tape, ID, [later, AUTOCODER]).rules == 1
    assert replay(tape, ID, [later, replace(later, rules=2)]).rules == 3


def test_a_tape_that_does_not_begin(tape: TapeFile) -> None:
    noted = tape.rows[4]
    (found,) = replay(changed(tape, 1, name="noted", data=noted.data), ID).differences
    assert found.reason == "a tape begins with session_opened, not noted"
