"""A repair of a test is refused if it checks less, and taken if it checks no less."""

from __future__ import annotations

import textwrap
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states.patching import Patched, apply_patches
from codetape.states.weakening import weakened_source

TABLE = tomllib.loads(
    (Path(__file__).parents[2] / "data" / "weakenings.toml").read_text(encoding="utf-8")
)["of"]
HEAD = """\
import unittest
import pytest
from solution import add


def quiet(f):
    return None


"""


def repairs(verdict: str) -> list[object]:
    return [pytest.param(old["old"], body, id=name) for old in TABLE for name, body in old[verdict]]


def repaired(old: str, body: str) -> Patched:
    whole = body.startswith(("@", "def test_", "async def test_", "def test_a"))
    head = "def test_a(self):\n" if "(self)" in old else "def test_a():\n"
    code = body if whole else head + textwrap.indent(body, "    ")
    name = "TestAdd::test_a" if "class TestAdd" in old else "test_a"
    return apply_patches(HEAD + old.strip() + "\n", [("test_a", code)], [name])


@pytest.mark.parametrize(("old", "body"), repairs("weaker"))
def test_a_weaker_repair_is_refused(old: str, body: str) -> None:
    result = repaired(old, body)
    assert (result.patched, result.source) == ((), HEAD + old.strip() + "\n")
    assert "does not parse" not in result.refused[0]


@pytest.mark.parametrize(("old", "body"), repairs("honest"))
def test_an_honest_repair_is_taken(old: str, body: str) -> None:
    result = repaired(old, body)
    assert len(result.patched) == 1, result.refused


# --- whole files ----------------------------------------------------------------------------------

TWO = """\
from solution import add


def test_a():
    assert add(1, 2) == 4


def test_b():
    assert add(2, 2) == 4
"""

BY_PARAMETER = """\
import pytest
from solution import add


@pytest.mark.parametrize("x", [1, 2])
def test_all(x):
    assert add(x, 2) == x + 2
    assert add(2, x) == x + 2
"""


@pytest.mark.parametrize(
    "new",
    [
        TWO.replace("== 4", "is not None"),
        TWO.replace("test_b", "helper"),
        TWO.replace("assert add(2", "for x in []:\n        assert add(2"),
        TWO + "\n\ndel test_b\n",
        TWO + "\n\ntest_b.__test__ = False\n",
        TWO.replace(
            "\n\n\ndef test_a", "\nimport pytest\n\npytestmark = pytest.mark.skip\n\n\ndef test_a"
        ),
        "import pytest\n\npytest.skip('later', allow_module_level=True)\n" + TWO,
        "import pytest\n\npytest.importorskip('none')\n" + TWO,
    ],
)
def test_a_weaker_test_file_is_told(new: str) -> None:
    assert weakened_source(TWO, new)


@pytest.mark.parametrize(
    "new",
    [
        TWO,
        TWO.replace("2) == 4", "2) == 3"),
        TWO.replace("test_b", "test_two_and_two"),
        TWO.replace(
            "from solution import add", "import pytest\nimport solution\nfrom solution import add"
        ),
        BY_PARAMETER,
    ],
)
def test_a_test_file_that_holds_as_much_is_taken(new: str) -> None:
    assert weakened_source(TWO, new) == []


@pytest.mark.parametrize("old", ["", "def test_a(:\n"])
def test_nothing_is_held_against_no_file(old: str) -> None:
    assert weakened_source(old, "def test_a():\n    pass\n") == []


def test_a_file_too_deep_to_compare_is_refused() -> None:
    deep = TWO.replace("== 4", "== " + "+".join(["1"] * 1500))
    assert weakened_source(TWO, deep)


# --- transformations ------------------------------------------------------------------------------

WEAKER = {
    "never called": "def inner():\n{body}",
    "never looped": "for _ in {nothing}:\n{body}",
    "never true": "if {false}:\n{body}",
    "expected to fail": "with pytest.raises({broad}):\n{body}",
    "caught": "try:\n{body}\nexcept {broad}:\n    pass",
    "left": "try:\n{body}\nfinally:\n    return",
    "skipped": "pytest.skip('x')\n{own}",
    "returned": "return\n{own}",
}
HONEST = {
    "as it is": "{own}",
    "under True": "if True:\n{body}",
    "finally": "try:\n{body}\nfinally:\n    print('x')",
    "with more": "{own}\nassert add(9, 9) == 18",
}
EQUALITIES = st.builds("assert add({}, {}) == {}".format, *[st.integers(-9, 9)] * 3) | st.builds(
    "result = add({}, {})\nassert {} == result".format, *[st.integers(-9, 9)] * 3
)
BODIES = st.lists(EQUALITIES, min_size=1, max_size=3).map("\n".join)


def changed(form: str, own: str, data: st.DataObject) -> str:
    return form.format(
        own=own,
        body=textwrap.indent(own, "    "),
        nothing=data.draw(
            st.sampled_from(["[]", "()", "{}", "''", "range(0)", "list()", "zip([], [])"])
        ),
        false=data.draw(st.sampled_from(["False", "0", "None", "''", "add is None", "not add"])),
        broad=data.draw(
            st.sampled_from(
                ["AssertionError", "Exception", "BaseException", "(KeyError, Exception)"]
            )
        ),
    )


@given(BODIES, st.sampled_from(sorted(WEAKER)), st.data())
def test_no_weakening_of_any_body_is_taken(body: str, name: str, data: st.DataObject) -> None:
    old = "def test_a():\n" + textwrap.indent(body, "    ")
    assert repaired(old, changed(WEAKER[name], body, data)).patched == ()


@given(BODIES, st.sampled_from(sorted(HONEST)), st.integers(10, 99), st.data())
def test_no_honest_repair_of_any_body_is_refused(
    body: str, name: str, value: int, data: st.DataObject
) -> None:
    old = "def test_a():\n" + textwrap.indent(body, "    ")
    new = changed(HONEST[name], body, data).replace("add(", f"add({value} + ", 1)
    result = repaired(old, new)
    assert result.patched == ("test_a",), result.refused


def test_a_file_with_a_number_too_large_to_be_told_is_refused() -> None:
    other = TWO.replace("== 4", f"== 0x{'f' * 5000}", 1)
    assert weakened_source(TWO, other) != []
