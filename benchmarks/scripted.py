"""What the model and the sandbox bring in sessions of these benchmarks.

All of it bears a number, so that no two sessions share code, tests, prompts or answers and a cache
by content is of no use from one to the next. Sizes do not depend on the number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from codetape.adapters.llm.scripted import Item
from codetape.adapters.sandbox.fake import Run, failed
from codetape.states.job import Job, Sample
from codetape.states.values import RunOutcome, RunSpec

_SOLUTION = '''\
"""Mean of the readings of SENSOR, the gaps left out."""

import argparse
import csv
from pathlib import Path
from statistics import fmean


def values_of(rows):
    """Return the readings of SENSOR as numbers."""
    found = [row["value"].strip() for row in rows if row["sensor"] == "SENSOR"]
    return [float(text) for text in found if text]


def mean(rows):
    values = values_of(rows)
    return fmean(values) if values else 0.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--readings", required=True)
    with open(parser.parse_args().readings, newline="", encoding="utf-8") as file:
        Path("/var/outputs/mean").write_text(str(mean(csv.DictReader(file))))
'''

_TESTS = """\
import pytest
from solution import mean, values_of

ROWS = [{"sensor": "SENSOR", "value": text} for text in ("1", "2", "", "6")]


def test_gaps_are_left_out():
    assert values_of(ROWS) == [1.0, 2.0, 6.0]


def test_mean():
    assert mean(ROWS) == pytest.approx(3.0)


def test_no_rows():
    assert mean([]) == 0.0
"""


@dataclass(frozen=True)
class Script:
    """A session: what is asked for, what the model answers, how the runs end (then: they pass)."""

    job: Job
    answers: Mapping[str, Sequence[Item]]
    runs: list[Run] = field(default_factory=list)


def happy(number: int) -> Script:
    """The shortest way to Done: plan, code, tests, all pass."""
    answers = {"plan": [plan(number)], "code": [code(number)], "tests": [tests(number)]}
    return Script(job(number), answers)


def repaired(number: int) -> Script:
    """One test fails, the code is repaired, all pass."""
    script = happy(number)
    answers = {
        **script.answers,
        "code": [code(number), code(number, "wrong before")],
        "diagnosis": [diagnosis(number)],
    }
    return Script(script.job, answers, [failing(number)])


def twenty_events(number: int, size: int) -> Script:
    """Three repairs, an answer that was cut, and `size` characters of data in every prompt."""
    answers = {
        "plan": ['{"description": "Read a CSV', plan(number)],
        "code": [code(number), *(code(number, remark) for remark in ("one", "two", "three"))],
        "tests": [tests(number)],
        "diagnosis": [diagnosis(number + n) for n in range(3)],
    }
    return Script(described_job(number, size), answers, [failing(number + n) for n in range(3)])


def job(number: int) -> Job:
    return Job(prompt=f"Work out the mean of the readings of {sensor(number)}, without its gaps.")


def described_job(number: int, size: int) -> Job:
    """A job with a sample file whose description has `size` characters."""
    lines = (f"{sensor(n)},{n * 7919 % 1000 / 10},2024-03-{n % 28 + 1:02d}" for n in range(size))
    sample = Sample(
        name="readings", path="/data/r.csv", file="r.csv", description="\n".join(lines)[:size]
    )
    return job(number).model_copy(update={"samples": (sample,)})


def plan(number: int) -> Item:
    name = sensor(number)
    return {
        "description": f"Read a CSV file and write the mean of the readings of {name}.",
        "approach": f"values_of(rows) picks the readings of {name}; mean(rows) works on them.",
    }


def code(number: int, remark: str = "") -> Item:
    """An answer with a solution of 0.8 KB; another `remark` makes another solution."""
    source = _SOLUTION.replace("SENSOR", sensor(number)) + (f"\n# {remark}\n" if remark else "")
    return {"language": "python", "code": source, "packages": [], "system_packages": []}


def tests(number: int) -> Item:
    return {"test_code": _TESTS.replace("SENSOR", sensor(number))}


def diagnosis(number: int) -> Item:
    failure: dict[str, JsonValue] = {
        "test_name": "test_mean",
        "error_message": _message(number),
        "expected_behavior": "the mean of three readings",
        "actual_behavior": "a gap counts as a reading",
        "root_cause": f"the gaps of {sensor(number)} are read as zero",
        "suggested_fix": "",
        "error_type": "logic",
    }
    return {"failures": [failure]}


def failing(number: int) -> Callable[[RunSpec], RunOutcome]:
    """A run in which test_mean fails; its message differs in words, which makes it another failure."""
    return failed({"test_mean": ("AssertionError", _message(number))})


def _message(number: int) -> str:
    return f"assert mean_of_{sensor(number)} == 3.0 ± 3.0e-06"


def sensor(number: int) -> str:
    """A name for a number, of one length and without digits: two numbers are never one failure."""
    return "sensor_" + "".join("abcdefghij"[int(digit)] for digit in f"{number:06d}")
