"""Whole processes, from their start to their end: what a shell waits for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from statistics import median

from benchmarks.figures import Figure, at_most
from benchmarks.timing import seconds

LIMIT = 0.2
"""Seconds of wall clock in which a process has to be over."""

NOTHING = (sys.executable, "-c", "pass")
COMMANDS = {
    "import codetape": (sys.executable, "-c", "import codetape"),
    "codetape --help": (sys.executable, "-m", "codetape", "--help"),
}


def waits(rounds: int) -> Iterator[Figure]:
    """Time each command `rounds` times, in turns with a Python that does nothing."""
    commands = [NOTHING, *COMMANDS.values()]
    taken = [[seconds(partial(_run, c)) for c in commands] for _ in range(rounds)]
    bare, *others = (median(times) for times in zip(*taken, strict=True))
    for name, whole in zip(COMMANDS, others, strict=True):
        yield at_most(f"{name}, whole process", whole, LIMIT, "{:.3f} s")
    yield Figure("- python -c pass", f"{bare:.3f} s")


def _run(command: tuple[str, ...]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
