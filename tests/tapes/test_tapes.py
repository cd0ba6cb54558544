"""Recorded tapes are what they were, and today's rules do what they say."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from codetape.engine.chain import chained
from codetape.replay.export import tape_lines
from codetape.replay.imports import read_tape_file
from codetape.replay.replayer import replay

HERE = Path(__file__).parent
TAPES = sorted(HERE.glob("v*/*.tape.jsonl"))
SUMS = dict(line.split()[::-1] for line in (HERE / "SHA256SUMS").read_text().splitlines())
PLUGIN = [
    *("-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "/"),
    *(() if entry_points(group="pytest11", name="codetape") else ("-p", "codetape.pytest_plugin")),
]


def test_no_tape_was_changed_added_or_taken_away() -> None:
    """A change here is a promise that is broken: see docs/compatibility.md."""
    found = {str(t.relative_to(HERE)): hashlib.sha256(t.read_bytes()).hexdigest() for t in TAPES}
    assert found == SUMS
    assert len(found) >= 12


@pytest.mark.parametrize("path", TAPES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_tape_replays(path: Path) -> None:
    tape = read_tape_file(path)
    report = replay(tape, tape.session)
    assert report.identical, "\n".join(f"{d}\n{d.diff}" for d in report.differences)
    assert report.ending is not None


# --- the plugin -----------------------------------------------------------------------------------


def pytest_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", *PLUGIN, *arguments, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.fixture
def happy(tmp_path: Path) -> Path:
    copy = tmp_path / "happy.tape.jsonl"
    copy.write_bytes((HERE / "v1/happy_path.tape.jsonl").read_bytes())
    return copy


def test_pytest_collects_a_tape(happy: Path) -> None:
    done = pytest_run(happy.parent, "-v")
    assert done.returncode == 0, done.stdout
    assert "happy.tape.jsonl::replay PASSED" in done.stdout


def test_a_tape_that_differs_says_where(tmp_path: Path) -> None:
    """Written under a table that led elsewhere: the tests were run before there was an image."""
    (tmp_path / "fork.tape.jsonl").write_text(_elsewhere(), encoding="utf-8")
    done = pytest_run(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "event 2: sandbox_ready leads NeedsCode -> NeedsCode today" in done.stdout
    assert "Traceback" not in done.stdout


def _elsewhere() -> str:
    """A tape whose second event leads to another state, chained as its writer would have."""
    tape = read_tape_file(HERE / "v1/happy_path.tape.jsonl")
    first = tape.rows[0]
    second = replace(tape.rows[1], dest="NeedsTests")
    second = replace(second, hash=chained(first.hash, second))
    short = replace(tape, rows=(first, second))
    return "".join(f"{line}\n" for line in tape_lines(short, tape.session))


def test_a_tape_that_was_changed_is_refused(happy: Path) -> None:
    lines = happy.read_text(encoding="utf-8").splitlines(keepends=True)
    happy.write_text("".join(lines[:-2]), encoding="utf-8")
    done = pytest_run(happy.parent)
    assert done.returncode == 1
    assert "the file is cut off here" in done.stdout


def test_without_tapes_nothing_of_codetape_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\n\ndef test_it():\n"
        "    loaded = {name for name in sys.modules if name.startswith('codetape')}\n"
        "    assert loaded <= {'codetape', 'codetape.pytest_plugin'}\n"
        "    assert not {'hypothesis.core', 'pydantic', 'litellm'} & set(sys.modules)\n"
    )
    done = pytest_run(tmp_path, "-p", "no:hypothesispytest")
    assert done.returncode == 0, done.stdout


def test_the_contract_suites_can_be_collected_where_marks_are_strict(tmp_path: Path) -> None:
    text = "from codetape.testing import SandboxContract\n\n\ndef test_it():\n    pass\n"
    (tmp_path / "test_it.py").write_text(text)
    done = pytest_run(tmp_path, "--strict-markers", "-W", "error")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["nowhere:RULES", "pathlib:Path", "pathlib"])
def test_a_workflow_that_is_none_is_told_in_one_line(happy: Path, name: str) -> None:
    done = pytest_run(happy.parent, "-o", f"codetape_workflows={name}")
    assert done.returncode == 1
    assert f"codetape_workflows: {name}: " in done.stdout
    assert "Traceback" not in done.stdout
    assert "pytest_plugin.py" not in done.stdout
