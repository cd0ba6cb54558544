"""Mutated exports through every command that reads one: a refusal in one line, or a clean read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TAPES = sorted((Path(__file__).parents[1] / "tapes" / "v1").glob("*.jsonl"))


def reading(folder: Path, first: int, last: int) -> subprocess.Popen[str]:
    """Read mutations in a process of its own, whose memory is measured."""
    program = [sys.executable, "-m", "tests.support.mutated_tapes", str(folder)]
    return subprocess.Popen(
        [*program, str(first), str(last), *map(str, TAPES)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def test_a_hundred_mutated_tapes_are_read_or_refused(tmp_path: Path) -> None:
    with reading(tmp_path, 0, 100) as child:
        assert child.communicate()[0] == ""
    assert child.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(900)  # a thousand cases each, on a loaded machine
@pytest.mark.parametrize("part", range(2))
def test_two_thousand_mutated_tapes_are_read_or_refused(tmp_path: Path, part: int) -> None:
    """Three of four have hashes that are right: what they hold is met by the commands themselves."""
    folders = [tmp_path / str(n) for n in range(2)]
    children = []
    for n, folder in enumerate(folders):
        folder.mkdir()
        first = 1000 * part + 500 * n
        children.append(reading(folder, first, first + 500))
    told = [child.communicate()[0] for child in children]
    assert told == ["", ""]
    assert [child.returncode for child in children] == [0, 0]
