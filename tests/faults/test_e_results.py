"""Faults of pytest and of results: what a real run of hostile or unlucky code is judged to be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codetape.states import events as e
from codetape.states.values import TextFile
from tests.support.judging import Judge, judge

pytestmark = pytest.mark.bubblewrap

WRONG = "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 4\n"
RIGHT = "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
ADD = "def add(a, b):\n    return a + b\n"
FLIP = """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    report.outcome = "passed"
    return report
"""
PLANTING = f"""
import os, sys
for folder in ("/var/inputs", os.getcwd(), "/tmp", "/"):
    try:
        with open(os.path.join(folder, "conftest.py"), "w") as file:
            file.write({FLIP!r})
    except OSError:
        pass
{ADD}
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Judge]:
    with judge() as made:
        yield made


def test_e2_a_planted_conftest_turns_nothing_into_a_pass(bench: Judge) -> None:
    judged = bench.tests(WRONG, PLANTING)
    assert isinstance(judged.event, e.TestsFailed)
    assert [*judged.labels] == ["test_add"]


def test_e2_an_innocent_conftest_stops_nothing(bench: Judge) -> None:
    planted = (TextFile(name="conftest.py", text="raise SystemExit(4)\n"),)
    assert isinstance(bench.tests(RIGHT, files=planted).event, e.TestsPassed)


@pytest.mark.parametrize(
    "tests",
    [
        "x = 1\n",
        "import pytest\npytest.skip('not here', allow_module_level=True)\n",
        "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n",
    ],
    ids=["no test", "a module that is skipped", "all skipped"],
)
def test_e3_nothing_executed_is_no_pass(bench: Judge, tests: str) -> None:
    judged = bench.tests(tests)
    assert isinstance(judged.event, e.TestsNotCollected)
    assert [*judged.labels.values()] == ["test_error"]


def test_e4_an_import_error_is_told_from_an_interrupt(bench: Judge) -> None:
    broken = bench.tests("from solution import nothing\n")
    interrupt = "import os, signal\ndef test_a(): os.kill(os.getpid(), signal.SIGINT)\n"
    interrupted = bench.tests(interrupt)
    assert isinstance(broken.event, e.TestsNotCollected)
    assert isinstance(interrupted.event, e.TestsFailed)
    assert interrupted.event.failures[0].problem.type == "KeyboardInterrupt"


@pytest.mark.parametrize("status", [0, 1])
def test_e5_an_exit_at_import_is_a_fault_of_the_code(bench: Judge, status: int) -> None:
    judged = bench.tests(RIGHT, f"import sys\nsys.exit({status})\n")
    assert isinstance(judged.event, e.TestsNotCollected)
    assert judged.event.failure.because == "the solution exits on import"
    assert [*judged.labels.values()] == ["logic"]


def test_e6_ids_of_parameters_survive_whole(bench: Judge) -> None:
    tests = """
        import pytest
        @pytest.mark.parametrize("x", ["a b", "x - y", "[z]", "PASSED", "é\\n", "a::b"])
        def test_p(x):
            assert x == "PASSED"
    """
    judged = bench.tests(tests)
    shapes = ("a b", "x - y", "[z]", "\\xe9\\n", "a::b")
    assert [*judged.labels] == [f"test_p[{shape}]" for shape in shapes]
    assert "test_p[PASSED]" in judged.report.collected


def test_e7_colour_that_is_forced_changes_nothing(bench: Judge) -> None:
    forced = {"FORCE_COLOR": "3", "PY_COLORS": "1", "PYTEST_ADDOPTS": "--color=yes"}
    assert isinstance(bench.tests(RIGHT, environment=forced).event, e.TestsPassed)
    failed = bench.tests(WRONG, environment=forced)
    assert isinstance(failed.event, e.TestsFailed)
    assert "\x1b" not in failed.event.failures[0].problem.message


def test_e8_nothing_is_read_from_what_was_printed(bench: Judge) -> None:
    lines = "\\ntest_solution.py::test_add PAS\\nSED [100%]\\n== 1 passed in 0.01s ==\\n"
    tests = f"import sys\nsys.stdout.write({lines!r})\nsys.__stderr__.write({lines!r})\n{WRONG}"
    judged = bench.tests(tests, environment={"COLUMNS": "20"})
    assert isinstance(judged.event, e.TestsFailed)
    assert [*judged.labels] == ["test_add"]


def test_e9_a_thread_that_goes_on_keeps_no_verdict_back(bench: Judge) -> None:
    endless = "import threading, time\nthreading.Thread(target=time.sleep, args=[900]).start()\n"
    judged = bench.tests(RIGHT, endless + ADD)
    assert isinstance(judged.event, e.TestsPassed)
    assert (judged.run.timed_out, judged.run.exit_status) == (False, 0)


def test_e10_a_plugin_of_an_installed_package_is_not_loaded(bench: Judge) -> None:
    installed = (
        TextFile(name="evil-1.0.dist-info/METADATA", text="Name: evil\nVersion: 1.0\n"),
        TextFile(name="evil-1.0.dist-info/entry_points.txt", text="[pytest11]\nevil = evil\n"),
        TextFile(name="evil.py", text="raise RuntimeError('loaded')\n"),
    )
    assert isinstance(bench.tests(RIGHT, files=installed).event, e.TestsPassed)
