"""Both screens escape what they show, and lay it out for where it goes."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable

import pytest
from rich.text import Text

from codetape.cli.facts import Row
from codetape.cli.plain import Plain
from codetape.cli.screen import Screen, screen
from codetape.cli.sessions import HEADERS as SESSIONS
from codetape.cli.sessions import SPARE
from codetape.cli.terminal import Terminal
from codetape.cli.watching import Watch
from codetape.states.events import EVENTS
from codetape.states.session import Session

EVIL = "\x1b[31mred\u202e[bold]<img onerror=alert(1)>"
SHOWN = "\\x1b[31mred\\u202e[bold]<img onerror=alert(1)>"


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def tty(monkeypatch: pytest.MonkeyPatch) -> Tty:
    for name, value in {"TERM": "xterm", "COLUMNS": "80", "LINES": "24", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return Tty()


WAYS: dict[str, Callable[[Screen], None]] = {
    "line": lambda s: s.line(EVIL),
    "fields": lambda s: s.fields([("name", EVIL)]),
    "table": lambda s: s.table(("a", "b"), [("x", EVIL)]),
    "code": lambda s: s.code(EVIL, "python"),
    "state": lambda s: s.event(Row(1, "Done", EVIL, "noted", "")),
    "kind": lambda s: s.event(Row(1, "Done", "Done", EVIL, "")),
    "event": lambda s: s.event(Row(1, "Done", "Done", "noted", EVIL)),
}


@pytest.mark.parametrize("way", WAYS)
def test_plain_lines_escape(way: str) -> None:
    stream = io.StringIO()
    WAYS[way](Plain(stream))
    assert SHOWN in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("way", WAYS)
def test_terminal_escapes_and_reads_no_markup(way: str, tty: Tty) -> None:
    WAYS[way](Terminal(tty))
    written = tty.getvalue()
    assert "\x1b[31mred" not in written
    assert "\u202e" not in written
    if way == "event":  # cut to the width
        assert "\\x1b[31mred\\u202e[bold]" in written
    else:
        assert "[bold]<img" in written


def test_no_color_is_honoured(tty: Tty) -> None:
    Terminal(tty).line("bad", "bad")
    assert "31" not in tty.getvalue()


def test_plain_layout() -> None:
    stream = io.StringIO()
    plain = Plain(stream)
    plain.fields([("session", "abc"), ("cost", "$1"), ("empty", "")])
    plain.table(("id", "text"), [("1", "two\nlines"), ("22", "x")])
    plain.event(Row(4, "NeedsCode", "NeedsTests", "code_written", "3 lines"))
    assert stream.getvalue().splitlines() == [
        "session:  abc",
        "cost:     $1",
        "ID  TEXT",
        "1   two\\nlines",
        "22  x",
        "   4  NeedsCode -> NeedsTests       code_written         3 lines",
    ]


def test_events_fit_into_eighty_columns(tty: Tty) -> None:
    Terminal(tty).event(Row(123, "NeedsTests", "NeedsRebuild", "tests_not_collected", "x" * 200))
    (line,) = tty.getvalue().splitlines()
    assert len(Text.from_ansi(line)) == 80


def test_a_row_is_whole_in_eighty_columns(tty: Tty) -> None:
    """What a row is named by can be copied, and nothing else of it is left out."""
    cells = ("4f2a" * 4, "x" * 90, *("123456789",) * 7)
    Terminal(tty).table(("session", *"abcdefgh"), [cells])
    shown = tty.getvalue()
    assert cells[0] in shown
    assert shown.count("x") == 90
    assert shown.count("9") == 7
    assert max(len(Text.from_ansi(line)) for line in shown.splitlines()) <= 80


SESSION_ROW = (
    *("4f2a" * 4, "Report on the sensors", "NeedsRebuild, running", "11", "5", "12,084"),
    *("unknown", "tests_not_collected", "59 minutes ago"),
)


@pytest.mark.parametrize("columns", [64, 70, 80, 100, 150])
def test_a_narrow_terminal_shows_fewer_sessions_columns_and_breaks_no_word(
    tty: Tty, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    Terminal(tty).table(SESSIONS, [SESSION_ROW, SESSION_ROW], SPARE)
    text = Text.from_ansi(tty.getvalue()).plain
    words = {word for cell in (*SESSION_ROW, *SESSIONS) for word in cell.split()}
    assert set(text.split()) <= words
    assert {"4f2a" * 4, "ago", "Report"} <= set(text.split())
    assert max(map(len, text.splitlines())) <= columns
    left_out = [header for header in SPARE if header.split()[-1] not in text.split()]
    assert tuple(left_out) == SPARE[: len(left_out)]
    assert bool(left_out) == (columns < 150)


def test_picture_shows_states_attempt_tokens_and_unknown_cost(tty: Tty) -> None:
    terminal = Terminal(tty)
    watch = Watch(terminal, None)
    watch.session = Session(id="x")
    with terminal.live(watch) as live:
        live.draw()
    drawn = tty.getvalue()
    assert "[NeedsCode]" in drawn
    assert "attempt 1 of 10 · 0 model calls · 0 tokens in, 0 out · cost $0" in drawn


def test_pipes_and_dumb_terminals_get_plain_lines(
    tty: Tty, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(screen(tty), Terminal)
    assert isinstance(screen(io.StringIO()), Plain)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(screen(tty), Plain)


def test_the_facts_of_all_events_stand_below_each_other(tty: Tty) -> None:
    plain = io.StringIO()
    for event, source in itertools.product(EVENTS, ("NeedsRebuild", "Done")):
        for shown in (Plain(plain), Terminal(tty)):
            shown.event(Row(1, source, "NeedsRebuild", event.name, "facts"))
    for written in (plain.getvalue(), Text.from_ansi(tty.getvalue()).plain):
        assert len({line.index("facts") for line in written.splitlines()}) == 1
    assert written.count("→") == written.count(" → ")  # of the terminal, which was the last
