"""The shipped example: what is asked, the data, and the answers of its scripted model.

The model's answers are in the Markdown files beside this one, as a model would give them. The second
code is the first one with the fix of the diagnosis made, so that the two can't drift apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codetape.states.code_text import python_code

MODEL = "scripted/demo"

PROMPT = """\
Report on a building's temperature sensors. The readings have the columns
timestamp, sensor, value and unit; the unit is C or F. A reading without a value
is a gap. An anomaly is a reading that differs by more than `threshold` degrees
Celsius from the median of its sensor.

report.csv has one row for each sensor, sorted by name, with the columns sensor,
readings (gaps left out), gaps, mean_c (degrees Celsius, two decimals; empty
without readings) and anomalies. total_anomalies is their sum."""

INPUTS = {"threshold": "float"}
OUTPUTS = {"report.csv": "File", "total_anomalies": "int"}
THRESHOLD = 5.0

WRONG = "return (value - 32) * 9 / 5"
RIGHT = "return (value - 32) * 5 / 9"

_HERE = Path(__file__).parent


def readings() -> Path:
    """Return the file of the sample data."""
    return _HERE / "readings.csv"


def script(name: str) -> Mapping[str, list[Any]]:
    """Return the answers of the shipped model `name` by kind of call, in order.

    Raises ValueError for a name that is not shipped.
    """
    if name != "demo":
        raise ValueError(f"model: scripted/{name} is not shipped with codetape; {MODEL} is")
    first = _python("code.md")
    return {
        "plan": [_PLAN],
        "code": [_code(first), _code(first.replace(WRONG, RIGHT))],
        "tests": [{"test_code": _python("tests.md")}],
        "diagnosis": [_DIAGNOSIS],
    }


def _python(file: str) -> str:
    return python_code((_HERE / file).read_text(encoding="utf-8"))


def _code(source: str) -> dict[str, Any]:
    return {"language": "python", "code": source, "packages": [], "system_packages": []}


_PLAN = {
    "description": "Bring all readings to Celsius, then count gaps and anomalies sensor by sensor.",
    "approach": (
        "to_celsius(value, unit) converts one reading. by_sensor(rows) collects the readings of each "
        "sensor, with None for a gap. anomalies(values, threshold) counts what lies beyond the "
        "threshold from the median. summary(rows, threshold) makes the rows of the report. main() "
        "reads the CSV and writes both outputs. The standard library is enough."
    ),
}


def _finding(test: str, expected: str, actual: str) -> dict[str, str]:
    return {
        "test_name": test,
        "error_message": "AssertionError",
        "expected_behavior": expected,
        "actual_behavior": actual,
        "root_cause": "to_celsius multiplies by 9/5, which is the factor from Celsius to Fahrenheit.",
        "suggested_fix": f"Replace `{WRONG}` with `{RIGHT}`.",
        "error_type": "logic",
    }


_DIAGNOSIS = {
    "failures": [
        _finding("test_fahrenheit_becomes_celsius", "212 °F are 100 °C.", "They come out as 324."),
        _finding(
            "test_quiet_fahrenheit_sensor_has_no_anomalies",
            "64.4, 68 and 71.6 °F are 18, 20 and 22 °C: nothing is 5 degrees from the median.",
            "Two of the three readings are counted as anomalies.",
        ),
    ],
    "needs_system_packages": [],
    "needs_language_packages": [],
    "needs_additional_commands": [],
}
