"""The course of the tool maker with each of its ends: what a model says, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass

QUESTION = "Count how often each status occurs in the lines of an access log."

DESIGN = """\
One function, `statuses(lines: Iterable[str]) -> dict[int, int]`: the status is the last word of a line.
An empty input gives an empty dictionary. main prints a line for each status, smallest first."""

TOOL = '''\
"""Count the statuses of an access log.

Example: statuses.py access.log
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable

SAMPLE = ["GET / 200", "GET /x 404", "GET / 200"]


def statuses(lines: Iterable[str]) -> dict[int, int]:
    """Return how often each status occurs; the status is the last word of a line."""
    found = Counter(int(line.split()[-1]) for line in lines if line.strip())
    return dict(sorted(found.items()))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", help="a log; without it a sample is counted")
    options = parser.parse_args(argv)
    lines = open(options.file, encoding="utf-8") if options.file else SAMPLE
    for status, count in statuses(lines).items():
        print(status, count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''

CRASHING = TOOL.replace("int(line.split()[-1])", "int(line.split()[0])")
WRONG = TOOL.replace("dict(sorted(found.items()))", "dict.fromkeys(sorted(found), 1)")
STILL_WRONG = TOOL.replace("dict(sorted(found.items()))", "dict.fromkeys(sorted(found), 2)")

HARNESS = """\
def test_logic():
    assert statuses([]) == {}, "nothing has no status"
    assert statuses(["GET / 200"]) == {200: 1}, "one line, one status"
    lines = ["GET / 200", "GET /x 404", "", "GET / 200", "GET /y 404", "GET / 200"]
    assert statuses(lines) == {200: 3, 404: 2}, "empty lines have none"
    assert list(statuses(["a 500", "b 200"])) == [200, 500], "smallest first"
"""


def fenced(source: str) -> str:
    """Return code as a model answers with it."""
    return f"Here it is.\n\n```python\n{source}```\n"


@dataclass(frozen=True, slots=True)
class Course:
    """What the model says, one answer after the other, and what becomes of the tool."""

    answers: tuple[str, ...]
    harness: str
    cancelled_after: int | None = None  # events


COURSES = {
    "passed": Course((DESIGN, fenced(TOOL), fenced(HARNESS)), "passed"),
    "fixed": Course((DESIGN, fenced(WRONG), fenced(HARNESS), fenced(TOOL)), "passed"),
    "logic_test_failed": Course(
        (DESIGN, fenced(WRONG), fenced(HARNESS), fenced(STILL_WRONG)), "failed"
    ),
    "exhausted": Course((DESIGN, *(fenced(f"# try {n}\n{CRASHING}") for n in range(4))), "missing"),
    "skipped": Course((DESIGN, "I would need to see the log first."), "missing"),
    "cancelled": Course((DESIGN, fenced(TOOL)), "missing", cancelled_after=4),
}
"""By the status that the tool gets."""
