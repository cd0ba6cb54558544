"""Whether a fix is in the text, by its own words, and when they do not tell."""

from __future__ import annotations

import pytest

from codetape.states.fixes import edits, is_applied

BEFORE = "def add(a, b):\n    return a - b\n"
AFTER = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    ("fix", "pairs"),
    [
        ("Replace `a - b` with `a + b`.", [("a - b", "a + b")]),
        ("replace `x` by `y`, then change `p` to `q`", [("x", "y"), ("p", "q")]),
        ("Change ``a`b`` into ``c``", [("a`b", "c")]),
        ("Replace\n```python\nx = 1\n```\nwith\n```python\nx = 2\n```", [("x = 1", "x = 2")]),
        ("Replace `a - b` with ```\na + b\n```", [("a - b", "a + b")]),
        ("Use `a + b`.", []),
        ("Replace the minus with a plus.", []),
        ("", []),
    ],
)
def test_old_and_new_text_are_read(fix: str, pairs: list[tuple[str, str]]) -> None:
    assert list(edits(fix)) == pairs


@pytest.mark.parametrize(
    ("fix", "before", "after", "applied"),
    [
        ("Replace `a - b` with `a + b`", BEFORE, AFTER, True),
        ("Replace `a - b` with `a + b`", BEFORE, BEFORE, False),
        ("Replace `a - b` with `a + b`", BEFORE, "def add(a, b):\n    return 0\n", False),
        ("Replace `a-b` with `a+b`", BEFORE, AFTER, True),  # blanks do not count
        ("Replace `return a - b` with `return a + b`", BEFORE, "return (\n  a + b)", False),
        ("Replace `x` with `x + 1`", "f(x)", "f(x + 1)", True),  # the old text is in the new one
        ("Replace `a - b` with `a + b`", f"{BEFORE}# a + b", f"{AFTER}# a + b", True),
        ("Replace `a - b` with `a + b`", f"{BEFORE}# a + b", f"{BEFORE}# a + b", False),
        ("Replace `nowhere` with `a * b`", BEFORE, AFTER, None),  # a misquotation decides nothing
        ("Replace `nowhere` with `a + b`", BEFORE, AFTER, True),
        ("Treat an empty list as zero.", BEFORE, AFTER, None),
        ("", BEFORE, AFTER, None),
    ],
)
def test_the_text_of_a_fix_decides_or_does_not(
    fix: str, before: str, after: str, applied: bool | None
) -> None:
    assert is_applied(fix, before, after) is applied


def test_of_two_edits_both_have_to_be_in() -> None:
    fix = "Replace `a` with `b` and replace `c` with `d`"
    assert is_applied(fix, "a c", "b d") is True
    assert is_applied(fix, "a c", "b c") is False
    assert is_applied(f"{fix}; replace `e` with `f`", "a c", "b d") is None
