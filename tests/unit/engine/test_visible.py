"""Hostile text is escaped, and everything else is left as it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.engine.visible import LONGEST_LINE, safe

HOSTILE = {
    "ansi": ("\x1b[2J\x1b[31mred", "\\x1b[2J\\x1b[31mred"),
    "title": ("\x1b]0;pwned\x07", "\\x1b]0;pwned\\x07"),
    "c1": ("\x9b31m", "\\x9b31m"),
    "overprint": ("real\rfake", "real\\rfake"),
    "backspace": ("rm\b\b", "rm\\x08\\x08"),
    "right to left": ("user\u202enimda", "user\\u202enimda"),
    "isolate": ("a\u2066b\u2069", "a\\u2066b\\u2069"),
    "zero width": ("pass\u200bword", "pass\\u200bword"),
    "line separator": ("a\u2028b", "a\\u2028b"),
    "tag": ("a\U000e0041", "a\\U000e0041"),
    "filler": ("a\u3164b\u115f", "a\\u3164b\\u115f"),
    "variation selectors": ("a\ufe01\U000e0100", "a\\ufe01\\U000e0100"),
    "joiner": ("a\u034fb", "a\\u034fb"),
    "surrogate": ("a\ud83cb", "a\\ud83cb"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_escaped(name: str) -> None:
    text, shown = HOSTILE[name]
    assert safe(text) == shown


def test_what_people_write_is_left_alone() -> None:
    text = "Größe: 21 °C → 日本\n\tdone [bold]not markup[/bold] <b> 🎉"
    assert safe(text) == text
    assert safe("a\r\nb") == "a\nb"


def test_huge_lines_are_cut_and_say_so() -> None:
    shown = safe("x" * (LONGEST_LINE + 5) + "\nend")
    assert shown == "x" * LONGEST_LINE + " [… 5 characters more]\nend"


@given(st.text(st.characters()))
def test_nothing_that_is_shown_moves_the_cursor(text: str) -> None:
    shown = safe(text)
    assert not {unicodedata.category(c) for c in shown if c not in "\n\t"} & {"Cc", "Cf", "Cs"}
    assert safe(shown) == shown
    shown.encode()
