"""A change of what a test asks for is told in words; another way to write the same is not."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetape.states import events as e
from codetape.states.changed_lines import LONGEST_PART
from codetape.states.changed_tests import LARGEST, MOST, changed_tests, changes_since
from codetape.states.local_names import NAMING
from codetape.states.values import Answer

FILES = sorted(
    path
    for path in Path(__file__).parent.glob("test_*.py")
    if len(path.read_text(encoding="utf-8")) < 6_000
)
HEAD = "import pytest\nfrom solution import total\n\n"


def file_of(body: str, name: str = "test_total") -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{HEAD}def {name}():\n{lines}"


TOLD = {
    "an expected value": (
        "assert total([1]) == 1",
        "assert total([1]) == 2",
        "test_total: expected 1, now 2",
    ),
    "its type alone": (
        "assert total([1]) is True",
        "assert total([1]) is 1",
        "test_total: expected True, now 1",
    ),
    "the left side": (
        "assert 'a' == total([1])",
        "assert 'b' == total([1])",
        "test_total: expected 'a', now 'b'",
    ),
    "a unittest assertion": (
        "self.assertEqual(total([1]), 1)",
        "self.assertEqual(total([1]), 2)",
        "test_total: expected 1, now 2",
    ),
    "an approximate value": (
        "assert total([1]) == pytest.approx(1.5)",
        "assert total([1]) == pytest.approx(2.5)",
        "test_total: expected pytest.approx(1.5), now pytest.approx(2.5)",
    ),
    "a tolerance by keyword": (
        "assert total([1]) == pytest.approx(1.5, rel=0.0001)",
        "assert total([1]) == pytest.approx(1.5, rel=0.001)",
        "test_total: tolerance 0.0001, now 0.001",
    ),
    "a tolerance by place": (
        "self.assertAlmostEqual(total([1]), 1.5, 7)",
        "self.assertAlmostEqual(total([1]), 1.5, 3)",
        "test_total: tolerance 7, now 3",
    ),
    "a distance": (
        "assert abs(total([1]) - 1) < 0.0001",
        "assert abs(total([1]) - 1) < 0.001",
        "test_total: tolerance 0.0001, now 0.001",
    ),
    "an input, which is no expected value": (
        "assert total([1]) == 1",
        "assert total([2]) == 1",
        "test_total: assert total([1]) == 1, now assert total([2]) == 1",
    ),
    "a value that the solution computes": (
        "assert total([1]) == total([1, 0])",
        "assert total([1]) == total([1, 1])",
        "test_total: assert total([1]) == total([1, 0]), now assert total([1]) == total([1, 1])",
    ),
    "a variable": (
        "expected = 1\nassert total([1]) == expected",
        "expected = 2\nassert total([1]) == expected",
        "test_total: expected = 1, now expected = 2",
    ),
    "an error": (
        "with pytest.raises(ValueError):\n    total(1)",
        "with pytest.raises(TypeError):\n    total(1)",
        "test_total: with pytest.raises(ValueError):, now with pytest.raises(TypeError):",
    ),
    "another variable": (
        "a, b = 1, 2\nassert total([1]) == a",
        "a, b = 1, 2\nassert total([1]) == b",
        "test_total: assert total([1]) == a, now assert total([1]) == b",
    ),
    "a variable of the file under the name of a local one": (
        "[x for x in total([1])]\nassert total([1]) == x",
        "[y for y in total([1])]\nassert total([1]) == y",
        "test_total: assert total([1]) == x, now assert total([1]) == y",
    ),
    "parameters that change places": (
        "def less(a, b):\n    return total(a) - b\nassert less(a=1, b=2) == 1",
        "def less(b, a):\n    return total(b) - a\nassert less(a=1, b=2) == 1",
        "test_total: def less(a, b):, now def less(b, a):",
    ),
    "a variable that is found by its name": (
        "one = 1\ntwo = 2\nassert total(locals()['one']) == 1",
        "two = 1\none = 2\nassert total(locals()['one']) == 1",
        "test_total: one = 1, now one = 2",
    ),
    "a condition": (
        "assert total([1]) == 1",
        "if total([]):\n    assert total([1]) == 1",
        "test_total: now also if total([]):",
    ),
    "the other branch": (
        "if total([]):\n    pass\nelse:\n    assert total([1]) == 1",
        "if total([]):\n    assert total([1]) == 1\nelse:\n    pass",
        "test_total: moved: assert total([1]) == 1",
    ),
    "the order of two steps": (
        "total(1)\nassert total([1]) == 1",
        "assert total([1]) == 1\ntotal(1)",
        "test_total: moved: assert total([1]) == 1",
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_a_change_is_told_in_plain_words(case: str) -> None:
    before, after, said = TOLD[case]
    assert said in changed_tests(file_of(before), file_of(after))


CASES = (
    HEAD
    + '@pytest.mark.parametrize(("x", "y"), [(1, 1), (2, 2)])\n'
    + ("def test_all(x, y):\n    assert total([x]) == y\n")
)
WHOLE = {
    "a lost test": (
        file_of("assert total([1]) == 1") + "\n\ndef test_b():\n    assert total([]) == 0\n",
        file_of("assert total([1]) == 1"),
        ("test_b: gone",),
    ),
    "a new test": (
        file_of("assert total([1]) == 1"),
        file_of("assert total([1]) == 1") + "\n\ndef test_b():\n    assert total([]) == 0\n",
        ("test_b: new",),
    ),
    "a case": (CASES, CASES.replace("(2, 2)", "(2, 3)"), ("test_all: case (2, 2), now (2, 3)",)),
    "a lost case": (CASES, CASES.replace(", (2, 2)", ""), ("test_all: no longer case (2, 2)",)),
    "a constant of the file": (
        HEAD + "WANTED = 1\n\n\ndef test_a():\n    assert total([1]) == WANTED\n",
        HEAD + "WANTED = 2\n\n\ndef test_a():\n    assert total([1]) == WANTED\n",
        ("outside of the tests: WANTED = 1, now WANTED = 2",),
    ),
    "a helper": (
        HEAD
        + "def wanted():\n    return 1\n\n\ndef test_a():\n    assert total([1]) == wanted()\n",
        HEAD
        + "def wanted():\n    return 2\n\n\ndef test_a():\n    assert total([1]) == wanted()\n",
        ("wanted: return 1, now return 2",),
    ),
    "a method": (
        HEAD + "class TestTotal:\n    def test_a(self):\n        assert total([1]) == 1\n",
        HEAD + "class TestTotal:\n    def test_a(self):\n        assert total([1]) == 2\n",
        ("TestTotal::test_a: expected 1, now 2",),
    ),
    "what is imported under a name": (
        "from solution import total\ndef test_a(): assert total(1) == 1\n",
        "from solution import first as total\ndef test_a(): assert total(1) == 1\n",
        (
            (
                "outside of the tests: from solution import total,"
                " now from solution import first as total"
            ),
        ),
    ),
    "a decorator": (
        HEAD + "@pytest.mark.filterwarnings('error')\ndef test_a():\n    total(1)\n",
        HEAD + "@pytest.mark.filterwarnings('default')\ndef test_a():\n    total(1)\n",
        (
            (
                "test_a: @pytest.mark.filterwarnings('error'),"
                " now pytest.mark.filterwarnings('default')"
            ),
        ),
    ),
}


@pytest.mark.parametrize("case", WHOLE)
def test_each_part_of_a_file_is_compared(case: str) -> None:
    before, after, told = WHOLE[case]
    assert changed_tests(before, after) == told


def test_expected_values_come_before_other_changes() -> None:
    before = file_of("rows = [1]\nassert total(rows) == 1") + file_of("total(1)", "test_b")
    after = file_of("rows = [2]\nassert total(rows) == 2") + file_of("total(1)", "test_c")
    told = changed_tests(before, after)
    first = ["test_total: expected 1, now 2", "test_b: gone"]
    assert list(told) == [*first, "test_total: rows = [1], now rows = [2]", "test_c: new"]


# --- what is no change ----------------------------------------------------------------------------

SAME = {
    "a local variable": (
        "rows = [1]\nassert total(rows) == 1",
        "numbers = [1]\nassert total(numbers) == 1",
    ),
    "a loop": (
        "for x in [1, 2]:\n    assert total([x]) == x",
        "for number in [1, 2]:\n    assert total([number]) == number",
    ),
    "one of two scopes": (
        "x = [1]\nassert total([x for x in x]) == len(x)",
        "x = [1]\nassert total([y for y in x]) == len(x)",
    ),
    "a variable of an inner function": (
        "n = 0\ndef one():\n    nonlocal n\n    n += 1\none()\nassert total([n]) == n",
        "seen = 0\ndef one():\n    nonlocal seen\n    seen += 1\none()\nassert total([seen]) == seen",
    ),
    "an error, a file and a pattern": (
        (
            "try:\n    total(1)\nexcept ValueError as e:\n    assert str(e) == 'no'\n"
            "with open('x') as f:\n    assert f.read() == ''\n"
            "match total([1]):\n    case [a, *b]:\n        assert (a, b) == (1, [])"
        ),
        (
            "try:\n    total(1)\nexcept ValueError as error:\n    assert str(error) == 'no'\n"
            "with open('x') as file:\n    assert file.read() == ''\n"
            "match total([1]):\n    case [one, *rest]:\n        assert (one, rest) == (1, [])"
        ),
    ),
    "two names that change places": (
        "a, b = 1, 2\nassert total([a]) == 1\nassert total([b]) == 2",
        "b, a = 1, 2\nassert total([b]) == 1\nassert total([a]) == 2",
    ),
    "a module": (
        "import math as m\nassert total([1]) == m.floor(1.5)",
        "import math as mathematics\nassert total([1]) == mathematics.floor(1.5)",
    ),
    "a docstring": ('"""One."""\nassert total([1]) == 1', '"""Two."""\nassert total([1]) == 1'),
    "comments and blank lines": (
        "assert total([1]) == 1",
        "# One.\n\nassert (\n    total([1])  # two\n    == 1\n)",
    ),
    "quotes, digits and brackets": (
        "assert total(u'a') == 1000.0\ndel (total)",
        'assert (total(("a"))) == 1_000.0;del total',
    ),
    "what a deletion names": ("a = b = 1\ndel (a, b)", "a = b = 1\ndel a, b"),
}


@pytest.mark.parametrize("case", SAME)
def test_another_way_to_write_the_same_is_not_told(case: str) -> None:
    before, after = SAME[case]
    assert changed_tests(file_of(before), file_of(after)) == ()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_written_anew_from_its_tree_is_the_same(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert changed_tests(source, ast.unparse(ast.parse(source))) == ()


class Renaming(ast.NodeTransformer):
    """Gives the variables that a function stores, and nothing else has, other names."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        inner = [n for n in ast.walk(node) if isinstance(n, ast.arg | ast.alias)]
        if NAMING.intersection(name.id for name in names):
            return node
        taken = {str(n.arg if isinstance(n, ast.arg) else n.asname or n.name) for n in inner}
        stored = {n.id for n in names if isinstance(n.ctx, ast.Store)} - taken
        for name in (n for n in names if n.id in stored):
            name.id = f"{name.id}_of_this"
        return node


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_with_other_variables_is_the_same(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert changed_tests(source, ast.unparse(Renaming().visit(ast.parse(source)))) == ()


# --- what is always told --------------------------------------------------------------------------


@given(st.sampled_from(FILES), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=25)
def test_another_constant_in_an_assertion_is_always_told(
    path: Path, chance: random.Random, renamed: bool
) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    before = ast.unparse(tree)
    asserts = [n for n in ast.walk(tree) if isinstance(n, ast.Assert)]
    whole = [a for a in asserts if not any(isinstance(n, ast.JoinedStr) for n in ast.walk(a))]
    constants = [n for a in whole for n in ast.walk(a) if isinstance(n, ast.Constant)]
    if constants:
        one = chance.choice(constants)
        one.value = chance.choice([v for v in ("x", 17, None, 0.5) if v != one.value])
        other = Renaming().visit(tree) if renamed else tree
        assert changed_tests(before, ast.unparse(other))


VALUES = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=200),
    st.booleans(), st.none(),    st.binary(max_size=200), st.lists(st.integers(), max_size=50),
)  # fmt: skip


