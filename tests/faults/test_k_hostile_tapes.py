"""Faults of tapes that others made: sizes, depths and times that no run of ours writes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.cli.sessions import ago
from codetape.engine import codec
from codetape.engine.boundary import Boundary
from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import EventStore, StoredEvent
from codetape.replay.export import FORMAT
from codetape.replay.imports import BadTapeFile, read_tape_file
from codetape.states.answers import PlanShape, Unusable, read
from codetape.states.python_source import defined_tests, syntax_error
from codetape.states.values import Answer, canonical
from tests.support.sessions import HAPPY, ID, JOB, play

DEEP = 600


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def data_of(store: EventStore) -> dict[str, Any]:
    return dict(json.loads(next(iter(store.read(ID))).data))


def write_tape(path: Path, data: Any, blobs: dict[str, str], at: str = "") -> Path:
    """Write a tape of one event whose hashes are right."""
    row = StoredEvent(
        session=ID,
        seq=1,
        name="session_opened",
        version=1,
        source="Start",
        dest="Planning",
        request_key=None,
        data=canonical(data),
        at=at or "2025-01-31T12:00:00.000000+00:00",
        hash="",
    )
    head = chained(GENESIS, row)
    lines: list[Any] = [
        {
            "codetape": "tape",
            "encoding": codec.FORMAT,
            "format": FORMAT,
            "rules": data["rules"],
            "session": ID,
            "workflow": data["workflow"],
        },
        *({"blob": name, "text": text} for name, text in blobs.items()),
        {
            **{name: getattr(row, name) for name in ("at", "dest", "name", "request_key")},
            "source": row.source,
            "version": 1,
            "event": 1,
            "hash": head,
            "data": data,
        },
        {"end": 1, "head": head},
    ]
    path.write_text("".join(f"{canonical(line)}\n" for line in lines))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hostile.tape.jsonl"


@pytest.fixture
def data() -> dict[str, Any]:
    return data_of(asyncio.run(play(HAPPY)).store)


# --- sizes ----------------------------------------------------------------------------------------


def test_10_many_references_to_one_blob_are_refused(file: Path, data: dict[str, Any]) -> None:
    """Each reference counts: what is unpacked from a small file is bounded."""
    text = "x" * 800_000
    name = hashlib.sha256(text.encode()).hexdigest()
    data["job"]["litellm_params"] = {"x": [{"$blob": name}] * 3000}
    with pytest.raises(BadTapeFile, match="larger than"):
        read_tape_file(write_tape(file, data, {name: text}))


def test_10_many_medium_blobs_in_one_event_are_refused(file: Path, data: dict[str, Any]) -> None:
    texts = [f"{n}".ljust(1_000_000) for n in range(40)]
    blobs = {hashlib.sha256(text.encode()).hexdigest(): text for text in texts}
    data["job"]["litellm_params"] = {"x": [{"$blob": name} for name in blobs]}
    with pytest.raises(BadTapeFile, match="larger than"):
        read_tape_file(write_tape(file, data, blobs))


def test_10_a_zlib_bomb_in_a_store_is_a_damaged_blob(tmp_path: Path) -> None:
    """It is counted while it is unpacked; its first bytes are all that is made of it."""
    path = tmp_path / "tape.db"
    with closing(SqliteStore(path)):
        pass
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(100)) + packer.flush()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO blobs VALUES ('bomb', ?)", (bomb,))
        db.execute("INSERT INTO blobs VALUES ('more', ?)", (zlib.compress(b"a") + b"tail",))
        db.execute("INSERT INTO blobs VALUES ('cut', ?)", (zlib.compress(b"a" * 99)[:-3],))
    with closing(SqliteStore(path)) as store:
        with pytest.raises(ValueError, match="larger than"):
            store.get_blob("bomb")
        for name in ("more", "cut"):
            with pytest.raises(ValueError, match="cannot be unpacked"):
                store.get_blob(name)


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero"])
def test_10_a_file_without_an_end_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "endless"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)
    with pytest.raises(BadTapeFile, match="no regular file"):
        read_tape_file(path)


def test_10_a_line_of_two_gigabytes_is_never_read(file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(2 << 30)
    with pytest.raises(BadTapeFile, match="longer than"):
        read_tape_file(file)


# --- times ----------------------------------------------------------------------------------------

BAD_TIMES = [
    "x",
    "2025-01-31T12:00:00",
    "9999-12-31T23:59:59.999999+00:00",
    "0001-01-01T00:00:00.000000+00:00",
    "2025-01-31T12:00:00.000000+05:00",
    "2016-12-31T23:59:60.000000+00:00",
    "\u0662\u0660\u0662\u0665-01-31T12:00:00.000000+00:00",
]


@pytest.mark.parametrize("at", BAD_TIMES)
def test_14_a_bad_time_is_refused_at_import(at: str, file: Path, data: dict[str, Any]) -> None:
    with pytest.raises(BadTapeFile, match="its time"):
        read_tape_file(write_tape(file, data, {}, at))


@pytest.mark.parametrize("at", BAD_TIMES)
def test_14_a_bad_time_in_a_store_is_shown_as_unknown(
    at: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tape.db"
    with closing(SqliteStore(path)) as store:
        asyncio.run(play(HAPPY, store=store))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE sessions SET updated_at = ?, started_at = ?", (at, at))
    assert main(["sessions", "--store", str(path)]) == 0
    assert "unknown" in capsys.readouterr().out
    assert ago(at) == "unknown"


# --- depths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [DEEP, 5_000, 100_000])
def test_15_deep_data_are_refused_in_a_file(depth: int, file: Path, data: dict[str, Any]) -> None:
    data["job"]["litellm_params"] = {"x": "HERE"}
    write_tape(file, data, {})
    deep = "[" * depth + "1" + "]" * depth
    file.write_text(file.read_text().replace('"HERE"', deep))
    with pytest.raises(BadTapeFile):
        read_tape_file(file)
    for blob in ("", '{"$blob":"x"},'):
        with pytest.raises(ValueError, match=r"deep|recursion|depth"):
            codec.unpack_json(f"[{blob}{deep}]", {"x": b""}.__getitem__)


def test_15_a_deep_value_is_bounded_at_the_boundary() -> None:
    from codetape.states.job import Job

    job = Job.model_construct(**{**dict(JOB), "parameters": {"x": nested(DEEP)}})
    clean = Boundary().clean(job)
    assert "nested too deep" in clean.model_dump_json()
    assert Boundary().clean(clean) == clean


@pytest.mark.parametrize("depth", [DEEP, 900, 5_000])
def test_15_a_deep_answer_is_unusable(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, "Here:\n" + '{"a":' * depth + "1" + "}" * depth):
        with pytest.raises(Unusable):
            read(Answer(text=text, finish_reason="stop"), PlanShape)


@pytest.mark.parametrize("terms", [500, 5_000, 50_000])
def test_15_long_chains_in_tests_are_no_crash(terms: int) -> None:
    chain = "a" + ".b" * terms
    for source in (
        f"class TestX({chain}):\n    def test_x(self): pass\n",
        f"class TestX:\n    {' + '.join('a' * terms)}\n    def test_x(self): pass\n",
        f"@{chain}()\ndef test_x(): pass\n",
        f"{'(' * terms}1{')' * terms}\n",
        "def test_x(): pass\n\x00",
    ):
        if syntax_error(source) is None:
            defined_tests(source)
