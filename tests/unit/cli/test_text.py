"""Times, money and counts as people say them."""

from __future__ import annotations

import pytest

from codetape.cli.text import counted, duration, money, one_line


def test_one_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("abcdef", 4) == "abc…"
    assert len(one_line("x " * 10**6)) == 200


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, ""),
        (0.001, ""),
        (0.25, "0.25 s"),
        (42, "42 s"),
        (200, "3 min 20 s"),
        (7300, "2 h 1 min"),
    ],
)
def test_duration(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


def test_unknown_money_is_not_zero() -> None:
    assert (money(None), money(0.0), money(0.01234)) == ("unknown", "$0", "$0.0123")


def test_counted() -> None:
    assert counted(1, "event") == "1 event"
    assert counted(1200, "fix is", "fixes are") == "1,200 fixes are"