@given(VALUES, VALUES)
@settings(max_examples=60)
def test_two_expected_values_are_told_apart(one: object, other: object) -> None:
    (before, after) = (file_of(f"assert total(1) == {value!r}") for value in (one, other))
    told = changed_tests(before, after)
    assert len(told) == (ast.dump(ast.parse(before)) != ast.dump(ast.parse(after)))
    for fact in told:
        assert fact.startswith("test_total: expected ")
        old, now = fact.removeprefix("test_total: expected ").split(", now ", 1)
        assert old != now
        assert "\n" not in fact


# --- bounds ---------------------------------------------------------------------------------------


def test_facts_are_bounded_in_number_and_length() -> None:
    tests = [f"test_{n}" for n in range(100)]
    before = "".join(file_of(f"assert total(1) == '{'a' * 9000}1'", name) for name in tests)
    told = changed_tests(before[: LARGEST // 9000 * 9000], "")
    assert len(told) <= MOST + 1
    few = "".join(file_of(f"assert total(1) == '{'a' * 900}1'", name) for name in tests)
    told = changed_tests(few, few.replace("1'", "2'"))
    assert (len(told), told[-1]) == (MOST + 1, "and 80 changes more")
    assert max(map(len, told)) < 3 * LONGEST_PART
    assert told[0].endswith("aaa1', now …aaaaaaaaaaaaaaaaaaaaaaaaa2'")


UNKNOWN = {
    "no Python": "def test_a(:\n",
    "too long": "x = 1\n" * (LARGEST // 6) + "y = 12\n",
    "too deep": f"def test_a():\n    assert {'-' * 30_000}1\n",
    "too large a number": f"def test_a():\n    assert 0x{'f' * 5000} == 1\n",
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_cannot_be_compared_is_said(case: str) -> None:
    for pair in ((UNKNOWN[case], file_of("pass")), (file_of("pass"), UNKNOWN[case])):
        (fact,) = changed_tests(*pair)
        assert "compared" in fact


def test_a_long_test_is_told_as_a_whole() -> None:
    before = file_of("\n".join(f"assert total({n}) == {n}" for n in range(500)))
    (fact,) = changed_tests(before, before.replace("total(7)", "total(8)"))
    assert fact == "test_total: changed, and too long to be told line by line"


def written(expected: int) -> e.TestsWritten:
    return e.TestsWritten(source=file_of(f"assert total(1) == {expected}"), answer=Answer(text=""))


def test_the_last_file_of_a_session_is_compared_with_the_first() -> None:
    events = [written(1), e.Noted(text="x"), written(2), written(1)]
    assert changes_since(events[:3]) == ("test_total: expected 1, now 2",)
    assert changes_since(events) == changes_since([]) == changes_since(events[:2]) == ()
