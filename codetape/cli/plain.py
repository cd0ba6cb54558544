"""Plain lines, for a pipe, a file or a log: no colour, no cursor, nothing is cut to a width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from codetape.engine.visible import in_one_line, safe

if TYPE_CHECKING:
    from codetape.cli.facts import Row
    from codetape.cli.screen import Style
    from codetape.cli.watching import Watch


class Plain:
    """Implements `Screen`."""

    every: float | None = None

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str = "", style: Style = "") -> None:  # noqa: ARG002 - the port has it
        print(safe(text), file=self._stream, flush=True)

    def fields(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._aligned([(f"{name}:", value) for name, value in pairs if value])

    def table(
        self,
        headers: Sequence[str],
        rows: Iterable[Sequence[str]],
        spare: Sequence[str] = (),  # noqa: ARG002 - the port has it; a line here has no end
    ) -> None:
        self._aligned([[header.upper() for header in headers], *rows])

    def code(self, text: str, language: str) -> None:  # noqa: ARG002 - the port has it
        self.line(text.removesuffix("\n"))

    def event(self, row: Row) -> None:
        path = in_one_line(f"{row.source} -> {row.dest}")
        event, facts = in_one_line(row.event), in_one_line(row.facts)
        self.line(f"{row.seq:>4}  {path:<28}  {event:<19}  {facts}".rstrip())

    @contextmanager
    def live(self, watch: Watch) -> Iterator[Plain]:  # noqa: ARG002 - the port has it
        """Nothing moves here: each event is a line."""
        yield self

    def draw(self) -> None:
        """Nothing to draw."""

    def _aligned(self, rows: Iterable[Sequence[str]]) -> None:
        cells = [[in_one_line(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(padded).rstrip(), file=self._stream, flush=True)
