"""A tape that can be shown to others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from codetape.adapters.sandbox.fake import failed
from codetape.adapters.store.memory import MemoryStore
from codetape.replay.export import export_tape
from codetape.replay.imports import BadTapeFile, Redacted, put_tape, read_tape_file
from codetape.replay.reading import Step, open_tape
from codetape.replay.redact import redacted
from codetape.replay.replayer import replay
from codetape.replay.verify import verify
from codetape.states import events, job, values
from codetape.states.failures import Failure
from tests.support.forks import forked
from tests.support.sessions import ID
from tests.unit.replay.sessions import LONG, Script, played, scripts

CANARY = "canary-4711"
SECRETIVE = replace(
    LONG,
    job=LONG.job.model_copy(
        update={
            "prompt": f"Add {CANARY}.",
            "schema_text": CANARY * 300,
            "system_prompt": CANARY,
            "constraints": (CANARY,),
            "name": CANARY,
            "environment": {"REGION": CANARY, CANARY: "1"},
            "parameters": {"user": CANARY, "stop": [CANARY], "bias": {CANARY: 1}},
            "samples": (
                job.Sample(name=CANARY, path=f"/{CANARY}", file=CANARY, description=CANARY),
            ),
        }
    ),
    posts={4: events.Noted(text=CANARY)},
)


def test_nothing_of_prompts_and_data_is_left(tmp_path: Path) -> None:
    store = MemoryStore()
    played(SECRETIVE, store)
    assert CANARY in str(list(store.read(ID)))
    file = tmp_path / "shown"
    export_tape(redacted(store, ID), ID, file, redacted=True)
    text = file.read_text()
    for word in (CANARY, "a + b", "test_one", "assert", "numbers", "Replace"):
        assert word not in text, word
    assert "numpy" in text  # packages are structure


@pytest.mark.parametrize("field", ["type", "module"])
def test_a_text_in_the_place_of_a_name_is_none(field: str) -> None:
    """What a package or an exception is called is decided by code that nobody has read."""
    for text, stays in (("pandas.errors.ParserError", True), (f"the patient is {CANARY}", False)):
        problem = values.Problem.model_validate({"type": "KeyError", "message": "", field: text})
        store = MemoryStore()
        played(replace(SECRETIVE, runs=[failed({"test_one": problem})]), store)
        told = str(list(store.read(ID)))
        shown = redacted(store, ID)
        assert text in told
        assert (text in str([row.data for row in shown.rows])) is stays


@given(scripts)
@settings(max_examples=25)
def test_the_structure_stays(script: Script) -> None:
    store = MemoryStore()
    live = played(script, store)
    tape, bare = open_tape(store, ID), open_tape(redacted(store, ID), ID)
    told = [(s.event.name, s.record.source, s.state, s.record.at) for s in tape]
    assert [(s.event.name, s.record.source, s.state, s.record.at) for s in bare] == told
    assert [s.request_name for s in bare] == [s.request_name for s in tape]
    last = bare.session_at(-1)
    assert (last.totals, last.attempts, last.state) == (live.totals, live.attempts, live.state)
    assert list(map(_labels, bare)) == list(map(_labels, tape))


def _labels(step: Step) -> list[str]:
    """The labels that an event tells; whom the rules blame for it then, they read from its texts."""
    one = getattr(step.event, "failure", None)
    failures = getattr(step.event, "failures", ()) or filter(None, [one])
    return [failure.label for failure in failures if isinstance(failure, Failure)]


def test_equal_texts_stay_equal_and_others_differ() -> None:
    store = MemoryStore()
    played(LONG, store)
    source = redacted(store, ID)
    codes = [s.session.code for s in open_tape(source, ID) if s.event.name == "code_written"]
    assert len({code.source for code in codes if code}) == 3
    last = open_tape(source, ID)[-1].session
    assert last.code == codes[-1]


def test_it_is_marked_and_good_for_nothing_else(tmp_path: Path) -> None:
    store = MemoryStore()
    played(LONG, store)
    file = tmp_path / "shown"
    export_tape(redacted(store, ID), ID, file, redacted=True)
    tape = read_tape_file(file)
    assert tape.redacted
    report = replay(tape, ID)
    assert not report.identical
    assert "it is redacted" in str(report)
    assert verify(tape, ID).fault is None
    with pytest.raises(Redacted, match="look at the file itself"):
        put_tape(tape, MemoryStore())
    file.write_text(file.read_text().replace('"redacted":true', '"redacted":false', 1))
    with pytest.raises(BadTapeFile, match="the header does not fit"):
        read_tape_file(file)


def test_a_fork_is_one_tape_of_its_own() -> None:
    store = MemoryStore()
    played(LONG, store)
    forked(store, 12)
    tape = redacted(store, "fork00000001")
    assert {row.session for row in tape.rows} == {"fork00000001"}
    assert len(tape) == 13
