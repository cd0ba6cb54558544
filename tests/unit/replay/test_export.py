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

from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.ports import DamagedTape, UnknownSession
from codetape.replay.export import export_tape, tape_lines
from codetape.replay.imports import TapeFile, read_tape_file
from codetape.replay.replayer import replay
from tests.support.sessions import ID
from tests.unit.replay.sessions import LONG, changed, long_tape, played

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
