"""`codetape replay`: hold a tape against today's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from codetape.cli.exits import NOT_PASSED, PASSED
from codetape.cli.stores import find_session, reading, session_argument, store_option

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.replay.drift import Report


@click.command()
@session_argument
@store_option
def command(session: str, store: str | None) -> int:
    """Fold a tape with today's rules and report the first event that would differ.

    No model is asked and nothing is run. For each event it compares where it leads, what is asked
    for (prompt and schema, to the byte) and what is made of the answer. Ends with 0 if the two are
    identical, else with 1. How the session itself ended is another matter. SESSION is a prefix of
    its id, or last.

    Example: codetape replay last
    """
    from codetape.cli.screen import screen
    from codetape.replay.replayer import replay

    with reading(store) as opened:
        report = replay(opened, find_session(opened, session))
    _show(screen(), report)
    return PASSED if report.identical else NOT_PASSED


def _show(shown: Screen, report: Report) -> None:
    from codetape.cli.text import counted

    if report.identical:
        said = f"identical: {counted(report.events, 'event')}, rules {report.rules}"
        shown.line(f"Session {report.session} is {said}.", "good")
    for difference in report.differences:
        shown.line(f"Session {report.session} differs at {difference}", "bad")
        if difference.diff:
            shown.code(difference.diff, "diff")
    if report.ending:
        shown.line(f"The session itself: {report.ending.reason}.", "dim")
