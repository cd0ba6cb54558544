"""A terminal, by rich. NO_COLOR is honoured by rich; nothing is read as markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from codetape.cli.text import counted, duration, money
from codetape.engine.visible import in_one_line, safe

if TYPE_CHECKING:
    from codetape.cli.facts import Row
    from codetape.cli.screen import Style
    from codetape.cli.watching import Watch
    from codetape.states.machine import State
    from codetape.states.session import Session

_STYLES = {"": "", "good": "bold green", "bad": "bold red", "dim": "dim", "title": "bold"}
_EVENTS = {
    "tests_passed": "green",
    **dict.fromkeys(("tests_failed", "tests_not_collected", "answer_rejected"), "yellow"),
    **dict.fromkeys(("call_failed", "sandbox_broke", "build_failed", "attempts_spent"), "red"),
}
_DOING = {
    "check_sandbox": "looking for a sandbox",
    "write_plan": "the model plans",
    "write_code": "the model writes the code",
    "verify_code": "the model checks its repair of the code",
    "write_tests": "the model writes the tests",
    "patch_tests": "the model repairs the tests",
    "verify_tests": "the model checks its repair of the tests",
    "build_image": "the image is built",
    "replace_package": "the model names another package",
    "run_tests": "the tests run",
    "diagnose": "the model reads the failures",
}


GAP = 2  # blanks between two columns of a table
NAME = 20  # columns of an event's name and a blank; the longest is tests_not_collected
ROOM = 40  # columns of number, name and state of an event; its facts follow


class Terminal:
    """Implements `Screen`."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, markup=False, highlight=False, emoji=False)

    def line(self, text: str = "", style: Style = "") -> None:
        self._console.print(Text(safe(text), _STYLES[style]))

    def fields(self, pairs: Iterable[tuple[str, str]]) -> None:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in pairs:
            if value:
                grid.add_row(Text(safe(name)), Text(safe(value)))
        self._console.print(grid)

    def table(
        self, headers: Sequence[str], rows: Iterable[Sequence[str]], spare: Sequence[str] = ()
    ) -> None:
        cells = ([safe(cell) for cell in row] for row in rows)
        columns = [*zip(headers, *cells, strict=True)]
        for header in spare:
            if _unbroken(columns, self._console.width):
                break
            columns = [column for column in columns if column[0] != header]
        self._console.print(_table(columns, self._console.width))

    def code(self, text: str, language: str) -> None:
        shown = safe(text)
        self._console.print(Syntax(shown, language, theme="ansi_dark", word_wrap=True))

    def event(self, row: Row) -> None:
        self._console.print(_event(row), no_wrap=True, overflow="ellipsis")

    @contextmanager
    def live(self, watch: Watch) -> Iterator[Picture]:
        """Draw the run below the events; it goes away at the end."""
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            yield Picture(watch, live)


class Picture:
    """The run as it stands: the states, the attempt, what is in flight, what was paid."""

    every: float | None = 0.1

    def __init__(self, watch: Watch, live: Live) -> None:
        self._watch, self._live = watch, live
        self._spinner = Spinner("dots")

    def draw(self) -> None:
        """Draw it anew."""
        self._live.update(Group(*self._lines()), refresh=True)

    def _lines(self) -> Iterator[RenderableType]:
        session = self._watch.session
        yield Text()
        yield _states(session.state if session else None)
        if session:
            attempt = min(session.attempts + 1, session.job.max_iterations)
            paid = session.totals
            yield _cut(
                f"attempt {attempt} of {session.job.max_iterations} · "
                f"{counted(paid.calls, 'model call')} · {paid.input_tokens:,} tokens in, "
                f"{paid.output_tokens:,} out · cost {money(paid.cost)}"
            )
        for name, seconds in self._watch.in_flight:
            grid = Table.grid(padding=(0, 1))
            said = [_DOING.get(name, name), duration(seconds), _try(session)]
            grid.add_row(self._spinner, _cut(" · ".join(filter(None, said))))
            yield grid


def _widest(columns: Sequence[Sequence[str]]) -> int:
    """Return which column is the widest; the first one, which is never wrapped, does not count."""
    return max(range(1, len(columns)), key=lambda number: _width(columns[number]), default=0)


def _width(cells: Iterable[str]) -> int:
    return max(map(cell_len, cells), default=0)


def _unbroken(columns: Sequence[Sequence[str]], width: int) -> bool:
    """Say whether all fit if only the widest one is wrapped, between its words."""
    prose = columns[_widest(columns)]
    words = _width(word for cell in prose for word in cell.split())
    whole = sum(map(_width, columns)) - _width(prose)
    return whole + words + GAP * (len(columns) - 1) <= width


def _table(columns: Sequence[Sequence[str]], width: int) -> Table:
    """Lay out columns, each with its header on top."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim underline")
    widest, unbroken = _widest(columns), _unbroken(columns, width)
    for number, (header, *_) in enumerate(columns):
        whole = number == 0 or (unbroken and number != widest)
        table.add_column(Text(safe(header)), no_wrap=whole, overflow="fold")
    for row in zip(*(cells for _, *cells in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _try(session: Session | None) -> str:
    """Say that a call is made again, and how often it may be; a pause counts as its time."""
    if session is None or not session.call_failures:
        return ""
    return f"try {session.call_failures + 1} of {session.job.call_retries + 1}"


def _states(now: State | None) -> Text:
    """All states in a row, the present one marked."""
    from codetape.states.machine import State

    text = Text(no_wrap=True, overflow="ellipsis")
    for state in State:
        text.append(f"[{state}]" if state is now else f" {state} ", _state_style(state, now))
    return text


def _state_style(state: State, now: State | None) -> str:
    if state is not now:
        return "dim"
    return "bold green" if state == "Done" else "bold cyan"


def _event(row: Row) -> Text:
    text = Text(f"{row.seq:>3}  ", "dim")
    text.append(f"{in_one_line(row.event):<{NAME}}", _EVENTS.get(row.event, "bold"))
    text.append("" if row.source == row.dest else in_one_line(f"→ {row.dest}"), "cyan")
    text.pad_right(ROOM - len(text))
    return text.append(in_one_line(row.facts), "dim")


def _cut(text: str) -> Text:
    return Text(in_one_line(text), no_wrap=True, overflow="ellipsis")
