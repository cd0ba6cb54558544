"""Bytes of a sample file as text: in which encoding, and how the fields of its lines are told apart."""

from __future__ import annotations

import codecs
import csv
import re
from dataclasses import dataclass

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

_NO_TEXT = re.compile("[\\x00-\\x08\\x0e-\\x1a\\x1c-\\x1f\\ufeff\\ufffe\\uffff]")
"""What is in no text, whatever its encoding: a file with it only happens to decode."""

NOT_UTF8 = "It is not UTF-8: its encoding seems to be cp1252."

SEPARATORS = ",;\t|"

LOOKED_AT = 20
"""Lines that are looked at for what separates their fields."""


@dataclass(frozen=True, slots=True)
class Text:
    """What bytes say, and a sentence on their encoding if it is not plain UTF-8."""

    text: str
    words: str = ""


def text_of(content: bytes) -> Text | None:
    """Return bytes as text, or None if they are none; a character cut at the end is left out."""
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            words = f"It begins with a byte order mark: its encoding is {encoding}."
            return _decoded(content, encoding, words)
    return _decoded(content, "utf-8") or _decoded(content, "cp1252", NOT_UTF8)


def _decoded(content: bytes, encoding: str, words: str = "") -> Text | None:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content)
    except UnicodeDecodeError:
        return None
    no_text = "\0" in text if encoding.startswith("utf-8") else _NO_TEXT.search(text)
    return None if no_text else Text(text, words)


def separator_of(text: str) -> str:
    """Return what separates the fields: that by which most lines have as many as the first one.

    It is a comma where nothing separates the first line.
    """
    lines = [line for line in text[: 1 << 16].splitlines() if line.strip()][:LOOKED_AT]
    found = max(SEPARATORS, key=lambda mark: _agreement(lines, mark))
    return found if _agreement(lines, found)[0] else SEPARATORS[0]


def has_unnamed(text: str, separator: str) -> bool:
    """True if the line after the first one has more fields than that, so that some have no name."""
    rows = csv.reader(text[: 1 << 16].splitlines(), delimiter=separator)
    filled = (len(row) for row in rows if row)
    return next(filled, 0) < next(filled, 0)


def _agreement(lines: list[str], mark: str) -> tuple[bool, int, int]:
    """Rank a separator: it separates, how many lines agree, and into how many fields."""
    try:
        counts = [len(row) for row in csv.reader(lines, delimiter=mark)]
    except csv.Error:
        return False, 0, 0
    first = counts[0] if counts else 0
    return first > 1, counts.count(first), first
