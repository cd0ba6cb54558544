"""Texts as they may be shown. What a model or a sandbox wrote is hostile: it is escaped here, once.

Escaped is what could move the cursor, hide or reorder text, or end a line: control characters (ANSI
sequences begin with one), marks of direction and of zero width, separators, lone surrogates. Nothing
that is shown is read as markup.
"""

from __future__ import annotations

import unicodedata
from html import escape

LONGEST_LINE = 2000
"""Characters of one line that are shown; nobody reads more, and terminals get slow."""

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}

_WITHOUT_WIDTH = {
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0),
    *range(0x180B, 0x1810),
    *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE1000),
}
"""Characters of other categories that Unicode has shown as nothing."""


def safe(text: str) -> str:
    """Return `text` with everything escaped that is no visible character, blank, tab or newline."""
    return "\n".join(map(_bounded, escaped(text).split("\n")))


def escaped(text: str) -> str:
    """Return all of `text`, however long, with everything escaped that `safe` escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def in_one_line(text: str) -> str:
    """Return `text` as `safe` does, with its ends of lines escaped: it can begin no line of its own."""
    return safe(text).replace("\n", "\\n")


def in_html(text: str, longest: int) -> str:
    """Return at most `longest` characters of `text` as they may stand in a page: none is markup."""
    return escape(safe(text if len(text) <= longest else f"{text[:longest]} …"))


def _shown(character: str) -> str:
    if character in "\n\t" or not _is_hidden(character):
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN or ord(character) in _WITHOUT_WIDTH


def _bounded(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]} [… {len(line) - LONGEST_LINE} characters more]"
