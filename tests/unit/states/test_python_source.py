"""What a file says without being run, and what it would take a run to know."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from codetape.states.python_source import (
    compile_error,
    defined_tests,
    imported_names,
    imports_of,
    public_functions,
    shadowed_tests,
    syntax_error,
)

EVERYTHING = """\
import asyncio, os.path
import numpy as np
from a.b import c, d as e
from x import *
from . import near
from .near import thing
import importlib


def work():
    import inside
    try:
        import maybe
    except ImportError:
        maybe = None
    importlib.import_module("by.name")
    importlib.import_module(".relative", "pkg")
    pytest.importorskip("skipped_without")
    __import__("dunder")
    importlib.import_module(name)
    return "import nothing"
"""

FILE = """\
import unittest
import pytest
from unittest import TestCase


@pytest.fixture
def test_data():
    return 1


@pytest.fixture(scope="module")
def test_more(): ...


@pytest.mark.parametrize(
    "x",
    [1, 2],
)
def test_plain(x):
    assert x


async def test_async():
    assert 1


def helper():
    def test_inner(): ...


def testing_counts_for_pytest_too(): ...


class TestGroup:
    def test_method(self): ...

    class TestNested:
        def test_deep(self): ...

    class Helper:
        def test_no(self): ...


class TestWithInit:
    def __init__(self): ...
    def test_no(self): ...


class Sums(unittest.TestCase):
    def __init__(self, *a): super().__init__(*a)
    def test_sum(self): ...
    def helper(self): ...


class Others(TestCase):
    def test_other(self): ...


class Plain:
    def test_no(self): ...


class TestShared:
    __test__ = False
    def test_no(self): ...


def test_marked(url): ...


class TestMarked:
    def test_no(self): ...


test_marked.__test__ = False
TestMarked.__test__ = False
"""


def test_imports_are_found_wherever_they_stand() -> None:
    assert imported_names(EVERYTHING) == (
        "a.b.c", "a.b.d", "asyncio", "by.name", "dunder", "importlib", "inside", "maybe", "numpy",
        "os.path", "skipped_without", "x",
    )  # fmt: skip


def test_a_file_that_does_not_parse_says_nothing() -> None:
    assert imported_names("import a\ndef (") == ()
    assert defined_tests("def test_a(): ...\ndef (") == ()
    assert public_functions("def a(): ...\ndef (") == ()


def test_a_thousand_levels_are_no_reason_to_fail() -> None:
    levels = "".join(f"elif x == {n}: pass\n" for n in range(2000))
    assert imported_names(f"if x: pass\n{levels}else:\n    import a\n") == ("a",)


def test_imports_of_several_sources_are_one_list() -> None:
    assert imports_of("import b\nimport a", "import b.c") == ("a", "b", "b.c")


def test_the_tests_are_those_that_pytest_collects(tmp_path: Path) -> None:
    """Asked of pytest itself: the rules must know the ids before the run."""
    (tmp_path / "test_solution.py").write_text(FILE)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run(
        [*command, "-W", "ignore", "-c", "/dev/null", "--rootdir", ".", "test_solution.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in found.stdout.splitlines() if "::" in line]
    collected = [line.partition("::")[2].partition("[")[0] for line in lines]
    assert [test.id for test in defined_tests(FILE)] == list(dict.fromkeys(collected))


CLASS = "class TestX:\n    def test_a(self): ...\n"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def test_a(): ...\ndef test_a(): ...\n", ("test_a",)),
        ("def test_a(): ...\nasync def test_a(): ...\n", ("test_a",)),
        (CLASS + CLASS.replace("test_a", "test_b"), ("TestX",)),
        (f"{CLASS}    def test_a(self): ...\n", ("TestX::test_a",)),
        (CLASS + CLASS.replace("TestX", "TestY"), ()),
        (f"{CLASS}def test_a(): ...\n", ()),
        ("def help_(): ...\ndef help_(): ...\ndef test_a(): ...\n", ()),
        ("def test_a(: ...", ()),
    ],
)
def test_a_second_test_of_one_name_hides_the_first(source: str, names: tuple[str, ...]) -> None:
    assert shadowed_tests(source) == names


def test_a_test_has_the_lines_of_its_decorators() -> None:
    lines = FILE.split("\n")
    plain = next(test for test in defined_tests(FILE) if test.id == "test_plain")
    assert lines[plain.first_line - 1] == "@pytest.mark.parametrize("
    assert lines[plain.last_line - 1] == "    assert x"


@pytest.mark.parametrize("source", ["", "x = 1", "async def f():\n    await g()", '"""é🧪"""'])
def test_what_parses_has_no_error(source: str) -> None:
    assert syntax_error(source) is None


@pytest.mark.parametrize(
    "source", ["def (", "\x00", "x" + "(" * 300, "if 1:\nx", "-" * 100_000 + "1"]
)
def test_what_does_not_parse_says_why(source: str) -> None:
    assert syntax_error(source)


def test_what_parses_and_cannot_be_run_says_why() -> None:
    assert compile_error("x = 1\n") is None
    assert compile_error("x = 1\nreturn x") == "line 2: 'return' outside function"
    assert compile_error("x = '\0'")
    assert compile_error("+".join("1" * 100_000))


def test_an_error_names_its_line() -> None:
    assert (syntax_error("x = 1\ny = = 2") or "").startswith("line 2: ")


@pytest.mark.parametrize("action", ["error", "always", "ignore"])
def test_no_filter_of_the_process_decides_what_parses(
    action: str, recwarn: pytest.WarningsRecorder
) -> None:
    """An odd escape is a warning of the parser; where warnings are errors, it is read all the same."""
    source = f'pattern = "\\d"  # {action}'
    with warnings.catch_warnings():
        warnings.simplefilter(action)  # type: ignore[arg-type]
        assert syntax_error(source) is None
    assert len(recwarn) == 0


def test_public_functions_are_what_tests_can_import() -> None:
    source = (
        "def a(): ...\nasync def b(): ...\nclass C:\n    def d(self): ...\ndef _e(): ...\nx = 1"
    )
    assert public_functions(source) == ("a", "b", "C")
