"""Code inside the Markdown and the tags that models wrap around it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from codetape.states.python_source import TOO_DEEP, TOO_LONG, defined_names, is_broken, syntax_error

_TICKS = r"(?P<ticks>`{3,}|~{3,})"
_MARK = re.compile(
    rf"^(?P<indent>[ \t]*){_TICKS}[ \t]*(?P<info>[^`\n]*)$"
    r"|^(?P<words>[^`\n]*[^`\s])[ \t]*(?P<late>`{3,})(?P<lang>(?:py|json)[\w.-]*)?[ \t]*$"
    r"|^[ \t]*[<\[](?P<end>/?)(?P<tag>[A-Za-z][\w.:-]*)(?:[ =][^<>\n]*)?[>\]][ \t]*$",
    re.MULTILINE,
)
"""A fence on a line of its own; one at the end of a line of words or code; a tag on its own line."""

_PYTHON = re.compile(r"\{?\.?(py|python)[-\d.]*\b", re.IGNORECASE)

CLOSINGS = 16
"""Marks that may close a block, of those that follow it: answers with hundreds of fences exist."""

WORK = 4
"""How often the characters of a text may be read on the search for its blocks."""

TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u2032", "'"),
        **dict.fromkeys("\u00a0\u202f", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", ""),
    }
)
"""Characters of word processors, and what they are in code."""

MARKS = 1_000
"""Marks that are looked at; of more, the first and the last ones."""

PAIR = 200
"""The work that a block is, however short it is, in characters."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Block:
    """A text between two marks, where it starts and ends, and what the first mark says it is."""

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


@dataclass(frozen=True, slots=True)
class _Mark:
    """A line that opens or closes a block. A fence without a word may do either."""

    start: int
    body: int  # where the text after it begins
    stop: int  # where the text before it ends
    kind: str  # of the closing one: a tag's name or the character of a fence
    size: int
    indent: str = ""
    info: str = ""
    opens: bool = True
    closes: bool = True

    @property
    def is_late(self) -> bool:
        """True if it stands at the end of a line: such a one may be part of the code."""
        return self.stop > self.start


def python_code(text: str, fits: Callable[[str], bool] = lambda _: True) -> str:
    """Return the code in `text`: the fenced block that fits and parses, else the text itself.

    A text that parses as it stands is code; fences inside its strings are left alone. A fence closes
    at a line of at least as many marks of its kind, so a block may hold shorter fences; because models
    do nest fences of equal length, later closing lines are tried too. A block that fits goes before
    one that does not, one that is called Python before data that parses, and a whole before an
    excerpt of it. Of several that are left the last one is the answer. What does not parse for the
    characters of a word processor is read without them.
    """
    stripped = lines_ended(text).strip("\n")
    if syntax_error(stripped) is None:
        return stripped
    found = [block for block, _ in read_blocks(stripped, _parsing)]
    if found:
        return _chosen(found, fits).text
    plain = plain_code(stripped)
    return _unread(stripped) if plain == stripped else python_code(plain, fits)


def plain_code(text: str) -> str:
    """Return a text without the quotes, spaces and invisible characters of word processors."""
    return text.translate(TYPOGRAPHY)


def _unread(text: str) -> str:
    """Return the code that is too deep, too long or too new to be read, so that this is said of it."""
    found = read_blocks(text, lambda code: _is_code(code) or None)
    return found[-1][0].text if found else text


def _is_code(text: str) -> bool:
    problem = syntax_error(text)
    return problem in {TOO_DEEP, TOO_LONG} or (problem is not None and not is_broken(text))


def _parsing(text: str) -> bool | None:
    return True if syntax_error(text) is None else None


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


def read_blocks(text: str, read: Callable[[str], T | None]) -> list[tuple[Block, T]]:
    """Return the blocks that can be read, in their order, those inside of others left out.

    A block ends at the first mark up to which it can be read. The work is bounded by a multiple of
    the text's length, however many marks it has.
    """
    found: list[tuple[Block, T]] = []
    left = WORK * len(text) + 400_000
    for first, last in _pairs(_marks(text)):
        at = bisect_right(found, first.start, key=lambda one: one[0].start)
        if at and found[at - 1][0].end > first.start:
            continue
        if (left := left - PAIR - max(0, last.stop - first.body)) < 0:
            break
        block = _block(text, first, last)
        if (value := read(block.text)) is not None:
            del found[at : bisect_right(found, block.end, key=lambda one: one[0].end, lo=at)]
            found.insert(at, (block, value))
    return found


