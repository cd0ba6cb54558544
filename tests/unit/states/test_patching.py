"""Patches go exactly where they belong, and none makes a test weaker."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states.patching import Patched, apply_patches
from codetape.states.python_source import defined_tests
from codetape.testing.answering import own_text
from codetape.testing.pools import TEST_FILES

FILE = '''\
"""The tests."""
import pytest
from solution import add, table


def test_a():
    assert add(1, 2) == 3


# a word about b
@pytest.mark.parametrize("x", [1, 2])
def test_p(x):
    assert add(x, 1) == x + 1
# after p


class TestGroup:
    limit = 3

    def test_method(self):
        text = """
a,b
1,2
"""
        assert table(text) == 3

    async def test_far(self):
        assert await add(1, 1) == 2

    # the end of the group


def test_last():
    with pytest.raises(ValueError):
        add(None, 1)'''


WITH_DATA = "def test_d(data):\n    assert data == 2\n"


def patched(name: str, code: str, *failing: str) -> Patched:
    return apply_patches(FILE, [(name, code)], failing or (name,))


def reason(name: str, code: str, *failing: str) -> str:
    result = patched(name, code, *failing)
    assert result.source == FILE
    assert result.patched == ()
    (why,) = result.refused
    assert why.startswith(f"{name}: ")
    return why


# --- where a patch goes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "old"),
    [
        ("test_a", "def test_a():\n    assert add(1, 2) == 4\n", "add(1, 2) == 3"),
        ("test_last", "def test_last():\n    assert add(9, 9) == 4\n", "with pytest.raises"),
        (
            "TestGroup::test_far",
            "async def test_far(self):\n    assert await add(1, 1) == 4\n",
            "add(1, 1) == 2",
        ),
        (
            "test_p",
            '@pytest.mark.parametrize("x", [1, 2])\ndef test_p(x):\n    assert add(x, 1) == 4\n',
            "== x + 1",
        ),
    ],
)
def test_a_patch_replaces_exactly_the_lines_of_its_test(name: str, code: str, old: str) -> None:
    result = patched(name, code)
    assert (result.patched, result.refused) == ((name,), ())
    assert "== 4" in result.source
    assert old not in result.source
    assert [t.id for t in defined_tests(result.source)] == [t.id for t in defined_tests(FILE)]
    assert "# a word about b\n@pytest" in result.source
    assert "# after p\n" in result.source
    assert "    # the end of the group\n" in result.source
    assert result.source.endswith("\n")


METHOD = '''\
def test_method(self):
    text = """
a,b
  1,2
"""
    assert table(text) == 4
'''
INDENTED = '''\
    def test_method(self):
        text = """
a,b
  1,2
