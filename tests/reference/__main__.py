"""`python -m tests.reference [FILE]`: run the cases, a line each, and a table of totals."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.reference.cases import Compared, compare

CASES = Path(__file__).parents[1] / "data" / "reference" / "cases.jsonl"
SHARE = 0.68
"""The share of their calls that ours may take."""


def main(arguments: list[str]) -> int:
    """Print the comparison; 1 if a case is worse or the calls are too many."""
    file = Path(arguments[0]) if arguments else CASES
    found = run(file)
    for each in found:
        tags = ", ".join(each.why)
        print(
            f"{each.verdict:7}{each.calls:3} of {each.their_calls:2} calls  {each.id}  {tags}"[
                :2000
            ]
        )
    verdicts = Counter(each.verdict for each in found)
    ours, theirs = (sum(n) for n in zip(*((c.calls, c.their_calls) for c in found), strict=True))
    share = ours / theirs if theirs else 0.0
    print(
        f"\n{len(found)} cases: {verdicts['same']} same, {verdicts['better']} better, "
        f"{verdicts['worse']} worse"
    )
    print(f"model calls: {ours} against {theirs}, {share:.2f} (at most {SHARE})")
    return 1 if verdicts["worse"] or share > SHARE else 0


def run(file: Path) -> list[Compared]:
    """Compare all cases of a file."""
    with tempfile.TemporaryDirectory() as folder:
        lines = file.read_text().splitlines()
        return [compare(json.loads(line), Path(folder)) for line in lines if line.strip()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