def blocks(text: str) -> Iterator[Block]:
    """Yield every text between an opening mark and one that may close it, the nearest ones first."""
    for first, last in _pairs(_marks(text)):
        yield _block(text, first, last)


def _block(text: str, first: _Mark, last: _Mark) -> Block:
    body = text[first.body : max(first.body, last.stop)].removesuffix("\n")
    if first.indent:
        body = "\n".join(_outdented(line, len(first.indent)) for line in body.split("\n"))
    return Block(_unwrapped(body), first.start, last.start, first.info)


def _pairs(marks: list[_Mark]) -> list[tuple[_Mark, _Mark]]:
    """Return the marks that may belong together, the nearest ones first."""
    by_kind: dict[str, list[int]] = {}
    for n, mark in enumerate(marks):
        if mark.closes:
            by_kind.setdefault(mark.kind, []).append(n)
    pairs = []
    for n, first in enumerate(marks):
        after = by_kind.get(first.kind, []) if first.opens else []
        at = bisect_right(after, n)
        near = [marks[other] for other in after[at : at + 8 * CLOSINGS]]
        closing = [mark for mark in near if mark.size >= first.size][:CLOSINGS]
        pairs += [(mark.is_late, turn, first, mark) for turn, mark in enumerate(closing)]
    return [pair[2:] for pair in sorted(pairs, key=lambda pair: pair[:2])]


def _marks(text: str) -> list[_Mark]:
    found = list(_MARK.finditer(text))
    if len(found) > MARKS:
        found = found[: MARKS // 2] + found[-MARKS // 2 :]
    return [_mark(one) for one in found]


def _mark(found: re.Match[str]) -> _Mark:
    start, body = found.start(), found.end() + 1
    if tag := found["tag"]:
        ends = bool(found["end"])
        return _Mark(start, body, start, f"<{tag}>", 1, opens=not ends, closes=ends)
    if late := found["late"]:
        info = found["lang"] or ""
        stop = found.end("words")
        return _Mark(start, body, stop, "`", len(late), "", info, bool(info), not info)
    ticks, info = found["ticks"], found["info"].strip()
    size, indent = len(ticks), found["indent"]
    return _Mark(start, body, start, ticks[0], size, indent, info, closes=not info)


def has_open_fence(text: str) -> bool:
    """True if a fence opens and nothing closes it: the text was cut.

    A line of marks alone may be a closing one, unless it is the first.
    """
    return open_block(lines_ended(text)) is not None


def open_block(text: str) -> Block | None:
    """Return the text after a fence that is not closed, or None."""
    fences = [mark for mark in _marks(text) if mark.kind in ("`", "~")]
    largest = {"`": 0, "~": 0}
    found: _Mark | None = None
    first = next((mark for mark in fences if mark.opens), None)
    for mark in reversed(fences):
        is_open = mark.opens and mark.size > largest[mark.kind]
        if is_open and (mark.info or mark is first):
            found = mark
        if mark.closes:
            largest[mark.kind] = max(largest[mark.kind], mark.size)
    return Block(text[found.body :], found.start, len(text), found.info) if found else None


def lines_ended(text: str) -> str:
    """Return a text whose lines end as they do here, without a mark of its byte order."""
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")


def _unwrapped(body: str) -> str:
    """Return a block without what XML puts around a text, and without a mark of its byte order."""
    stripped = body.strip()
    if stripped.startswith("<![CDATA[") and stripped.endswith("]]>"):
        body = stripped[9:-3].strip("\n")
    return body.lstrip("\ufeff")


def _outdented(line: str, indent: int) -> str:
    blank = len(line) - len(line.lstrip(" \t"))
    return line[min(indent, blank) :]
