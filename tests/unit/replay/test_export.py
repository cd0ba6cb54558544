"""Tapes that travel: one file, one form, refused if anything in it was touched."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.ports import DamagedTape, SessionOwned, UnknownSession
from codetape.replay.export import export_tape, tape_lines
from codetape.replay.imports import BadTapeFile, OtherContent, TapeFile, import_tape, read_tape_file
from codetape.replay.replayer import replay
from codetape.states.values import canonical
from tests.support.sessions import ID
from tests.unit.replay.sessions import LONG, changed, long_tape, played


@pytest.fixture(scope="module")
def tape() -> TapeFile:
    return long_tape()


@pytest.fixture
def file(tape: TapeFile, tmp_path: Path) -> Path:
    export_tape(tape, ID, tmp_path / "some.tape.jsonl")
    return tmp_path / "some.tape.jsonl"


# --- export ---------------------------------------------------------------------------------------

DIGEST = """
import hashlib
from codetape.replay.export import tape_lines
from tests.unit.replay.sessions import ID, long_tape
print(hashlib.sha256("\\n".join(tape_lines(long_tape(), ID)).encode()).hexdigest())
"""


def test_the_same_script_clock_and_ids_give_the_same_bytes() -> None:
    text = "\n".join(tape_lines(long_tape(), ID))
    assert text == "\n".join(tape_lines(long_tape(), ID))
    root = Path(__file__).parents[3]
    for seed in ("0", "1"):
        other = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        assert other.stdout.strip() == hashlib.sha256(text.encode()).hexdigest()


def test_a_file_from_sqlite_is_the_same(tape: TapeFile, file: Path, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    played(LONG, store)
    export_tape(store, ID, tmp_path / "other")
    store.close()
    assert (tmp_path / "other").read_bytes() == file.read_bytes()


def test_a_file_says_what_it_is_and_needs_nothing_else(file: Path, tape: TapeFile) -> None:
    lines = file.read_text().splitlines()
    assert lines[0].startswith('{"codetape":"tape"')
    assert json.loads(lines[-1]) == {"end": 20, "head": tape.rows[-1].hash}
    blobs = [json.loads(line)["blob"] for line in lines if line.startswith('{"blob"')]
    assert len(set(blobs)) == len(blobs) == len(tape.blobs)
    assert replay(read_tape_file(file), ID).identical


def test_only_the_owner_may_read_a_file(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_damaged_tape_leaves_the_older_file(tape: TapeFile, file: Path) -> None:
    before = file.read_bytes()
    kept = {name: body for name, body in tape.blobs.items() if len(body) < 3000}
    with pytest.raises(DamagedTape, match="is gone"):
        export_tape(replace(tape, blobs=kept), ID, file)
    assert file.read_bytes() == before
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("data", ['{"text": "a"}', '{"text":"a"', '{"text":NaN}'])
def test_data_that_is_in_no_canonical_form_is_damage(tape: TapeFile, data: str) -> None:
    with pytest.raises(DamagedTape, match="event 5"):
        list(tape_lines(changed(tape, 5, data=data), ID))


def test_what_does_not_begin_is_no_tape(tape: TapeFile) -> None:
    with pytest.raises(DamagedTape, match="begins with session_opened"):
        list(tape_lines(replace(tape, rows=tape.rows[1:]), ID))
    with pytest.raises(UnknownSession):
        list(tape_lines(replace(tape, rows=()), ID))


# --- import ---------------------------------------------------------------------------------------


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
    for forgery, seq in ((changed(tape, 5, at="later"), 5), (_shorter(tape), 20)):
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


def test_another_end_is_refused(file: Path) -> None:
    assert "the end line does not fit" in edited(file, -2, end=19)
    assert "the end line does not fit" in edited(file, -2, end=True)


def test_a_header_alone_is_no_tape(file: Path) -> None:
    lines = file.read_text().split("\n")
    file.write_text(f'{lines[0]}\n{{"end":0,"head":"{"0" * 64}"}}\n')
    assert "the tape has no event" in refusal(file)
