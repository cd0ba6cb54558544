"""The part of the sandbox contract that is about what a run of tests reports."""

from __future__ import annotations

import pytest

from codetape.states.values import Limits, Problem
from codetape.testing.sandbox_runs import Runs, SandboxCase, verdicts

ONE = "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
AT_IMPORT = {
    "sys.exit": ("import sys; sys.exit(0)", "SystemExit", "solution"),
    "syntax": ("def add(:", "SyntaxError", "solution"),
    "missing module": ("import no_such_module", "ModuleNotFoundError", "solution"),
    "missing name": ("", "ImportError", "tests"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt", "solution"),
    "exception": ("1 / 0", "ZeroDivisionError", "solution"),
    "own exception": ("class Odd(Exception): pass\nraise Odd('x')", "solution.Odd", "solution"),
}
LEFT_OUT = """
    import unittest
    class TestX:
        def __init__(self): ...
        def test_no(self): pass
    class TestBase:
        __test__ = False
        def test_a(self): pass
    class TestChild(TestBase):
        __test__ = True
    class Base(unittest.TestCase):
        def test_b(self): pass
    class Case(Base): pass
    del Base
    if True:
        def test_c(): pass
"""
IDS = """
    import pytest
    @pytest.mark.parametrize("x", ["a b", "x - y", "[z]", "PASSED", "é\\n", "a::b", ""])
    def test_p(x):
        pass
    class TestC:
        @pytest.mark.parametrize("x", [1, 2])
        def test_m(self, x):
            assert x == 1
"""
EVERY_OUTCOME = """
    import unittest, pytest
    @pytest.fixture
    def torn():
        yield
        raise OSError("torn")
    def test_passed(): pass
    def test_failed(): assert 1 == 2
    def test_skipped(): pytest.skip("not now")
    @pytest.mark.xfail
    def test_xfailed(): assert False
    @pytest.mark.xfail
    def test_xpassed(): pass
    @pytest.mark.xfail(strict=True)
    def test_strict(): pass
    def test_setup(no_such_fixture): pass
    def test_teardown(torn): pass
    class TestU(unittest.TestCase):
        def test_u(self): self.assertEqual(1, 2)
"""
# Exceptions whose class lies, raises, or lacks what every class has.
ODD_EXCEPTIONS = """
    import json
    from unittest import mock
    class Text(str):
        def encode(self, *_): raise ValueError
    def test_module(): raise type("E", (Exception,), {"__module__": None})("x")
    def test_line():
        error = SyntaxError("x")
        error.filename, error.lineno = "f", "no number"
        raise error
    def test_text(): raise type("E", (Exception,), {"__str__": lambda self: Text("x")})
    def test_class(): raise type("E", (Exception,), {"__class__": property(lambda _: ImportError)})
    def test_exit():
        def leave(self): raise SystemExit(0)
        raise type("E", (Exception,), {"__str__": leave, "__repr__": leave})
    def test_patched(): mock.patch("json.dumps", side_effect=ValueError).start()
    def test_last(): pass
"""
LONG_IDS = """
    import pytest
    @pytest.mark.parametrize("x", range(150), ids=["x" * 10_000 + str(n) for n in range(150)])
    def test_a(x): pass
    @pytest.mark.parametrize("x", [1], ids=["x" * 2_000_000])
    def test_b(x): pass
"""
TALKATIVE = """
    import pytest
    @pytest.mark.parametrize("x", range(2300))
    def test_a(x):
        print("x" * 9000)
        assert x != 2200
"""


class ReportContract(SandboxCase):
    """What a run of tests reports, whatever the code does."""

    def test_each_result_is_reported(self, make: Runs) -> None:
        report = make.report(EVERY_OUTCOME)
        assert report.finished
        assert verdicts(report) == {
            "test_passed": "passed",
            "test_failed": "failed",
            "test_skipped": "skipped",
            "test_xfailed": "xfailed",
            "test_xpassed": "xpassed",
            "test_strict": "failed",
            "test_setup": "failed",
            "test_teardown": "failed",
            "TestU::test_u": "failed",
        }
        phases = {result.id: result.phase for result in report.results}
        assert (phases["test_setup"], phases["test_teardown"]) == ("setup", "teardown")
        problem = report.results[-1].problem
        assert problem is not None
        assert problem.frames[0].place == "tests"

    def test_ids_of_any_shape_survive(self, make: Runs) -> None:
        report = make.report(IDS)
        shapes = ["a b", "x - y", "[z]", "PASSED", "\\xe9\\n", "a::b", ""]
        cases = [f"test_p[{shape}]" for shape in shapes]
        assert report.collected == (*cases, "TestC::test_m[1]", "TestC::test_m[2]")
        assert verdicts(report)["TestC::test_m[2]"] == "failed"

    def test_long_ids_stay_apart(self, make: Runs) -> None:
        report = make.report(LONG_IDS)
        assert (report.finished, len(verdicts(report))) == (True, 151)

    def test_exceptions_of_any_shape_spoil_no_report(self, make: Runs) -> None:
        report = make.report(ODD_EXCEPTIONS)
        names = ("module", "line", "text", "class", "exit")
        failed = {f"test_{name}": "failed" for name in names}
        assert report.finished
        assert verdicts(report) == {**failed, "test_patched": "passed", "test_last": "passed"}

    @pytest.mark.slow
    def test_many_tests_with_much_to_say_are_all_reported(self, make: Runs) -> None:
        outcome = make.tests(TALKATIVE, limits=Limits(seconds=60.0))
        assert outcome.report is not None
        assert (outcome.report.finished, outcome.too_much_output) == (True, False)
        failed = [result for result in outcome.report.results if result.outcome == "failed"]
        assert [result.id for result in failed] == ["test_a[2200]"]

    def test_a_failure_has_type_message_and_frames(self, make: Runs) -> None:
        tests = "from solution import half\ndef test_half():\n    half('x')\n"
        report = make.report(tests, "def half(x):\n    return x / 2\n")
        problem = report.results[0].problem
        assert problem is not None
        assert problem.type == "TypeError"
        assert "unsupported operand" in problem.message
        places = [(f.place, f.file, f.line, f.function) for f in problem.frames]
        assert places == [
            ("tests", "test_solution.py", 3, "test_half"),
            ("solution", "solution.py", 2, "half"),
        ]

    def test_a_bare_assert_says_what_was_compared(self, make: Runs) -> None:
        report = make.report("def test_bare():\n    assert 1 == 2\n")
        problem = report.results[0].problem
        assert problem is not None
        assert (problem.type, problem.message) == ("AssertionError", "assert 1 == 2")

    def test_what_a_test_printed_is_with_it(self, make: Runs) -> None:
        tests = "import solution\ndef test_a(): print('of a')\ndef test_b(): print('of b')\n"
        report = make.report(tests, "print('at import')\n")
        assert [result.captured for result in report.results] == ["of a\n", "of b\n"]

    def test_what_a_test_printed_is_bounded(self, make: Runs) -> None:
        report = make.report("def test_a():\n    print('<' + 'x' * 1_000_000 + '>')\n")
        captured = report.results[0].captured
        assert captured.startswith("<")
        assert captured.endswith(">\n")
        assert len(captured) < 50_000

    @pytest.mark.parametrize("case", AT_IMPORT)
    def test_what_happens_at_import_is_an_error_of_collection(self, make: Runs, case: str) -> None:
        solution, kind, place = AT_IMPORT[case]
        outcome = make.tests(ONE, solution)
        assert outcome.report is not None
        assert outcome.report.finished
        problem: Problem = outcome.report.errors[0]
        own = [frame.place for frame in problem.frames if frame.place != "other"]
        assert (problem.type, own[-1]) == (kind, place)
        assert outcome.report.collected == ()

    def test_a_missing_module_is_named(self, make: Runs) -> None:
        report = make.report("import no_such.part\ndef test_a(): pass\n")
        assert report.errors[0].module == "no_such"

    def test_a_module_that_a_test_misses_is_named(self, make: Runs) -> None:
        report = make.report("def test_a():\n    import no_such\n")
        problem = report.results[0].problem
        assert problem is not None
        assert (problem.type, problem.module) == ("ModuleNotFoundError", "no_such")

    @pytest.mark.parametrize(
        "tests", ["x = 1\n", "import pytest\npytest.skip('no', allow_module_level=True)\n"]
    )
    def test_no_test_is_no_result(self, make: Runs, tests: str) -> None:
        report = make.report(tests)
        assert (report.finished, report.collected, report.results) == (True, (), ())

    def test_collection_tells_ids_lines_and_what_it_left_out(self, make: Runs) -> None:
        report = make.report(LEFT_OUT)
        lines = {"TestChild::test_a": 8, "Case::test_b": 12, "test_c": 16}
        assert dict(zip(report.collected, report.lines, strict=True)) == lines
        assert ["'TestX'" in warning for warning in report.warnings] == [True]
        assert (report.finished, report.errors) == (True, ())

    def test_the_exit_status_is_that_of_the_tests(self, make: Runs) -> None:
        assert make.tests("def test_a(): pass\n").exit_status == 0
        assert make.tests("def test_a(): assert False\n").exit_status == 1

    def test_an_exit_in_the_middle_leaves_no_end_marker(self, make: Runs) -> None:
        outcome = make.tests("import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n")
        report = outcome.report
        assert report is not None
        assert (report.finished, report.running) == (False, "test_b")
        assert verdicts(report) == {"test_a": "passed"}
        assert outcome.exit_status == 0

    @pytest.mark.parametrize("how", ["sys.exit(0)", "raise KeyboardInterrupt", "pytest.exit('x')"])
    def test_a_test_that_wants_to_end_pytest_fails(self, make: Runs, how: str) -> None:
        report = make.report(f"import sys, pytest\ndef test_a():\n    {how}\ndef test_b(): pass\n")
        assert report.finished
        assert verdicts(report) == {"test_a": "failed", "test_b": "passed"}

    def test_a_crash_is_a_signal(self, make: Runs) -> None:
        outcome = make.tests("import os\ndef test_a(): os.kill(os.getpid(), 11)\n")
        assert outcome.report is not None
        assert (outcome.signal, outcome.report.finished) == (11, False)
        assert outcome.report.running == "test_a"

    def test_a_forked_test_reports_once(self, make: Runs) -> None:
        tests = "import os\ndef test_a():\n    assert os.fork() != 0\n    os.wait()\n"
        report = make.report(tests)
        assert verdicts(report) == {"test_a": "passed"}

    def test_waiting_for_input_ends_at_once(self, make: Runs) -> None:
        report = make.report("def test_a():\n    input()\n")
        problem = report.results[0].problem
        assert problem is not None
        assert problem.type == "EOFError"
