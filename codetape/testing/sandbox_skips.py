"""The part of the sandbox contract that is about skips, of the tests and of the solution."""

from __future__ import annotations

import pytest

from codetape.testing.sandbox_reports import ONE
from codetape.testing.sandbox_runs import Runs, SandboxCase, verdicts

SKIPPING = {
    "a SkipTest": "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('no')",
    "a skip": "import pytest\ndef add(a, b):\n    pytest.skip('no')",
    "an xfail": "import pytest\ndef add(a, b):\n    pytest.xfail('no')",
    "an importorskip": "import pytest\ndef add(a, b):\n    pytest.importorskip('no_such')",
    "a class of its own": "import pytest\nclass Odd(pytest.skip.Exception):\n"
    "    __traceback__ = __context__ = None\ndef add(a, b):\n    raise Odd('no')",
    "an xfail of its own": "import pytest\nclass Odd(pytest.xfail.Exception): pass\n"
    "def add(a, b):\n    raise Odd('no')",
    "a decorated function": "import unittest\n@unittest.skip('no')\ndef add(a, b): pass",
    "a function of unittest": "import unittest\nadd = unittest.TestCase.skipTest",
    "a text": "exec('import pytest\\ndef add(a, b):\\n    pytest.skip(str(a))', globals_ := {})\n"
    "add = globals_['add']",
    "a thread": "from concurrent.futures import ThreadPoolExecutor as Pool\nimport pytest\n"
    "def add(a, b):\n    with Pool() as pool: return pool.submit(pytest.skip, 'no').result()",
    "a group": "import pytest\ntry:\n    BaseExceptionGroup\nexcept NameError:\n"
    "    def BaseExceptionGroup(_, all): return all[0]\n"
    "def add(a, b):\n    raise BaseExceptionGroup('g', [pytest.skip.Exception('no')])",
    "an exit": "import sys\ndef add(a, b):\n    sys.exit(0)",
}
SKIPPED_BY_SOLUTION = """
    import unittest
    import pytest
    from solution import add
    @pytest.fixture
    def three():
        return add(1, 2)
    def test_function(): assert add(1, 2) == 3
    def test_fixture(three): assert three == 3
    def test_subtests(subtests):
        with subtests.test("one"): assert add(1, 2) == 3
    class TestMethods:
        def test_method(self): assert add(1, 2) == 3
    class Cases(unittest.TestCase):
        def test_case(self): self.assertEqual(add(1, 2), 3)
        def test_part(self):
            with self.subTest("one"): self.assertEqual(add(1, 2), 3)
    def test_other(): pass
"""
OWN_SKIPS = """
    import sys, unittest
    import pytest
    from solution import add
    @pytest.fixture
    def missing():
        pytest.importorskip("no_such_module")
    def need(what):
        if what:
            raise unittest.SkipTest("not here")
    def test_call(): pytest.skip("no")
    def test_helper(): need("this")
    def test_fixture(missing): pass
    @pytest.mark.skipif(sys.platform == "linux", reason="no")
    def test_platform(): pass
    @pytest.mark.xfail
    def test_xfail(): assert add(None, 1) == 1
    def test_callback(): assert sorted([1, 2], key=lambda n: pytest.skip("no"))
    class Cases(unittest.TestCase):
        def test_skip(self): self.skipTest("no")
        def test_raise(self): raise unittest.SkipTest("no")
        @unittest.skip("no")
        def test_decorated(self): pass
        @unittest.expectedFailure
        def test_expected(self): self.assertEqual(add(1, 2), 4)
    def test_add(): assert add(1, 2) == 3
"""


class SkipContract(SandboxCase):
    """A solution excuses itself from no test."""

    @pytest.mark.parametrize("case", SKIPPING)
    def test_a_skip_of_the_solution_is_a_failure(self, make: Runs, case: str) -> None:
        told = verdicts(make.report(SKIPPED_BY_SOLUTION, SKIPPING[case]))
        assert told.pop("test_other") == "passed"
        assert set(told.values()) == {"failed"}, told

    def test_a_skip_of_the_solution_at_import_is_an_error(self, make: Runs) -> None:
        report = make.report(ONE, "import pytest\npytest.skip('no', allow_module_level=True)")
        assert [problem.type for problem in report.errors] == ["SolutionSkipped"]

    @pytest.mark.parametrize(
        "words", ["", "# lines to skip: xfail", '"""Rows to skip."""', "rows = dict(skip='xfail')"]
    )
    def test_a_mark_of_the_solution_excuses_no_test(self, make: Runs, words: str) -> None:
        """A word in a comment, a text or the name of an argument is no skip of the tests."""
        mark = "import sys, pytest\nsys.modules['test_solution'].pytestmark = pytest.mark.xfail\n"
        report = make.report(f"{words}\n{ONE}", f"{mark}def add(a, b): return 0")
        assert verdicts(report) == {"test_add": "failed"}

    def test_skips_of_the_tests_stay_skips(self, make: Runs) -> None:
        told = verdicts(make.report(OWN_SKIPS))
        assert told.pop("test_add") == "passed"
        expected = {told.pop(name) for name in ("test_xfail", "Cases::test_expected")}
        assert (expected, set(told.values())) == ({"xfailed"}, {"skipped"}), told
