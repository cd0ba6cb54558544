"""`make humaneval`: all problems in bubblewrap, with counts and time."""

from __future__ import annotations

import sys

from tests.humaneval.problems import problems
from tests.humaneval.running import Score, scores


def main() -> int:
    """Run, print, and return 1 if a solution was misjudged."""
    told = scores(problems(), lambda: print(".", end="", file=sys.stderr, flush=True))
    print(file=sys.stderr)
    _told("canonical solutions that passed", told["right"])
    _told("broken solutions that failed", told["wrong"])
    _told("tests that only return what they compare, no pass", told["returning"])
    return any(score.misjudged for score in told.values())


def _told(what: str, score: Score) -> None:
    print(f"{what}: {score.good} of {score.of}, in {score.seconds:.1f} s")
    for problem, event in score.misjudged.items():
        print(f"  {problem}: {event}")


if __name__ == "__main__":
    sys.exit(main())
