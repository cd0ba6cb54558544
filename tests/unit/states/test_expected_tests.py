"""Collection says which tests there are; the text is a second witness, where it can know."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from codetape.states import events as e
from codetape.states.expected_tests import certain_tests, may_define_tests
from codetape.states.values import (
    ImageRef,
    RunOutcome,
    RunSpec,
    TestReport,
    TestResult,
    TextFile,
)
from codetape.states.verdict import verdict

A = "def test_a(self): ...\n"
NOT_CERTAIN = {
    "an abstract base": f"import abc\nclass TestBase(abc.ABC):\n    {A}class TestX(TestBase): ...\n",
    "a mixin": f"import unittest\nclass Mixin:\n    {A}class X(Mixin, unittest.TestCase): ...\n",
    "switched on": f"class TestBase:\n    __test__ = False\n    {A}"
    "class TestX(TestBase):\n    __test__ = True\n",
    "a dataclass": "import dataclasses as d\n@d.dataclass\nclass TestData:\n    x: int\n"
    "def test_x(): ...\n",
    "a deleted base": f"import unittest\nclass Base(unittest.TestCase):\n    {A}"
    "class X(Base): ...\ndel Base\n",
    "a deleted test": "def test_a(): ...\ndef test_b(): ...\ndel test_a\n",
    "a name bound again": "def test_a(): ...\ndef test_b(): ...\ntest_a = None\n",
    "a false condition": "import sys\nif sys.platform == 'no':\n    def test_a(): ...\n"
    "else:\n    def test_b(): ...\n",
    "an optional module": "try:\n    import no_such\n    def test_a(): ...\nexcept ImportError: ...\n"
    "def test_b(): ...\n",
    "marked later": "def test_a(): ...\ndef test_b(): ...\ntest_a.__test__ = False\n",
    "a property": f"class TestX:\n    @property\n    {A}    def test_b(self): ...\n",
    "dynamic": "def made(): ...\nglobals()['test_made'] = made\n",
    "an enum": "import enum\nclass TestKind(enum.Enum):\n    test_a = 1\ndef test_b(): ...\n",
    "a nested class of a case": "import unittest\nclass X(unittest.TestCase):\n"
    f"    def test_b(self): ...\n    class TestY:\n        {A}",
    "an imported test": "from textwrap import dedent as test_dedent\ndef test_b(): ...\n",
}
CERTAIN = {
    "plain": ("def test_a(): ...\n", ["test_a"]),
    "if True": ("if True:\n    def test_a(): ...\n", ["test_a"]),
    "class": (f"class TestX:\n    {A}", ["TestX::test_a"]),
    "nested": (f"class TestX:\n    class TestY:\n        {A}", ["TestX::TestY::test_a"]),
    "case": (f"import unittest\nclass X(unittest.TestCase):\n    {A}", ["X::test_a"]),
    "marked": ("import pytest\n@pytest.mark.x\nasync def test_a(): ...\n", ["test_a"]),
}
CONSTRUCTED = {
    "__init__": f"class TestX:\n    def __init__(self): ...\n    {A}",
    "__new__": f"class TestX:\n    def __new__(cls): ...\n    {A}",
    "a dataclass": f"import dataclasses as d\n@d.dataclass\nclass TestX:\n    x: int = 1\n    {A}",
    "inherited": f"class Base:\n    def __init__(self): ...\nclass TestX(Base):\n    {A}",
    "inherited tests": f"class Base:\n    {A}class TestX(Base):\n    def __init__(self): ...\n",
}


class Collection:
    """Has pytest collect a file, in this process, and keeps what it says."""

    def __init__(self, file: Path) -> None:
        self.report = TestReport(finished=True)
        options = ["-c", "/dev/null", "--rootdir", str(file.parent), "--noconftest", "-q"]
        quiet = [*options, "-p", "no:cacheprovider", "-W", "default", "--collect-only"]
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main([*quiet, "--import-mode=importlib", str(file)], [self])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        ids = [item.nodeid.partition("::")[2] for item in session.items]
        passed = tuple(TestResult(id=name, outcome="passed") for name in ids)
        functions = [item.function for item in session.items if isinstance(item, pytest.Function)]
        lines = tuple(function.__code__.co_firstlineno for function in functions)
        parts = {"collected": tuple(ids), "results": passed, "lines": lines}
        self.report = self.report.model_copy(update=parts)

    def pytest_warning_recorded(self, warning_message: object) -> None:
        told = str(getattr(warning_message, "message", ""))
        warnings = (*self.report.warnings, told)
        self.report = self.report.model_copy(update={"warnings": warnings})


def collected(source: str, folder: Path) -> TestReport:
    file = folder / f"test_{folder.name}.py"  # pytest imports a module of one name once
    file.write_text(source)
    return Collection(file).report


def judged(source: str, report: TestReport) -> e.Event:
    files = (TextFile(name="solution.py", text=""), TextFile(name="test_solution.py", text=source))
    spec = RunSpec(purpose="tests", image=ImageRef(ref="i", spec_key="k"), files=files)
    return verdict(spec, RunOutcome(exit_status=0, report=report))


@pytest.mark.parametrize("case", NOT_CERTAIN)
def test_collection_decides_where_the_text_cannot_know(case: str, tmp_path: Path) -> None:
    source = NOT_CERTAIN[case]
    report = collected(source, tmp_path)
    assert may_define_tests(source)
    assert isinstance(judged(source, report), e.TestsPassed), report


@pytest.mark.parametrize("case", CERTAIN)
def test_a_certain_test_that_collection_lacks_is_no_pass(case: str, tmp_path: Path) -> None:
    source, ids = CERTAIN[case]
    report = collected(source, tmp_path)
    assert [test.id for test in certain_tests(source)] == ids == list(report.collected)
    other = TestReport(
        finished=True,
        collected=("test_x",),
        lines=(1,),
        results=(TestResult(id="test_x", outcome="passed"),),
    )
    event = judged(source, other)
    assert isinstance(event, e.TestsFailed)
    assert [(f.test_id, f.problem.type) for f in event.failures] == [(ids[0], "NotReported")]
    assert (event.expected, event.run.report) == (tuple(ids), other)


@pytest.mark.parametrize("case", CONSTRUCTED)
@pytest.mark.parametrize("other", ["", "def test_b(): ...\n"])
def test_a_class_with_a_constructor_never_passes(case: str, other: str, tmp_path: Path) -> None:
    source = CONSTRUCTED[case] + other
    event = judged(source, collected(source, tmp_path))
    assert isinstance(event, e.TestsNotCollected)
    assert event.failure.label == "test_error"
    assert event.failure.because.startswith("class TestX has an __")


def test_a_base_whose_tests_run_in_a_child_is_no_fault(tmp_path: Path) -> None:
    source = (
        "import unittest\nclass TestBase:\n    def __init__(self, *a): super().__init__(*a)\n"
        f"    {A}class X(TestBase, unittest.TestCase): ...\n"
    )
    assert isinstance(judged(source, collected(source, tmp_path)), e.TestsPassed)


def test_another_function_in_the_place_of_a_test_is_a_fault_of_the_code(tmp_path: Path) -> None:
    source = "import solution\n\ndef test_a():\n    assert 0\n"
    for line in (0, 1, 4):
        report = TestReport(
            finished=True,
            collected=("test_a",),
            lines=(line,),
            results=(TestResult(id="test_a", outcome="passed"),),
        )
        event = judged(source, report)
        assert isinstance(event, e.TestsFailed)
        assert [failure.label for failure in event.failures] == ["logic"]


@pytest.mark.parametrize(
    "source", ["", "x = 1\n", "class Dummy(Exception): ...\n", "def f(): ...\n"]
)
def test_a_file_without_a_test_is_known_before_the_run(source: str) -> None:
    assert not may_define_tests(source)
