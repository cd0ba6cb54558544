"""Texts as they may be shown. What a model or a sandbox wrote is hostile: it is escaped here, once.

Escaped is what could move the cursor, hide or reorder text, or end a line: control characters (ANSI
sequences begin with one), marks of direction and of zero width, separators, lone surrogates. Nothing
that is shown is read as markup.
"""

from __future__ import annotations

import unicodedata

LONGEST_LINE = 2000
"""Characters of one line that are shown; nobody reads more, and terminals get slow."""

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def safe(text: str) -> str:
    """Return `text` with everything escaped that is no visible character, blank, tab or newline."""
    if text.isascii() and text.isprintable():
        return _bounded(text)
    lines = "".join(map(_shown, text.replace("\r\n", "\n"))).split("\n")
    return "\n".join(map(_bounded, lines))


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _bounded(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]} [… {len(line) - LONGEST_LINE} characters more]"
