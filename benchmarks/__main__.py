"""Measure everything and print one table. `python -m benchmarks [--quick] [--strict]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import appends, replays, sessions, startup, tapes, waiting
from benchmarks.figures import Figure, heading, line, missed


def main() -> int:
    """Print the table; return 1 if a goal is missed and the caller is strict."""
    arguments = _arguments()
    figures: list[Figure] = []
    print(heading())
    # A file system in memory syncs for nothing, and the usual temporary folder often is one.
    with tempfile.TemporaryDirectory(prefix=".benchmarks-", dir=arguments.folder) as folder:
        for figure in _figures(Path(folder), quick=arguments.quick):
            figures.append(figure)
            print(line(figure), flush=True)
    if lost := missed(figures):
        print(f"\n{len(lost)} missed: {'; '.join(lost)}")
    return 1 if lost and arguments.strict else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--folder", default=".", help="where the stores are made (default: here)")
    return parser.parse_args()


def _figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    yield from appends.speed(folder, turns=2 if quick else 40)
    late, turns = (150, 2) if quick else (10_000, 30)
    yield from appends.growth(folder, late, turns)
    yield from replays.speed(folder, sessions=2 if quick else 60)
    yield from sessions.happy_path(2 if quick else 20)
    yield sessions.on_disk(folder)
    yield from tapes.figures(folder, quick=quick)
    yield from startup.waits(1 if quick else 11)
    yield from waiting.figures(1 if quick else 7)


if __name__ == "__main__":
    sys.exit(main())
