"""The comparison with a recorded session: what it forgives, and what it holds side by side."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from codetape.states.values import ImageRef, ImageSpec, RunSpec, TextFile
from tests.reference.__main__ import CASES
from tests.reference.cases import Compared, compare, functions_of
from tests.reference.outcomes import run_outcome
from tests.reference.scripts import CaseSandbox, Script

FILE = "def test_b():\n    pass\n\n\nclass TestAdd:\n    def test_y(self):\n        pass\n"


def case(name: str) -> dict[str, Any]:
    lines = map(json.loads, CASES.read_text().splitlines())
    return copy.deepcopy(next(line for line in lines if line["id"] == name))


def judged(changed: dict[str, Any], folder: Path) -> Compared:
    return compare(changed, folder)


def test_a_call_of_which_nothing_came_has_no_functions(tmp_path: Path) -> None:
    recorded = case("ok-first")
    entry = {"i": 99, "attempt": 1, "kind": "verify_logic", "llm": True, "outcome": "null"}
    recorded["trace"].append({**entry, "d": {}, "out": None})
    assert judged(recorded, tmp_path).verdict == "same"


@pytest.mark.parametrize(
    "foreign",
    [{"invalid_package": "libbar"}, {"backend_error": "E: Unable to locate package libbar"}],
)
def test_a_build_that_names_what_was_not_asked_for_is_skipped(
    tmp_path: Path, foreign: dict[str, str]
) -> None:
    recorded = case("apt-replaced")
    recorded["script"]["build_image"].insert(0, foreign)
    assert judged(recorded, tmp_path).verdict == "same"


def test_a_build_without_system_packages_misses_none() -> None:
    sandbox = CaseSandbox(Script({"build_image": [{"invalid_package": "libfoo"}]}))
    asyncio.run(sandbox.build(ImageSpec(base="")))  # is there a sandbox?
    built = asyncio.run(sandbox.build(ImageSpec(base="", requirements=("pytest",))))
    assert isinstance(built, ImageRef)


def test_a_method_has_its_id_in_a_title_of_pytest() -> None:
    output = "_____________ TestAdd.test_y _____________\n\nE   AssertionError: assert 1 == 2\n"
    files = (TextFile(name="test_solution.py", text=FILE),)
    spec = RunSpec(purpose="tests", image=ImageRef(ref="img", spec_key="key"), files=files)
    report = run_outcome({"exit_code": "1", "output": f"{output}\n1 passed, 1 failed"}, spec).report
    assert report is not None
    assert {x.id: x.outcome for x in report.results} == {
        "TestAdd::test_y": "failed",
        "test_b": "passed",
    }


def functions_of_are_compared_with_functions() -> None:
    assert functions_of(FILE) == {"test_b"}


def test_a_success_where_theirs_fails_is_better(tmp_path: Path) -> None:
    recorded = case("ok-first")
    recorded["result"] |= {"success": False, "runnable": False, "attempts": 3}
    assert judged(recorded, tmp_path).verdict == "better"


def test_a_failure_where_theirs_succeeds_is_worse(tmp_path: Path) -> None:
    recorded = case("logic-never")
    recorded["result"] |= {"success": True, "runnable": True}
    assert judged(recorded, tmp_path).verdict == "worse"
