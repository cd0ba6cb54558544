"""The benchmarks run, and print every figure; what they measure is not judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

FIGURES = (
    "durable appends",
    "- with requests",
    "a durable step, number",
    "- in CPU seconds",
    "replay, all comparisons",
    "fold alone",
    "- with reading from SQLite",
    "- only the library's triggers",
    "happy path in memory",
    "- sessions per second",
    "a session of twenty events on disk",
    "replay, an event of",
    "export, an event of",
    "import, an event of",
    "fork at event",
    "first page of",
    "- last page",
    "open and list",
    "- for each",
    "import codetape",
    "codetape --help",
    "- python -c pass",
    "generate, first event",
    "- first request for a model",
)


@pytest.mark.slow
def test_a_quick_run_prints_every_figure_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--folder", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.split("\n\n")[0].rstrip().split("\n")[2:]
    assert all(line.startswith(name) for line, name in zip(lines, FIGURES, strict=True))
    assert max(map(len, lines)) <= 80
    assert not list(tmp_path.iterdir())


SANDBOX_FIGURES = (
    "pytest in a bare process",
    "bubblewrap, over bare",
    "- verdict of bubblewrap",
    "- null solutions",
    "podman, prepared, over bare",
    "- verdict of podman, prepared",
    "- null solutions",
    "podman, fresh, over bare",
    "- verdict of podman, fresh",
    "- null solutions",
    "bubblewrap, cold build",
    "- warm build",
    "podman, cold build",
    "- warm build",
)


@pytest.mark.slow
@pytest.mark.podman
@pytest.mark.bubblewrap
def test_a_quick_run_of_sandboxes_prints_every_figure() -> None:
    command = [sys.executable, "-m", "benchmarks.sandbox", "--quick"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.split("\n\n")[0].rstrip().split("\n")[2:]
    named = zip(lines, SANDBOX_FIGURES, strict=True)
    assert [line.startswith(name) for line, name in named] == [True] * len(SANDBOX_FIGURES)
    assert max(map(len, lines)) <= 80
