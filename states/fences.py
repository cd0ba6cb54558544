"""Code inside the Markdown that models wrap around it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from codetape.states.python_source import TOO_DEEP, TOO_LONG, syntax_error

_OPENING = re.compile(r"^(?P<indent> {0,3})(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_CLOSING = re.compile(r"^ {0,3}(?P<ticks>`{3,}|~{3,})[ \t]*$")
_PYTHON = re.compile(r"\{?\.?(py|python)[-\d.]*\b", re.IGNORECASE)

CLOSINGS = 16
"""Lines that may close a fence, of those that follow it: answers with hundreds of fences exist."""

LONGEST = 16_000_000
"""Characters of all blocks of a text together, which overlap: after so many, no more are tried."""


@dataclass(frozen=True, slots=True)
class Block:
    """A text between two fences, the lines that it takes, and what the first fence says it is."""

    text: str
    start: int
    end: int
    info: str

    @property
    def is_called_python(self) -> bool:
        """True if the fence says that it is Python."""
        return _PYTHON.match(self.info) is not None

    def is_in(self, other: Block) -> bool:
        """True if the other block holds this one."""
        return self is not other and other.start <= self.start and self.end <= other.end


def python_code(text: str) -> str:
    """Return the code in `text`: the longest fenced block that parses, else the text itself.

    A text that parses as it stands is code; fences inside its strings are left alone. A fence closes
    at a line of at least as many marks of its kind, so a block may hold shorter fences; because models
    do nest fences of equal length, later closing lines are tried too. Data may parse as well: a block
    that is called Python goes before a longer one that is not.
    """
    stripped = _lines_ended(text).strip("\n")
    if syntax_error(stripped) is None:
        return stripped
    blocks = list(_blocks(stripped))
    parsed = [block for block in blocks if syntax_error(block.text) is None]
    outer = [block for block in parsed if not any(block.is_in(other) for other in parsed)]
    if outer:
        return max(outer, key=_worth).text
    unread = (b.text for b in blocks if syntax_error(b.text) in {TOO_DEEP, TOO_LONG})
    return next(unread, stripped)  # so that the reason is said of the code, not of its fence


def _worth(block: Block) -> tuple[bool, int]:
    return block.is_called_python, len(block.text)


def is_called_python(text: str, code: str) -> bool:
    """True if `code` is a fenced block of `text` whose fence says that it is Python."""
    return any(x.is_called_python and x.text == code for x in _blocks(_lines_ended(text)))


def fenced_blocks(text: str) -> list[str]:
    """Return every text between an opening fence and a line that may close it.

    A fence that is indented, as in a list, takes its indent from the lines in it.
    """
    return [block.text for block in _blocks(text)]


def _blocks(text: str) -> Iterator[Block]:
    lines = text.split("\n")
    left, closing = LONGEST, _closing_lines(lines)
    for start, line in enumerate(lines):
        if opening := _OPENING.match(line):
            ends = list(islice(_closings(closing, start, opening["ticks"]), CLOSINGS))
            inside = [
                _outdented(x, len(opening["indent"]))
                for x in lines[start + 1 : max(ends, default=0)]
            ]
            for end in ends:
                body = "\n".join(inside[: end - start - 1])
                left -= len(body)
                if left < 0:
                    return
                yield Block(body, start, end, opening["info"].strip())


def has_open_fence(text: str) -> bool:
    """True if a fence opens and nothing closes it: the text was cut.

    A line of marks alone may be a closing one, unless it is the first.
    """
    lines, first = text.split("\n"), True
    closing = _closing_lines(lines)
    for start, line in enumerate(lines):
        if opening := _OPENING.match(line):
            closed = next(_closings(closing, start, opening["ticks"]), None) is not None
            if (first or opening["info"].strip()) and not closed:
                return True
            first = False
    return False


def _lines_ended(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _outdented(line: str, indent: int) -> str:
    blank = len(line) - len(line.lstrip(" "))
    return line[min(indent, blank) :]


def _closing_lines(lines: list[str]) -> list[tuple[int, str]]:
    """Return the lines that may close a fence, by their numbers, with their marks."""
    found = ((n, _CLOSING.match(line)) for n, line in enumerate(lines))
    return [(n, match["ticks"]) for n, match in found if match]


def _closings(closing: list[tuple[int, str]], start: int, ticks: str) -> Iterator[int]:
    """Yield the lines after `start` that may close a fence of `ticks`."""
    first = bisect_right(closing, start, key=lambda line: line[0])
    return (n for n, marks in islice(closing, first, None) if marks.startswith(ticks))
