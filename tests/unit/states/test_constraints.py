"""Constraints become checks or stay words, and the schema runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pandas as pd
import pytest

from codetape.states.answers import ConstraintShape, Unusable
from codetape.states.constraints import Check, check_of, schema_code
from codetape.states.job import Column, Sample
from tests.support.sessions import HAPPY, JOB, play

COLUMNS = (
    Column(name="value", type="float", nullable=True),
    Column(name="Unit ", type="str", nullable=False),
    Column(name="count", type="int", nullable=True),
    Column(name="at", type="datetime", nullable=False),
    Column(name="odd", type="object", nullable=True),
)
SAMPLE = Sample(
    name="readings", path="/x.csv", file="readings.csv", description="", columns=COLUMNS
)
NAMES = tuple(column.name for column in COLUMNS)


def check(kind: str, column: str = "value", **parameters: Any) -> Check | None:
    shape = ConstraintShape.model_validate(
        {"column_name": column, "check_type": kind, "parameters": parameters}
    )
    return check_of("in words", shape, NAMES)


@pytest.mark.parametrize(
    ("kind", "parameters", "arguments"),
    [
        ("greater_than", {"value": 0}, (0,)),
        ("less_than", {"max_value": 9.5}, (9.5,)),
        ("between", {"max": 10, "min": 2}, (2, 10)),
        ("between", {"range": [10, 2]}, (2, 10)),
        ("isin", {"values": ["C", "F"]}, ("C", "F")),
        ("regex", {"pattern": "^a+$"}, ("^a+$",)),
        ("not_null", {}, ()),
    ],
)
def test_an_answer_becomes_a_check(
    kind: str, parameters: dict[str, Any], arguments: tuple[Any, ...]
) -> None:
    made = check(kind, **parameters)
    assert made is not None
    assert made.arguments == arguments


def test_a_constraint_that_is_none_of_a_column_is_no_check() -> None:
    assert check("none", column="") is None


@pytest.mark.parametrize(
    ("kind", "column", "parameters"),
    [
        ("greater_than", "nowhere", {"value": 0}),
        ("greater_than", "value", {}),
        ("greater_than", "value", {"value": "much"}),
        ("greater_than", "value", {"value": True}),
        ("between", "value", {"min": 1}),
        ("regex", "Unit ", {"pattern": "("}),
        ("isin", "Unit ", {"values": []}),
    ],
)
def test_what_does_not_fit_is_unusable(kind: str, column: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(Unusable):
        check(kind, column, **parameters)


def test_a_column_is_known_by_its_name_without_case_and_blanks() -> None:
    made = check("not_null", column="unit")
    assert made is not None
    assert made.column == "Unit "


GOOD = {
    "value": [1.0, None],
    "Unit ": ["C", "F"],
    "count": [1, None],
    "at": pd.to_datetime(["2026-01-01", "2026-01-02"]),
    "odd": [[1], None],
}
CHECKS = [
    Check(constraint="", column="value", kind="between", arguments=(0, 10)),
    Check(constraint="", column="Unit ", kind="isin", arguments=("C", "F")),
    Check(constraint="", column="Unit ", kind="regex", arguments=("[CF]",)),
    Check(constraint="", column="count", kind="greater_than", arguments=(0,)),
    Check(constraint="", column="count", kind="less_than", arguments=(5,)),
]


def schema(checks: list[Check]) -> Any:
    space: dict[str, Any] = {}
    exec(schema_code(SAMPLE, checks), space)
    return space["schema"]


def test_the_schema_runs_and_takes_what_it_was_made_from() -> None:
    schema([]).validate(pd.DataFrame(GOOD))
    schema(CHECKS).validate(pd.DataFrame(GOOD))


@pytest.mark.parametrize(
    ("column", "values"),
    [("value", [11.0, 1.0]), ("Unit ", ["C", "K"]), ("count", [0, 1]), ("count", [6, 1])],
)
def test_each_check_refuses_what_breaks_it(column: str, values: list[Any]) -> None:
    import pandera.errors

    with pytest.raises(pandera.errors.SchemaError):
        schema(CHECKS).validate(pd.DataFrame({**GOOD, column: values}))


@pytest.mark.parametrize(
    ("column", "kind", "arguments"),
    [
        ("count", "regex", (r"\d+",)),
        ("at", "regex", ("2026",)),
        ("odd", "regex", (".*",)),
        ("at", "greater_than", (0,)),
        ("Unit ", "less_than", (9,)),
        ("odd", "between", (0, 1)),
    ],
)
def test_a_check_that_is_none_for_the_type_of_its_column_refuses_nothing(
    column: str, kind: str, arguments: tuple[Any, ...]
) -> None:
    misplaced = Check(constraint="", column=column, kind=kind, arguments=arguments)
    schema([*CHECKS, misplaced]).validate(pd.DataFrame(GOOD))


def test_not_null_refuses_gaps() -> None:
    import pandera.errors

    needed = Check(constraint="", column="value", kind="not_null")
    with pytest.raises(pandera.errors.SchemaError):
        schema([needed]).validate(pd.DataFrame(GOOD))


def test_no_constraint_is_lost_in_a_session() -> None:
    """One becomes a check, one names no column, one cannot be read: all three are in the prompt."""
    words = ("value is positive", "the sum is right", "gibberish")
    answers = [
        {"column_name": "value", "check_type": "greater_than", "parameters": {"value": 0}},
        {"column_name": "", "check_type": "none"},
        "no JSON at all",
    ]
    job = JOB.model_copy(update={"constraints": words, "samples": (SAMPLE,)})
    made = asyncio.run(play({**HAPPY, "parse_constraint": answers}, job=job))
    assert made.session.ending is not None
    assert made.session.ending.failure is None
    assert made.session.totals.calls == 6
    code = next(call for call in made.llm.calls if call.kind == "code")  # type: ignore[attr-defined]
    prompt = code.messages[1].text
    assert all(text in prompt for text in words)
    assert "pa.Check.greater_than(0)" in prompt
    assert [event for event, _ in made.path].count("constraint_parsed") == 3


def test_constraints_without_a_table_are_not_asked_about() -> None:
    job = JOB.model_copy(update={"constraints": ("be quick",)})
    made = asyncio.run(play(HAPPY, job=job))
    assert made.session.totals.calls == 3
