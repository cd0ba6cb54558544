"""The part of the sandbox contract that is about null solutions, which follow tests that pass."""

from __future__ import annotations

from typing import Any

import pytest

from codetape.states.null_solutions import KINDS
from codetape.states.values import Declared, Limits, RunOutcome
from codetape.testing.sandbox_runs import SOLUTION, Runs, SandboxCase

TESTS = """\
import subprocess, sys
from solution import add

def test_checks():
    assert add(1, 2) == 3

def test_runs():
    add(1, 2)

def test_nothing():
    assert True
"""
BY_SCRIPT = """\
import subprocess, sys
from solution import add

def test_script():
    done = subprocess.run([sys.executable, {words}], {how}capture_output=True, text=True)
    assert done.stdout == "3\\n"
"""
PRINTS = (
    f"{SOLUTION}\ndef main():\n    print(add(1, 2))\n\nif __name__ == '__main__':\n    main()\n"
)
LEAVES = """\
import os
from solution import add

def test_alone():
    for folder in ("/var/outputs", os.environ["TMPDIR"]):
        assert not [name for name in os.listdir(folder) if name == "left"]
        open(f"{folder}/left", "w").close()
    assert add(1, 2) == 3
"""
EARLY = """\
from solution import add

THREE = add(1, 2) + 0

def test_it():
    assert THREE == 3
"""
TOTAL = (Declared(name="total", type="int"),)
WRITES = "\nif __name__ == '__main__':\n    open('/var/outputs/total', 'w').write('3')\n"
EVER = """\
import pytest
from solution import add

@pytest.mark.parametrize("which", range(3))
def test_ever(which):
    while add(1, 2) is None:
        pass
    assert add(1, 2) == 3
"""
FORGING = """\
import os
from solution import add

def test_add():
    assert add(1, 2) == 3
    for descriptor in range(3, 64):
        for kind in ("null", "null end"):
            line = '\\n{"nonce": "%s", "kind": "%s", "solution": "raises"}\\n' % ("0" * 32, kind)
            try:
                os.write(descriptor, line.encode())
            except OSError:
                pass
"""


class NullContract(SandboxCase):
    """Tests that pass are run again with the functions of the solution emptied."""

    def emptied(
        self, make: Runs, tests: str = TESTS, solution: str = SOLUTION, **parts: Any
    ) -> tuple[RunOutcome, dict[str, tuple[str, ...] | None]]:
        """Run tests; return the outcome, and which failed against each null solution."""
        outcome = make.outcome(purpose="tests", solution=solution, tests=tests, nulls=True, **parts)
        return outcome, {null.solution: null.failed for null in outcome.nulls}

    def test_null_solutions_tell_tests_that_check_a_result(self, make: Runs) -> None:
        outcome, failed = self.emptied(make)
        assert outcome.exit_status == 0
        assert failed == {
            "returns_none": ("test_checks",),
            "returns_object": ("test_checks",),
            "raises": ("test_checks", "test_runs"),
        }

    def test_no_null_solution_follows_tests_that_fail(self, make: Runs) -> None:
        outcome, failed = self.emptied(make, TESTS.replace("== 3", "== 4"))
        assert outcome.exit_status == 1
        assert failed == {}

    def test_no_null_solution_runs_unless_it_is_asked_for(self, make: Runs) -> None:
        outcome = make.outcome(purpose="tests", solution=SOLUTION, tests=TESTS)
        assert outcome.nulls == ()

    @pytest.mark.parametrize(
        ("words", "how"),
        [
            ('"/var/inputs/solution.py"', ""),
            ('"solution.py"', 'cwd="/var/inputs", '),
            ('"-m", "solution"', 'cwd="/var/inputs", '),
        ],
    )
    def test_a_script_that_a_test_starts_is_null_too(
        self, make: Runs, words: str, how: str
    ) -> None:
        tests = BY_SCRIPT.format(words=words, how=how)
        _, failed = self.emptied(make, tests, PRINTS)
        assert failed == {"returns_none": ("test_script",)}

    def test_nothing_is_known_where_a_test_starts_another_python(self, make: Runs) -> None:
        code = "import solution; solution.main()"
        tests = BY_SCRIPT.format(words=f'"-c", "{code}"', how='cwd="/var/inputs", ')
        outcome, failed = self.emptied(make, tests, PRINTS)
        assert outcome.exit_status == 0
        assert failed == dict.fromkeys(KINDS)

    @pytest.mark.parametrize("solution", ["add = int.__add__\n", "from operator import add\n"])
    def test_nothing_is_known_of_a_solution_without_functions(
        self, make: Runs, solution: str
    ) -> None:
        outcome, failed = self.emptied(make, TESTS, solution)
        assert outcome.exit_status == 0
        assert failed == dict.fromkeys(KINDS)

    def test_nothing_is_known_where_tests_cannot_be_collected(self, make: Runs) -> None:
        outcome, failed = self.emptied(make, EARLY)
        assert outcome.exit_status == 0
        assert failed == dict.fromkeys(KINDS)

    def test_each_run_begins_as_the_first_did(self, make: Runs) -> None:
        outcome, failed = self.emptied(make, LEAVES)
        assert outcome.exit_status == 0
        assert failed == {"returns_none": ("test_alone",)}

    def test_the_script_runs_after_them_as_if_they_had_not_been(self, make: Runs) -> None:
        outcome, failed = self.emptied(
            make, LEAVES, SOLUTION + WRITES, script=True, declared=TOTAL, outputs=("total",)
        )
        assert outcome.script is not None
        assert outcome.script.exit_status == 0
        assert [(file.name, file.text) for file in outcome.outputs] == [("total", "3")]
        assert failed == {"returns_none": ("test_alone",)}

    def test_what_they_print_is_not_heard(self, make: Runs) -> None:
        tests = TESTS + "\ndef test_words():\n    print(add(1, 2))\n"
        outcome, _ = self.emptied(make, tests)
        assert outcome.stdout == "3\n"

    def test_tests_that_never_end_there_leave_the_pass_as_it_is(self, make: Runs) -> None:
        outcome, failed = self.emptied(make, EVER, limits=Limits(seconds=10.0))
        assert (outcome.exit_status, outcome.timed_out) == (0, False)
        assert outcome.report is not None
        assert outcome.report.finished
        assert failed == dict.fromkeys(KINDS)

    def test_lines_that_tests_write_tell_of_no_null_solution(self, make: Runs) -> None:
        outcome, failed = self.emptied(make, FORGING)
        assert outcome.exit_status == 0
        assert failed == {"returns_none": ("test_add",)}
