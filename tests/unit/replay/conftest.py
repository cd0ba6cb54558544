"""The long tape, and a file of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetape.replay.export import export_tape
from codetape.replay.imports import TapeFile
from tests.support.sessions import ID
from tests.unit.replay.sessions import long_tape


@pytest.fixture(scope="package")
def tape() -> TapeFile:
    return long_tape()


@pytest.fixture
def file(tape: TapeFile, tmp_path: Path) -> Path:
    export_tape(tape, ID, tmp_path / "some.tape.jsonl")
    return tmp_path / "some.tape.jsonl"
