"""The shipped example is what it says it is."""

from __future__ import annotations

import csv
import io

import pytest

from codetape import demo
from codetape.demo import make_readings
from codetape.states.fixes import is_applied


def test_readings_are_made_by_their_script() -> None:
    made = io.StringIO()
    make_readings.write(made)
    assert demo.readings().read_text() == made.getvalue()


def test_readings_have_gaps_two_units_and_planted_anomalies() -> None:
    rows = list(csv.DictReader(demo.readings().read_text().splitlines()))
    assert len(rows) == 360
    assert {row["unit"] for row in rows} == {"C", "F"}
    gaps = sum(len(hours) for _, _, hours, _ in make_readings.SENSORS.values())
    assert sum(row["value"] == "" for row in rows) == gaps == 14
    assert sum(len(spikes) for _, _, _, spikes in make_readings.SENSORS.values()) == 9


def test_fix_of_the_diagnosis_decides_by_its_text() -> None:
    answers = demo.script("demo")
    first, second = (answer["code"] for answer in answers["code"])
    assert first.count(demo.WRONG) == 1
    for finding in answers["diagnosis"][0]["failures"]:
        assert is_applied(finding["suggested_fix"], first, second) is True


def test_other_scripts_are_not_shipped() -> None:
    with pytest.raises(ValueError, match="scripted/nosuch is not shipped"):
        demo.script("nosuch")
