"""A harness is one test function that could fail."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states.python_source import defined_tests
from codetape.states.tools.harness import NAME, appended, as_test, problems

SCRIPT = """\
LIMIT = 3


def count(text):
    return len(text.split())


class Report:
    def lines(self):
        return []
"""


def test_assertions_that_stand_alone_become_a_function() -> None:
    test = as_test("text = '''a\n  b'''\nassert count(text) == 2\n")
    namespace: dict[str, object] = {}
    exec(appended(SCRIPT, test), namespace)
    namespace[NAME]()  # type: ignore[operator]


@given(st.text())
def test_a_text_in_a_harness_stays_the_same_to_the_letter(text: str) -> None:
    test = as_test(f"assert count({text!r}) == 1\n")
    constants = [n.value for n in ast.walk(ast.parse(test)) if isinstance(n, ast.Constant)]
    assert text in constants


def test_a_harness_that_is_a_function_stays_as_it_is() -> None:
    harness = (
        f"import math\n\n\ndef {NAME}():\n    # why\n    assert count('') == math.floor(0.5)\n"
    )
    assert as_test(harness) == harness


@pytest.mark.parametrize(
    "harness",
    [
        "assert count('a b') == 2",
        "assert not count('')",
        "import pytest\nwith pytest.raises(AttributeError):\n    count(None)",
        "for text in ('', ' '):\n    assert count(text) == 0",
        "try:\n    count(None)\nexcept AttributeError:\n    pass\nelse:\n    assert count('') == 1",
        "try:\n    assert count('a') == 1\nexcept AssertionError as no:\n    raise ValueError from no",
        "import sys\ntry:\n    assert count('a') == 1\nexcept AssertionError:\n    sys.exit(1)",
        "try:\n    assert count('a') == 1\nexcept TypeError:\n    pass",
        "text = 'a b'\nassert count(text) == 2",
        "def test_a():\n    assert count('') == 0\n\ndef test_b():\n    assert count('a') == 1",
        "class TestCount:\n    def test_one(self):\n        assert count('a') == 1",
        "def check(n):\n    assert count('a' * n) == 1\n\ndef test_logic():\n    check(2)",
        "def check():\n    assert count('') == 0\n\ncheck()",
        "from pytest import raises\nwith raises(AttributeError):\n    count(None)",
        "from numpy.testing import assert_allclose\nassert_allclose(count('a'), 1.0)",
        (
            "import unittest\n\nclass Count(unittest.TestCase):\n    def test_one(self):\n"
            "        self.assertEqual(count('a'), 1)"
        ),
        "import asyncio\n\nasync def check():\n    assert not count('')\n\nasyncio.run(check())",
        "def test_logic(tmp_path):\n    assert count(tmp_path.name) == 1",
        "class Fake:\n    def count(self):\n        return ''\nassert count(Fake().count()) == 0",
        "lines = ['a']\nassert count(lines[0]) == 1",  # as a method of the script is called
    ],
)
def test_what_could_fail_is_fine(harness: str) -> None:
    assert problems(SCRIPT, as_test(harness)) == ()


@pytest.mark.parametrize(
    ("harness", "reason"),
    [
        ("count('a')", "It asserts nothing."),
        ("count('a')\nassert True", "It asserts nothing."),
        ("import unittest\nunittest.TestCase().assertTrue(True)", "It asserts nothing."),
        ("count('a')\nassert 1 == 1, count", "It asserts nothing."),
        ("def count(text):\n    return 2\nassert count('') == 2", "It redefines count"),
        ("class count: pass\nassert count", "It redefines count"),
        ("assert sum([1]) == 1", "It uses no function of the script."),
        ("count = len\nassert count('') == 0", "It redefines count"),
        (
            "def test_logic():\n    global count\n    count = len\n    assert not count('')",
            "It redefines",
        ),
        ("def test_logic(count=len):\n    assert not count('')", "It redefines count"),
        ("from builtins import len as count\nassert not count('')", "It redefines count"),
        ("for count in (len,):\n    assert not count('')", "It redefines count"),
        ("globals()['count'] = len\nassert not count('')", "It calls globals"),
        ("exec('count = len', globals())\nassert not count('')", "It calls exec"),
        ("try:\n    assert count('a') == 7\nexcept AssertionError:\n    pass", "It catches"),
        ("try:\n    assert count('a') == 7\nexcept:\n    print('no')", "It catches its own"),
        ("try:\n    assert count('a')\nexcept (ValueError, Exception):\n    pass", "It catches"),
        (
            "import contextlib\nwith contextlib.suppress(Exception):\n    assert count('')",
            "It catches",
        ),
        (
            "def check():\n    assert count('') == 7",
            "Its assertions are in a function that nothing",
        ),
        (
            "def check():\n    assert count('') == 7\n\ndef test_logic():\n    count('')",
            "Its assertions are in a function that nothing calls",
        ),
        (
            "def check():\n    assert not count('')\n\nif __name__ == '__main__':\n    check()",
            "Its assertions are in a function that nothing calls",
        ),
        ("async def test_logic():\n    assert not count('')", "test_logic is asynchronous"),
        ("def test_logic(lines):\n    assert not count(lines)", "test_logic has a parameter lines"),
        ("from os import *\nassert count('') == 0", "Behind the script it does not compile"),
    ],
)
def test_what_could_not_fail_is_refused(harness: str, reason: str) -> None:
    assert any(said.startswith(reason) for said in problems(SCRIPT, as_test(harness)))


def test_an_import_from_the_future_is_the_scripts_to_make() -> None:
    script = f"from __future__ import annotations\n\n{SCRIPT}"
    for harness in ("assert count('a') == 1", "def test_a():\n    assert count('a') == 1"):
        test = as_test(f"from __future__ import annotations\n\n{harness}")
        assert problems(script, test) == ()
        assert appended(script, test).count("__future__") == 1


def test_functions_of_the_script_are_no_tests_whatever_their_names() -> None:
    script = (
        "def test_link(url):\n    return url != ''\n\n\nclass TestBed:\n    def test_x(self): ...\n"
    )
    harness = as_test("assert test_link('a')")
    assert problems(script, harness) == ()
    assert [test.id for test in defined_tests(appended(script, harness))] == [NAME]
    assert appended(SCRIPT, harness) == f"{SCRIPT.rstrip()}\n\n\n{harness}"