"""
        assert table(text) == 4
'''


@pytest.mark.parametrize(
    "name", ["TestGroup::test_method", "test_method", "test_solution.py::TestGroup::test_method"]
)
@pytest.mark.parametrize(
    "code", [METHOD, INDENTED, f"class TestGroup:\n{INDENTED}", f"```python\n{INDENTED}```"]
)
def test_a_method_keeps_its_place_and_the_texts_in_it(name: str, code: str) -> None:
    """The lines of a text of several lines are its content: no indent may change them."""
    result = patched(name, code, "TestGroup::test_method")
    assert result.patched == ("TestGroup::test_method",), result.refused
    (group,) = [n for n in ast.parse(result.source).body if isinstance(n, ast.ClassDef)]
    (method,) = [n for n in group.body if isinstance(n, ast.FunctionDef)]
    assert isinstance(method.body[0], ast.Assign)
    assert ast.literal_eval(method.body[0].value) == "\na,b\n  1,2\n"


def test_parameters_of_a_failing_id_are_no_part_of_the_name() -> None:
    code = '@pytest.mark.parametrize("x", [1, 2])\ndef test_p(x):\n    assert add(x, 1) == 1 + x\n'
    for name in ("test_p", "test_p[1]", "test_p[a b - c]"):
        assert patched(name, code, "test_p[1]", "test_p[2]").patched == ("test_p",)


def test_a10_patches_that_differ_for_cases_of_one_test_are_refused() -> None:
    """Two parameters failed and the model answers for each: the last one would overwrite the first."""
    head = '@pytest.mark.parametrize("x", [1, 2])\ndef test_p(x):\n'
    two = [
        ("test_p[1]", f"{head}    assert add(x, 1) == 1 + x\n"),
        ("test_p[2]", f"{head}    assert add(x, 1) == x + 1\n"),
    ]
    result = apply_patches(FILE, two, ["test_p[1]", "test_p[2]"])
    assert (result.source, result.patched) == (FILE, ())
    assert [reason.partition(": ")[2] for reason in result.refused] == [
        "several patches of one test; give one for all its cases"
    ] * 2


def test_a10_the_same_patch_for_each_case_is_one() -> None:
    code = "def test_p(x):\n    assert add(x, 1) == 1 + x\n"
    two = [("test_p[1]", code), ("test_p[2]", f"{code}\n")]
    result = apply_patches(FILE, two, ["test_p[1]", "test_p[2]"])
    assert result.patched == ("test_p",)
    assert "assert add(x, 1) == 1 + x" in result.source


def test_a_patch_that_loses_ids_leaves_the_head_of_the_test() -> None:
    result = patched("test_p", "def test_p():\n    x = 1\n    assert add(x, 1) == 2\n", "test_p[1]")
    assert result.patched == ("test_p",)
    assert '@pytest.mark.parametrize("x", [1, 2])\ndef test_p(x):\n    x = 1\n' in result.source


def test_several_patches_go_into_one_file() -> None:
    them = [
        ("test_a", "def test_a():\n    # longer\n    assert add(1, 2) == 4\n"),
        ("test_nobody", "def test_nobody(): ..."),
        ("TestGroup::test_far", "async def test_far(self):\n    assert await add(1, 1) == 4\n"),
    ]
    result = apply_patches(FILE, them, ["test_a", "TestGroup::test_far", "test_last"])
    assert result.patched == ("test_a", "TestGroup::test_far")
    assert result.refused == ("test_nobody: this test did not fail",)
    assert result.source.count("== 4") == 2


# --- what is refused ------------------------------------------------------------------------------


def test_a_test_that_did_not_fail_is_left_alone() -> None:
    code = "def test_a():\n    assert add(1, 2) == 4\n"
    assert "did not fail" in reason("test_a", code, "test_last")
    assert "did not fail" in reason("test_nowhere", code, "test_last")


@pytest.mark.parametrize("code", ["def test_a(:\n    assert 1 == 2", "", "I removed the test."])
def test_a_patch_has_to_be_code(code: str) -> None:
    assert "parse" in reason("test_a", code) or "0 times" in reason("test_a", code)


def test_a_patch_has_to_define_its_test_once() -> None:
    twice = "def test_a():\n    assert add(1, 2) == 4\n\n\n" * 2
    assert "2 times" in reason("test_a", twice)
    assert "0 times" in reason("test_a", "def test_b():\n    assert add(1, 2) == 4\n")


def test_a_name_that_the_file_has_twice_is_an_error() -> None:
    source = "def test_a():\n    assert f() == 1\n\n\ndef test_a():\n    assert f() == 2\n"
    result = apply_patches(source, [("test_a", "def test_a():\n    assert f() == 3\n")], ["test_a"])
    assert result.source == source
    assert "2 tests of this name" in result.refused[0]
    group = "class TestX:\n    def test_a(self):\n        assert f() == 1\n"
    both = f"def test_a():\n    assert f() == 1\n\n\n{group}"
    failing = ["test_a", "TestX::test_a"]
    result = apply_patches(both, [("test_a", "def test_a():\n    assert f() == 3\n")], failing)
    assert result.patched == ()


def test_a_patch_has_to_change_something() -> None:
    assert "changes nothing" in reason("test_a", "def test_a():\n    assert add(1, 2) == 3\n")


def test_what_a_patch_changes_elsewhere_is_told_to_be_left_out() -> None:
    code = "def helper():\n    return 3\n\n\ndef test_a():\n    assert add(1, 2) == 3\n"
    assert "outside of it is left out" in reason("test_a", code)
    whole = FILE.replace("limit = 3", "limit = 4")
    assert "outside of it is left out" in reason("test_a", whole)
    assert reason("test_a", FILE) == "test_a: the patch changes nothing"


@pytest.mark.parametrize(
    ("head", "test"),
    [
        ("def three():\n    return 3", "def test_a():\n    assert add(1, 2) == three()"),
        ("THREE = 3", "def test_a():\n    assert add(1, 2) == THREE"),
        (
            "@pytest.fixture\ndef three():\n    return 3",
            "def test_a(three):\n    assert add(1, 2) == three",
        ),
    ],
)
def test_what_a_patch_defines_and_would_leave_behind_is_named(head: str, test: str) -> None:
    assert " outside the function" in reason("test_a", f"{head}\n\n\n{test}\n")
    inside = test.replace(":\n", f":\n    {head.splitlines()[-1].strip()}\n", 1)
    assert patched("test_a", inside.replace("return 3", "three = 3")).patched == ("test_a",)


def test_what_is_no_test_is_told_to_stay() -> None:
    source = f"import pytest\n\n\n@pytest.fixture\ndef data():\n    return 1\n\n\n{WITH_DATA}"
    result = apply_patches(source, [("data", "def data():\n    return 2\n")], ["test_d"])
    assert "this is no test" in result.refused[0]


def test_a_method_may_be_named_with_a_dot() -> None:
    code = "def test_method(self):\n    assert table('') == 4\n"
    assert patched("TestGroup.test_method", code, "TestGroup::test_method").patched


def test_imports_that_would_be_left_behind_are_named() -> None:
    code = "import math\n\n\ndef test_a():\n    assert add(1, 2) == math.floor(3.5)\n"
    assert "imports math outside" in reason("test_a", code)
    known = "import pytest\n\n\ndef test_a():\n    assert add(1, 2) == pytest.approx(3)\n"
    assert patched("test_a", known).patched == ("test_a",)


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "assert True",
        "assert 1",
        "assert 'add'",
        "assert add(1, 2)",
        "assert add(1, 2) is not None",
        "assert None is not add(1, 2)",
        "assert isinstance(add(1, 2), int)",
        "assert add(1, 2) == add(1, 2)",
        "assert 3 == 3",
        "assert (add(1, 2) == 4, 'a tuple is true')",
        "assert add(1, 2) == 4 or True",
        "assert lambda: add(1, 2) == 4",
        "if False:\n        assert add(1, 2) == 4",
        "while 0:\n        assert add(1, 2) == 4",
        "with pytest.raises(Exception):\n        add(1, 2)",
    ],
)
def test_a_patch_may_not_assert_less(body: str) -> None:
    assert "asserts less" in reason("test_a", f"def test_a():\n    {body}\n")


@pytest.mark.parametrize(
    "always", ["3 != 4", "(add(1, 2), 'why')", "[add]", "lambda: add(1, 2)", "f'{add}'", "'x'", "1"]
)
def test_what_is_always_true_is_less_than_anything(always: str) -> None:
    weak = "def test_a():\n    assert add(1, 2)\n"
    result = apply_patches(weak, [("test_a", f"def test_a():\n    assert {always}\n")], ["test_a"])
    assert result.refused == ("test_a: the patch asserts less than the test did",)


@pytest.mark.parametrize(
    "body",
    [
        "assert add(1, 2) == 4",
        "assert add(1, 2) == 3 and add(1, 2)",
        "assert add(1, 2) == pytest.approx(3)",
        "with pytest.raises(TypeError):\n        add(1, None)",
        "result = add(1, 2)\n    assert result\n    assert result == 2",
        "if True:\n        assert add(1, 2) == 4",
        "def key(x):\n        return x\n    assert add(*sorted([2, 1], key=key)) == 4",
    ],
)
def test_a_patch_that_asserts_as_much_is_taken(body: str) -> None:
    result = patched("test_a", f"def test_a():\n    {body}\n")
    assert result.patched == ("test_a",), result.refused


@pytest.mark.parametrize(
    "code",
    [
        "@pytest.mark.skip\ndef test_a():\n    assert add(1, 2) == 4",
        "@pytest.mark.xfail(strict=False)\ndef test_a():\n    assert add(1, 2) == 4",
        "def test_a():\n    pytest.skip('later')\n    assert add(1, 2) == 4",
        "def test_a():\n    pytest.importorskip('numpy')\n    assert add(1, 2) == 4",
    ],
)
def test_a_patch_may_not_skip(code: str) -> None:
    assert "skips" in reason("test_a", code)


@pytest.mark.parametrize(
    "body",
    [
        "return\n    assert add(1, 2) == 4",
        "if add(1, 2):\n        return\n    assert add(1, 2) == 4",
        "try:\n        assert add(1, 2) == 4\n    except AssertionError:\n        pass",
        "try:\n        assert add(1, 2) == 4\n    except:\n        pass",
        "try:\n        assert add(1, 2) == 4\n    except (KeyError, Exception):\n        pass",
        "with contextlib.suppress(AssertionError):\n        assert add(1, 2) == 4",
    ],
)
def test_a_patch_may_have_no_way_round_its_assertions(body: str) -> None:
    assert "way round" in reason("test_a", f"def test_a():\n    {body}\n")


def test_a_handler_that_hides_nothing_is_no_way_round() -> None:
    body = "try:\n        assert add(1, 2) == 4\n    except Exception:\n        raise"
    assert patched("test_a", f"def test_a():\n    {body}\n").patched == ("test_a",)
    body = "try:\n        x = add(1, 2)\n    except KeyError:\n        x = 4\n    assert x == 4"
    assert "way round" in reason("test_a", f"def test_a():\n    {body}\n")


def test_a_nest_that_nobody_can_read_is_refused_and_breaks_nothing() -> None:
    """It parses, but it is deeper than a walk over its tree may go."""
    deep = "+".join(["1"] * 1500)
    assert "nested deeper" in reason("test_a", f"def test_a():\n    assert add(1, 2) == {deep}\n")


# --- whatever comes in ----------------------------------------------------------------------------


@given(st.sampled_from(TEST_FILES), st.data())
def test_no_patch_loses_a_test_or_touches_another(source: str, data: st.DataObject) -> None:
    ids = [test.id for test in defined_tests(source)]
    failing = data.draw(st.lists(st.sampled_from(ids), unique=True))
    bodies = st.sampled_from(["    assert add(1, 1) == 5\n", "    pass\n", "\tnonsense(\n", ""])
    drawn = st.lists(st.tuples(st.sampled_from([*ids, "test_x"]), bodies))
    them = [(name, own_text(source, name) + body) for name, body in data.draw(drawn)]
    result = apply_patches(source, them, failing)
    assert [test.id for test in defined_tests(result.source)] == ids
    assert set(result.patched) <= set(failing)
    for test in set(ids) - set(result.patched):
        assert own_text(result.source, test) == own_text(source, test)
    assert (result.source == source) == (not result.patched)
