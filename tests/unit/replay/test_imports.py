"""Tapes that come back: whole and unchanged, or refused at the first bad event."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from codetape.adapters.store.memory import MemoryStore
from codetape.engine.chain import chained
from codetape.engine.ports import SessionOwned, UnknownSession
from codetape.replay.export import export_tape
from codetape.replay.imports import BadTapeFile, OtherContent, TapeFile, import_tape, read_tape_file
from codetape.replay.replayer import replay
from codetape.states.values import canonical
from tests.support.sessions import ID
from tests.unit.replay.sessions import changed


def test_an_imported_session_is_like_any_other(file: Path, tape: TapeFile) -> None:
    store = MemoryStore()
    assert import_tape(file, store) == tape
    (row,) = store.sessions()
    assert (row.id, row.workflow, row.name, row.state, row.seq, row.owner) == (
        ID,
        "autocoder",
        "auto-coder",
        "Done",
        20,
        None,
    )
    assert replay(store, ID).identical


def test_importing_again_changes_nothing(file: Path, tape: TapeFile) -> None:
    store = MemoryStore()
    import_tape(file, store)
    import_tape(file, store)
    assert tuple(store.read(ID)) == tape.rows


def test_an_import_that_was_cut_off_is_completed(file: Path, tape: TapeFile) -> None:
    for done in (0, 7):
        store = MemoryStore()
        lease = store.create(ID, "autocoder", "", "me")
        for row in tape.rows[:done]:
            store.append(lease, row, {})
        with pytest.raises(SessionOwned):
            import_tape(file, store)
        store.release(lease)
        import_tape(file, store)
        assert tuple(store.read(ID)) == tape.rows


def test_a_session_with_other_content_is_left_alone(
    file: Path, tape: TapeFile, tmp_path: Path
) -> None:
    store = MemoryStore()
    import_tape(file, store)
    other = tmp_path / "other"
    for forgery, seq in (
        (changed(tape, 5, at="2999-01-31T12:00:00.000000+00:00"), 5),
        (_shorter(tape), 20),
    ):
        export_tape(forgery, ID, other)
        with pytest.raises(OtherContent, match=f"another event {seq}") as caught:
            import_tape(other, store)
        assert (caught.value.session, caught.value.seq) == (ID, seq)
        assert tuple(store.read(ID)) == tape.rows


def _shorter(tape: TapeFile) -> TapeFile:
    return replace(tape, rows=tape.rows[:-1])


def test_a_bad_file_leaves_no_trace(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])
    store = MemoryStore()
    with pytest.raises(BadTapeFile):
        import_tape(file, store)
    with pytest.raises(UnknownSession):
        store.read(ID)


def test_an_event_of_a_newer_version_travels_unread(tape: TapeFile, tmp_path: Path) -> None:
    newer = changed(tape, 5, name="dreamt")
    export_tape(newer, ID, tmp_path / "newer")
    assert read_tape_file(tmp_path / "newer").rows == newer.rows


# --- refusals -------------------------------------------------------------------------------------


def edited(file: Path, line: int, **fields: JsonValue) -> str:
    """Change fields of one line (from 0), in canonical form, and return what reading says."""
    lines = file.read_text().split("\n")
    lines[line] = canonical({**json.loads(lines[line]), **fields})
    file.write_text("\n".join(lines))
    return refusal(file)


def refusal(file: Path) -> str:
    with pytest.raises(BadTapeFile) as caught:
        read_tape_file(file)
    assert caught.value.path == file
    return str(caught.value).removeprefix(f"{file}, ")


@pytest.mark.parametrize("field", ["format", "encoding"])
def test_a_newer_file_is_refused_as_that(file: Path, field: str) -> None:
    assert edited(file, 0, **{field: 2}).endswith("a newer version of codetape wrote this file")


@pytest.mark.parametrize(
    "fields", [{"rules": 2}, {"workflow": "w"}, {"more": 1}, {"format": True}, {"format": 0}]
)
def test_a_header_fits_its_tape(file: Path, fields: dict[str, JsonValue]) -> None:
    assert "the header does not fit" in edited(file, 0, **fields)


@pytest.mark.parametrize("field", ["codetape", "encoding", "format", "session", "workflow"])
def test_a_header_names_its_tape(file: Path, field: str) -> None:
    assert "its first line is no header" in edited(file, 0, **{field: None})
    assert "its first line is no header" in edited(file, 0, **{field: []})


def test_another_session_is_seen_in_the_chain(file: Path) -> None:
    assert edited(file, 0, session="other").startswith("line 2, event 1: its hash does not fit")


def test_another_field_is_seen(file: Path) -> None:
    assert "event 1: it does not have the fields of an event" in edited(file, 1, more=1)


def test_a_missing_field_is_seen(file: Path) -> None:
    lines = file.read_text().split("\n")
    facts = json.loads(lines[1])
    del facts["at"]
    lines[1] = canonical(facts)
    file.write_text("\n".join(lines))
    assert refusal(file) == "line 2, event 1: it does not have the fields of an event"


@pytest.mark.parametrize("data", [None, [], "text", 1])
def test_data_is_an_object(file: Path, data: JsonValue) -> None:
    assert "event 1: it does not have the fields" in edited(file, 1, data=data)


def test_other_data_are_seen_in_the_chain(file: Path) -> None:
    assert "event 1: its hash does not fit" in edited(file, 1, data={"rules": 1})


@pytest.mark.parametrize(
    "line", ["", "[]", "null", "{}", '{"blob":1,"text":""}', "[" * 100_000, "1e999", "\ud800"]
)
def test_any_line_is_refused_in_words(file: Path, line: str) -> None:
    lines = file.read_text().split("\n")
    lines[1] = line
    file.write_bytes("\n".join(lines).encode(errors="surrogatepass"))
    assert refusal(file).startswith("line 2, event 1: this line is")


@pytest.mark.parametrize("content", [b"", b"\x00" * 99, b"SQLite format 3\x00", b"[]\n", b"{}\n"])
def test_what_is_no_tape_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "no").write_bytes(content)
    assert refusal(tmp_path / "no").startswith("line 1, event 1: ")


def test_forged_types_are_refused(tape: TapeFile, tmp_path: Path) -> None:
    """Also where somebody made the chain fit."""
    for forgery in (
        changed(tape, 5, at=5),
        changed(tape, 5, version=True),
        changed(tape, 5, name=None),
    ):
        export_tape(forgery, ID, tmp_path / "forged")
        assert "event 5: " in refusal(tmp_path / "forged")


def test_a_blob_that_no_event_needs_is_refused(file: Path) -> None:
    name = hashlib.sha256(b"body").hexdigest()
    lines = file.read_text().split("\n")
    lines.insert(-2, canonical({"blob": name, "text": "body"}))
    file.write_text("\n".join(lines))
    assert "the end line does not fit" in refusal(file)


def test_a_blob_that_is_known_already_is_refused(file: Path) -> None:
    """Also where the next event needs it once more."""
    lines = file.read_text().split("\n")
    code = next(line for line in lines if "step_0" in line)
    use = max(n for n, line in enumerate(lines) if json.loads(code)["blob"] in line)
    assert use > lines.index(code) + 2
    lines.insert(use, code)
    file.write_text("\n".join(lines))
    assert "is here a second time" in refusal(file)


def test_events_without_a_number_between_them_are_refused(tape: TapeFile, tmp_path: Path) -> None:
    """Also where somebody made the chain fit."""
    last, gap = tape.rows[3], replace(tape.rows[4], seq=6)
    rows = (*tape.rows[:4], replace(gap, hash=chained(last.hash, gap)))
    export_tape(replace(tape, rows=rows), ID, tmp_path / "forged")
    assert "event 5: event 6 stands in its place" in refusal(tmp_path / "forged")


def test_another_end_is_refused(file: Path) -> None:
    assert "the end line does not fit" in edited(file, -2, end=19)
    assert "the end line does not fit" in edited(file, -2, end=True)


def test_a_header_alone_is_no_tape(file: Path) -> None:
    lines = file.read_text().split("\n")
    file.write_text(f'{lines[0]}\n{{"end":0,"head":"{"0" * 64}"}}\n')
    assert "the tape has no event" in refusal(file)
