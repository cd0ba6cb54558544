"""Each folder says what its files are for, and none is forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPS = ("states", "engine", "adapters", "replay", "codetape", "benchmarks")
FOLDERS = sorted(
    {file.parent for top in TOPS for file in (ROOT / top).rglob("*.py")}
    | {
        ROOT / "tests" / name
        for name in (
            "contracts",
            "e2e",
            "faults",
            "properties",
            "support",
            "reference",
            "humaneval",
        )
    }
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_folder_names_each_of_its_files(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    files = {file.name for file in folder.glob("*.py")} - {"__init__.py"}
    assert {name for name in files if name not in text} == set()
    named = {word.strip("|` ") for word in text.split() if word.strip("|` ").endswith(".py")}
    assert {name for name in named if "/" not in name} - files <= {"__init__.py", "solution.py"}


def test_each_test_that_is_named_for_an_attack_exists() -> None:
    """`path::name, name; path::name` are the tests of one attack."""
    attacks = (ROOT / "tests/faults/README.md").read_text().partition("## Attacks")[2]
    rows = [row.split("|")[3] for row in attacks.split("\n") if re.match(r"\| n\d", row)]
    assert len(rows) == 24
    for place in (place for row in rows for place in row.split(";")):
        file, _, names = place.strip().partition("::")
        code = (ROOT / file).read_text()
        for name in re.findall(r"test_\w+\b(?!\*)", names):
            assert f"def {name}(" in code, name
