"""Where a command writes: a terminal with rich, or a pipe with plain lines.

A command says what it shows; the screen escapes it, once (see engine/visible.py), and lays it out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

if TYPE_CHECKING:
    from codetape.cli.facts import Row
    from codetape.cli.watching import Watch

Style = Literal["", "good", "bad", "dim", "title"]


class Screen(Protocol):
    """What every screen can do. All text is untrusted."""

    def line(self, text: str = "", style: Style = "") -> None:
        """Show a text; a long one is wrapped in a terminal."""
        ...

    def fields(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Show names and values, one below the other; pairs without a value are left out."""
        ...

    def table(
        self, headers: Sequence[str], rows: Iterable[Sequence[str]], spare: Sequence[str] = ()
    ) -> None:
        """Show rows; the first column, by which a row is named, is never cut.

        `spare` are headers of columns that may be left out, in this order, where a terminal is so
        narrow that words would break.
        """
        ...

    def code(self, text: str, language: str) -> None:
        """Show a file."""
        ...

    def event(self, row: Row) -> None:
        """Show an event that has just happened."""
        ...

    def live(self, watch: Watch) -> AbstractContextManager[Live]:
        """Show what goes on until the block ends."""
        ...


class Live(Protocol):
    """A picture of a run; `every` is how often it wants to be drawn, in seconds (None: never)."""

    every: float | None

    def draw(self) -> None:
        """Draw it anew."""
        ...


def screen(stream: TextIO | None = None) -> Screen:
    """Return the screen for a stream (default: stdout)."""
    stream = stream or sys.stdout
    if stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from codetape.cli.terminal import Terminal

        return Terminal(stream)
    from codetape.cli.plain import Plain

    return Plain(stream)
