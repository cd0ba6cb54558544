"""A harness is one test function that could fail."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states.tools.harness import NAME, appended, as_test, problems

SCRIPT = "LIMIT = 3\n\n\ndef count(text):\n    return len(text.split())\n"


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
    ],
)
def test_what_could_fail_is_fine(harness: str) -> None:
    assert problems(SCRIPT, as_test(harness)) == ()


@pytest.mark.parametrize(
    ("harness", "reason"),
    [
        ("count('a')", "It asserts nothing."),
        ("count('a')\nassert True", "It asserts nothing."),
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
    ],
)
def test_what_could_not_fail_is_refused(harness: str, reason: str) -> None:
    assert any(said.startswith(reason) for said in problems(SCRIPT, as_test(harness)))
