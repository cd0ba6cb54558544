"""What a test file asks for otherwise than the one before it, in words.

A repair may change expected values; a reader has to know. Each line of a test that is another one is
told, and each test that is gone or new. Format, comments, docstrings and the names of local variables
are no changes. What cannot be compared is said, too.
"""

from __future__ import annotations

import difflib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from codetape.states import events as e
from codetape.states.changed_lines import cut, line_change
from codetape.states.lines_of_tests import Line, units_of
from codetape.states.python_source import syntax_error

WRITING = (e.TestsWritten, e.TestsPatched)
"""The events that bring a test file."""

MOST = 20
"""Facts of two files."""

LARGEST = 200_000
"""Characters of a file beyond which it is not compared: it would take too long."""

MOST_LINES = 400
"""Lines of one test, or of one function, beyond which only that they differ is told."""


class Pair(NamedTuple):
    """A line before and after."""

    old: Line
    new: Line


def changed_tests(before: str, after: str) -> tuple[str, ...]:
    """Return what a test file asks for otherwise than the one before, the weightiest first."""
    if before == after:
        return ()
    if max(len(before), len(after)) > LARGEST:
        return ("the test file is too long to be compared with the one before",)
    if syntax_error(before) is not None or syntax_error(after) is not None:
        return ("the test file cannot be compared with the one before: one does not parse",)
    try:
        return _bounded([fact for _, fact in sorted(_facts(before, after), key=lambda f: f[0])])
    except (RecursionError, ValueError, MemoryError):
        return ("the test file is nested too deeply, or holds too large a number, to be compared",)


def changes_since(events: Iterable[e.Event]) -> tuple[str, ...]:
    """Return what the last test file of a session asks for otherwise than the first one."""
    files = [event.source for event in events if isinstance(event, WRITING)]
    return changed_tests(files[0], files[-1]) if files else ()


def _bounded(facts: list[str]) -> tuple[str, ...]:
    more = len(facts) - MOST
    return (*facts[:MOST], f"and {more} changes more") if more > 1 else tuple(facts)


def _facts(before: str, after: str) -> Iterator[tuple[int, str]]:
    """Yield facts with their rank: what is asked for, what is gone, other changes, what is new."""
    old, new = units_of(before), units_of(after)
    for name in [*old, *(name for name in new if name not in old)]:
        said = cut(name)
        if name not in new:
            yield 1, f"{said}: gone"
        elif name not in old:
            yield 3, f"{said}: new"
        else:
            yield from ((rank, f"{said}: {fact}") for rank, fact in _unit(old[name], new[name]))


# --- two versions of one test ---------------------------------------------------------------------


def _unit(old: list[Line], new: list[Line]) -> Iterator[tuple[int, str]]:
    aligned = _Alignment(old, new)
    for pair in aligned.changed:
        moved = pair.old.form == pair.new.form and not aligned.differ(pair)
        if moved:
            yield 2, f"moved: {cut(pair.new.text)}"
        else:
            yield _rank(pair.old), line_change(*pair, renamed=aligned.differ(pair))
    yield from ((_rank(line), f"no longer {cut(line.text)}") for line in aligned.removed)
    yield from ((2, f"now also {cut(line.text)}") for line in aligned.added)
    if aligned.too_long:
        yield 0, "changed, and too long to be told line by line"


def _rank(line: Line) -> int:
    return 0 if line.asks else 2


class _Alignment:
    """The lines of two versions, put beside each other; equal ones are in none of the lists."""

    def __init__(self, old: list[Line], new: list[Line]) -> None:
        self.renamed: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.changed: list[Pair] = []
        self.removed: list[Line] = []
        self.added: list[Line] = []
        self.too_long = False
        if [line.form for line in old] == [line.form for line in new]:
            self._equal(old, new)
        elif max(len(old), len(new)) > MOST_LINES:
            self.too_long = True
        else:
            self._match(old, new)

    def _match(self, old: list[Line], new: list[Line]) -> None:
        forms = [line.form for line in old], [line.form for line in new]
        for word, a, b, c, d in difflib.SequenceMatcher(None, *forms, False).get_opcodes():
            if word == "equal":
                self._equal(old[a:b], new[c:d])
            else:
                self.removed += old[a:b]
                self.added += new[c:d]
        for alike in ("form", "erased", "kind"):
            self._pair(attrgetter(alike))

    def _equal(self, old: list[Line], new: list[Line]) -> None:
        pairs = [Pair(one, other) for one, other in zip(old, new, strict=True)]
        self.changed += [pair for pair in pairs if self.differ(pair)]

    def _pair(self, alike: Callable[[Line], str]) -> None:
        """Put lines beside each other that are alike in some way, in their order."""
        free: defaultdict[str, deque[Line]] = defaultdict(deque)
        for line in self.added:
            free[alike(line)].append(line)
        found = {id(x): free[alike(x)].popleft() for x in self.removed if free[alike(x)]}
        self.changed += [Pair(x, found[id(x)]) for x in self.removed if id(x) in found]
        taken = {*found, *(id(line) for line in found.values())}
        self.removed = [line for line in self.removed if id(line) not in taken]
        self.added = [line for line in self.added if id(line) not in taken]

    def differ(self, pair: Pair) -> bool:
        """Say whether two lines have other variables than those that have taken their places."""
        there, back = self.renamed
        names = zip(pair.old.names, pair.new.names, strict=False)
        same = all(there.setdefault(a, b) == b and back.setdefault(b, a) == a for a, b in names)
        return not same or len(pair.old.names) != len(pair.new.names)
