"""A walk over a tape in the terminal: one event at a time, forwards, backwards, or to any number."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from codetape.cli.facts import row
from codetape.cli.out import put
from codetape.cli.text import counted
from codetape.replay.compare import text_diff
from codetape.replay.diffs import readable_request
from codetape.states.events import CodeWritten
from codetape.states.values import Answer

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.replay.drift import Difference
    from codetape.replay.reading import Step, Tape

HELP = """\
n, Enter  the next event        d  how the code differs from the attempt before
b         the one before        c  the code        t  the tests
NUMBER    event NUMBER          p  what was asked  a  the answer, as it came
q         leave                 ?  this"""


class Walk:
    """Stands at one event of a tape and shows what is asked for; `at` is its number."""

    def __init__(
        self, screen: Screen, tape: Tape, differences: Sequence[Difference] = (), at: int = 1
    ) -> None:
        self._screen = screen
        self._tape = tape
        self._differences = differences
        self.at = at

    def go(self, lines: TextIO = sys.stdin) -> None:
        """Show the event, then do what each line says, up to `q` or the end of the input."""
        asked = lines.isatty()
        self._screen.line("? lists what you can type.", "dim")
        self._show()
        while True:
            if asked:
                put(f"event {self.at} of {len(self._tape)}> ", end="")
            line = lines.readline()
            if not line or line.strip() in {"q", "quit"}:
                return
            self._do(line.strip())

    def _do(self, word: str) -> None:
        if word.removeprefix("-").isdecimal():
            self._jump(int(word))
        elif word in {"", "n", "next"}:
            self._jump(self.at + 1)
        elif word in {"b", "back"}:
            self._jump(self.at - 1)
        elif word in _VIEWS:
            _VIEWS[word](self._screen, self._tape[self.at])
        else:
            self._screen.line(HELP if word == "?" else f"{word}: no such word\n{HELP}", "dim")

    def _jump(self, at: int) -> None:
        if not 1 <= at <= len(self._tape):
            self._screen.line(f"The events are 1 to {len(self._tape)}.", "dim")
            return
        self.at = at
        self._show()

    def _show(self) -> None:
        step = self._tape[self.at]
        self._screen.event(row(step.record))
        for difference in self._differences:
            if difference.seq == self.at:
                self._screen.line(f"      today's rules differ: {difference.reason}", "bad")
        self._screen.line(f"      {_standing(step)}", "dim")


def _standing(step: Step) -> str:
    """The folded session in a line."""
    from codetape.states.machine import IllegalTransition

    try:
        session = step.session
    except IllegalTransition as error:
        return f"today's rules go no further: {error}"
    parts = [
        f"attempt {session.attempts} of {session.job.max_iterations}",
        counted(session.totals.calls, "call"),
        counted(len(session.failures), "failure") if session.failures else "",
        f"waits: {session.paused}" if session.paused else "",
        "inherited" if step.inherited else "",
    ]
    return ", ".join(filter(None, parts))


# --- views ----------------------------------------------------------------------------------------


def _prompt(screen: Screen, step: Step) -> None:
    match readable_request(step.request):
        case None:
            screen.line("This event answers no request.", "dim")
        case {"call": {"messages": [*messages]}}:
            for message in messages:
                ((role, text),) = message.items()
                screen.line(f"--- {role} ---", "title")
                screen.line(text)
        case request:
            screen.code(json.dumps(request, indent=2, ensure_ascii=False), "json")


def _answer(screen: Screen, step: Step) -> None:
    match step.event.outcome:
        case None:
            screen.line("This event tells of no outcome.", "dim")
        case Answer(text=text, raw=raw):
            screen.line(json.loads(raw) if raw else text or "(no text)")
        case outcome:
            screen.code(outcome.model_dump_json(indent=2), "json")


def _codes(step: Step) -> list[str]:
    events = [s.event for s in step.tape if s.seq <= step.seq]
    return [event.source for event in events if isinstance(event, CodeWritten)]


def _diff(screen: Screen, step: Step) -> None:
    codes = _codes(step)
    if len(codes) < 2:
        screen.line(f"{'One attempt' if codes else 'No code'} so far: nothing to compare.", "dim")
        return
    diff = text_diff(codes[-2], codes[-1], ("before", "after"))
    screen.code(diff or "(the same code)", "diff")


def _code(screen: Screen, step: Step) -> None:
    session = step.session
    screen.code(session.code.source if session.code else "(no code yet)", "python")


def _tests(screen: Screen, step: Step) -> None:
    session = step.session
    screen.code(session.tests.source if session.tests else "(no tests yet)", "python")


_VIEWS: Mapping[str, Callable[[Screen, Step], None]] = {
    "p": _prompt,
    "a": _answer,
    "d": _diff,
    "c": _code,
    "t": _tests,
}
