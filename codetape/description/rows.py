"""Which rows of a table a model gets to see."""

from __future__ import annotations

import random
from typing import Any

FIRST, EXTREME, GAPS = 5, 12, 4
"""Most rows of each sort; the rest of what may be shown is drawn."""


def chosen(frame: Any, most: int, seed: int) -> list[int]:
    """Return positions of rows, in order: first ones, extremes, rows with gaps, random ones.

    The draw comes from the seed, and positions are used throughout, so that neither the index of a
    frame nor the time of day has a part in it.
    """
    total = len(frame)
    picked = dict.fromkeys(range(min(FIRST, total)))
    picked |= dict.fromkeys(_extremes(frame)[:EXTREME])
    picked |= dict.fromkeys(_with_gaps(frame)[:GAPS])
    others = [position for position in range(total) if position not in picked]
    left = max(0, most - len(picked))
    picked |= dict.fromkeys(random.Random(seed).sample(others, min(left, len(others))))  # noqa: S311
    return sorted(list(picked)[:most])


def _extremes(frame: Any) -> list[int]:
    found: list[int] = []
    for position in range(frame.shape[1]):
        series = frame.iloc[:, position]
        if getattr(series.dtype, "kind", "O") in "iufM" and series.notna().any():
            values = series.reset_index(drop=True).dropna()
            found += [int(values.idxmin()), int(values.idxmax())]
    return found


def _with_gaps(frame: Any) -> list[int]:
    missing = frame.isna().any(axis=1).to_numpy()
    return [position for position in range(len(frame)) if missing[position]]
