"""Code inside the Markdown that models wrap around it."""

from __future__ import annotations

import re

from codetape.states.python_source import syntax_error

_OPENING = re.compile(r"^(?P<indent> {0,3})(?P<ticks>`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*$")


def python_code(text: str) -> str:
    """Return the code in `text`: the longest fenced block that parses, else the text itself.

    A text that parses as it stands is code; fences inside its strings are left alone. A fence closes
    at a line of at least as many marks of its kind, so a block may hold shorter fences; because models
    do nest fences of equal length, every later closing line is tried too.
    """
    stripped = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if syntax_error(stripped) is None:
        return stripped
    blocks = [block for block in fenced_blocks(stripped) if syntax_error(block) is None]
    return max(blocks, key=len, default=stripped)


def fenced_blocks(text: str) -> list[str]:
    """Return every text between an opening fence and a line that may close it.

    A fence that is indented, as in a list, takes its indent from the lines in it.
    """
    lines = text.split("\n")
    blocks: list[str] = []
    for start, line in enumerate(lines):
        if opening := _OPENING.match(line):
            ends = _closings(lines, start, opening["ticks"])
            inside = [_outdented(line, len(opening["indent"])) for line in lines]
            blocks.extend("\n".join(inside[start + 1 : end]) for end in ends)
    return blocks


def has_open_fence(text: str) -> bool:
    """True if a fence opens and nothing closes it: the text was cut."""
    lines = text.split("\n")
    for start, line in enumerate(lines):
        if opening := _OPENING.match(line):
            return not _closings(lines, start, opening["ticks"])
    return False


def _outdented(line: str, indent: int) -> str:
    blank = len(line) - len(line.lstrip(" "))
    return line[min(indent, blank) :]


def _closings(lines: list[str], start: int, ticks: str) -> list[int]:
    close = re.compile(rf"^ {{0,3}}{re.escape(ticks[0])}{{{len(ticks)},}}[ \t]*$")
    return [n for n in range(start + 1, len(lines)) if close.match(lines[n])]
