"""Measuring on a machine that does other things too: in turns, by medians, by processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

Clock = Callable[[], float]

WALL: Clock = time.perf_counter
CPU: Clock = time.process_time
"""What the processor spent in this process: its neighbours cost it nearly nothing."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two things measured in turns: the median seconds of each, and the median of first / second."""

    first: float
    second: float
    ratio: float


def in_turns(
    first: Callable[[], object], second: Callable[[], object], turns: int, clock: Clock = WALL
) -> Pair:
    """Run both, one after the other, `turns` times: a slow moment hits both, in one turn of many."""
    taken = [(seconds(first, clock), seconds(second, clock)) for _ in range(turns)]
    firsts, others = zip(*taken, strict=True)
    return Pair(median(firsts), median(others), median(a / b for a, b in taken))


def seconds(work: Callable[[], object], clock: Clock = WALL) -> float:
    """Return how long `work` takes by `clock`."""
    start = clock()
    work()
    return clock() - start
