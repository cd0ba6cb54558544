"""Where agents and data descriptions differ on purpose from the system whose job this one takes over.

One test for each weakness of that system; each would fail on what that system does. What is checked
of arguments (W37, W38, W40) is in test_agent.py, how rows are drawn (X04) in test_description.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.system import SystemIds
from codetape.description import samples_of
from codetape.description.samples import Choice
from codetape.result import Result
from tests.support.sessions import HAPPY
from tests.unit.codetape.test_agent import agent


def test_x03_equal_names_of_two_sessions_are_two_files() -> None:
    frames = [pd.DataFrame({"n": [number]}) for number in (1, 2)]
    made = [agent(ids=SystemIds()).generate("Add.", samples={"data": f}) for f in frames]
    paths = [Path(result.folded.job.samples[0].path) for result in made]
    assert [path.read_text() for path in paths] == ["n\n1\n", "n\n2\n"]
    assert paths[0].parent != paths[1].parent
    assert {path.parent.stat().st_mode & 0o077 for path in paths} == {0}


def words(frame: pd.DataFrame, folder: Path) -> str:
    (sample,) = samples_of({"data": frame}, Choice(20, 3, folder))
    return sample.description


INDEXES = {
    "all the same": [7] * 100,
    "of words": [f"row {n}" for n in range(100)],
    "from another table": list(range(5000, 5100)),
    "of moments": pd.date_range("2026-01-01", periods=100),
    "of pairs": pd.MultiIndex.from_product([["a", "b"], range(50)]),
    "without values": [None] * 100,
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_x05_rows_are_drawn_by_position_whatever_the_index(tmp_path: Path, index: Any) -> None:
    plain = pd.DataFrame({"n": range(100), "word": ["x"] * 100})
    numbers = drawn(words(plain.set_axis(index), tmp_path))
    assert numbers == sorted(set(numbers)), "each once, in the order of the table"
    assert {*range(5), 99} <= set(numbers), "the first ones, and an extreme"
    assert len(numbers) == len(drawn(words(plain, tmp_path)))


def drawn(words: str) -> list[int]:
    """The numbers of the rows in a description, whatever columns the index has become."""
    rows = words.partition("Some rows")[2].split("\n")[2:]
    return [int(row.split(",")[-2]) for row in rows]


def test_x11_samples_are_set_apart() -> None:
    llm = ScriptedLlm(HAPPY)
    frames = {name: pd.DataFrame({f"column_of_{name}": [1, 2]}) for name in ("first", "second")}
    agent(llm=llm).generate("Add.", samples=frames)
    parts = [part for part in llm.calls[0].messages[1].parts if "column_of_" in part]
    assert [part.split("\n")[0] for part in parts] == [
        "## Sample data for first",
        "## Sample data for second",
    ]
    assert "column_of_second" not in parts[0]
    assert "column_of_first" not in parts[1]


CONSTRAINTS: dict[str, Any] = {
    "value is positive": {
        "column_name": "value",
        "check_type": "greater_than",
        "parameters": {"value": 0},
    },
    "unit is C or F": {
        "column_name": "unit",
        "check_type": "isin",
        "parameters": {"values": ["C", "F"]},
    },
    "the report is short": {"column_name": "", "check_type": "none"},
}
TABLES = {"readings": pd.DataFrame({"value": [1.5]}), "units": pd.DataFrame({"unit": ["C"]})}


def constrained(*tables: str) -> tuple[Result, str]:
    """A session with samples in this order, and what it was told to write code for."""
    llm = ScriptedLlm({**HAPPY, "parse_constraint": list(CONSTRAINTS.values())})
    samples = {name: TABLES[name] for name in tables}
    made = agent(llm=llm).generate("Add.", samples=samples, constraints=list(CONSTRAINTS))
    (call,) = [call for call in llm.calls if call.kind == "code"]
    return made, call.messages[1].text


@pytest.mark.parametrize("order", [("readings", "units"), ("units", "readings")])
def test_x06_x13_no_constraint_is_lost_whatever_the_order_of_samples(
    order: tuple[str, ...],
) -> None:
    made, prompt = constrained(*order)
    assert "pa.Check.greater_than(0)" in made.generated_schemas["readings"]
    assert "pa.Check.isin(['C', 'F'])" in made.generated_schemas["units"]
    assert all(schema in prompt for schema in made.generated_schemas.values())
    assert all(f"- {constraint}" in prompt for constraint in CONSTRAINTS)
