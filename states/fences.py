"""Code inside the Markdown that models wrap around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from codetape.states.python_source import defined_names, syntax_error

_OPENING = re.compile(r"^(?P<indent> {0,3})(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_PYTHON = re.compile(r"\{?\.?(py|python)[-\d.]*\b", re.IGNORECASE)

CLOSINGS = 16
"""Lines that may close a fence, of those that follow it: answers with hundreds of fences exist."""


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


def python_code(text: str, fits: Callable[[str], bool] = lambda _: True) -> str:
    """Return the code in `text`: the fenced block that fits and parses, else the text itself.

    A text that parses as it stands is code; fences inside its strings are left alone. A fence closes
    at a line of at least as many marks of its kind, so a block may hold shorter fences; because models
    do nest fences of equal length, later closing lines are tried too. A block that fits goes before
    one that does not, one that is called Python before data that parses, and a whole before an
    excerpt of it. Of several that are left the last one is the answer.
    """
    stripped = lines_ended(text).strip("\n")
    if syntax_error(stripped) is None:
        return stripped
    parsed = [block for block in blocks(stripped) if syntax_error(block.text) is None]
    outer = [block for block in parsed if not any(block.is_in(other) for other in parsed)]
    return _chosen(outer, fits).text if outer else stripped


def _chosen(found: list[Block], fits: Callable[[str], bool]) -> Block:
    """Return the last of the blocks that fit best; of those that define nothing, the longest."""
    ranks = [(fits(block.text), block.is_called_python) for block in found]
    best = [block for block, rank in zip(found, ranks, strict=True) if rank == max(ranks)]
    names = [set(defined_names(block.text)) for block in best]
    if not any(names):
        return max(best, key=lambda block: len(block.text))
    whole = [n for n, own in enumerate(names) if own and not any(own < other for other in names)]
    return best[whole[-1]]


def is_called_python(text: str, code: str) -> bool:
    """True if `code` is a fenced block of `text` whose fence says that it is Python."""
    return any(x.is_called_python and x.text == code for x in blocks(lines_ended(text)))


def fenced_blocks(text: str) -> list[str]:
    """Return every text between an opening fence and a line that may close it.

    A fence that is indented, as in a list, takes its indent from the lines in it.
    """
    return [block.text for block in blocks(text)]


def blocks(text: str) -> Iterator[Block]:
    """Yield every text between an opening fence and a line that may close it."""
    lines = text.split("\n")
    for start, line in enumerate(lines):
        if opening := _OPENING.match(line):
            ends = _closings(lines, start, opening["ticks"])[:CLOSINGS]
            inside = [
                _outdented(x, len(opening["indent"]))
                for x in lines[start + 1 : max(ends, default=0)]
            ]
            for end in ends:
                body = "\n".join(inside[: end - start - 1])
                yield Block(body, start, end, opening["info"].strip())


def has_open_fence(text: str) -> bool:
    """True if a fence opens and nothing closes it: the text was cut.

    A line of marks alone may be a closing one, unless it is the first.
    """
    return open_block(lines_ended(text)) is not None


def open_block(text: str) -> Block | None:
    """Return the text after a fence that is not closed, or None."""
    lines, first = text.split("\n"), True
    for start, line in enumerate(lines):
        if opening := _OPENING.match(line):
            info = opening["info"].strip()
            if (first or info) and not _closings(lines, start, opening["ticks"]):
                return Block("\n".join(lines[start + 1 :]), start, len(lines), info)
            first = False
    return None


def lines_ended(text: str) -> str:
    """Return a text whose lines end as they do here."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _outdented(line: str, indent: int) -> str:
    blank = len(line) - len(line.lstrip(" "))
    return line[min(indent, blank) :]


def _closings(lines: list[str], start: int, ticks: str) -> list[int]:
    close = re.compile(rf"^ {{0,3}}{re.escape(ticks[0])}{{{len(ticks)},}}[ \t]*$")
    return [n for n in range(start + 1, len(lines)) if close.match(lines[n])]
