"""`codetape show`: a session as the tape has it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from codetape.cli.exits import USAGE, Failed
from codetape.cli.generate import save_option
from codetape.cli.stores import find_session, reading, session_argument, store_option

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.result import Result


@click.command()
@session_argument
@click.option("--events", "view", flag_value="events", help="Every event, with its facts.")
@click.option("--code", "view", flag_value="code", help="The newest code.")
@click.option("--tests", "view", flag_value="tests", help="The newest test file.")
@click.option("--prompts", "view", flag_value="prompts", help="What the model was asked and said.")
@save_option
@store_option
def command(session: str, view: str | None, save: Path | None, store: str | None) -> None:
    """Show a session: how it ended, or one view of it.

    Control characters in what a model wrote are shown escaped; --save writes the files as they are.
    SESSION is a prefix of its id, or last.

    Example: codetape show last --events
    """
    from codetape.cli import report
    from codetape.cli.screen import screen
    from codetape.result import Result

    shown = screen()
    with reading(store) as opened:
        result = Result.load(find_session(opened, session), opened)
        _VIEWS[view or "summary"](shown, result)
        if save:
            report.save_and_say(shown, result, save)


def _summary(shown: Screen, result: Result) -> None:
    from codetape.cli import report
    from codetape.cli.text import listed

    job = result.folded.job
    shown.line(job.prompt)
    shown.line()
    report.show_result(shown, result)
    shown.fields(
        [
            ("sandbox", job.sandbox),
            ("inputs", listed([f"{d.name}: {d.type}" for d in job.inputs], "")),
            ("outputs", listed([f"{d.name}: {d.type}" for d in job.outputs], "")),
            ("state", f"{result.folded.state}, after event {result.folded.seq}"),
            ("opened", result.records[0].at),
        ]
    )


def show_events(shown: Screen, result: Result) -> None:
    """Show the events of a tape as a table."""
    from codetape.cli.facts import row

    start = datetime.fromisoformat(result.records[0].at)
    rows = []
    for record in result.records:
        shape = row(record)
        after = (datetime.fromisoformat(record.at) - start).total_seconds()
        moved = f"{shape.source} {shown.arrow} {shape.dest}"
        where = moved if shape.source != shape.dest else shape.dest
        rows.append((str(shape.seq), f"{after:.2f}", where, shape.event, shape.facts))
    shown.table(("#", "sec", "state", "event", "facts"), rows)


def _code(shown: Screen, result: Result) -> None:
    if result.solution is None:
        raise Failed(f"session {result.session} has no code yet", USAGE)
    shown.code(result.solution.code, "python")


def _tests(shown: Screen, result: Result) -> None:
    if result.tests is None:
        raise Failed(f"session {result.session} has no tests", USAGE)
    shown.code(result.tests, "python")


def _prompts(shown: Screen, result: Result) -> None:
    for turn in result.conversation_history:
        shown.line(f"--- {turn['role']} ---", "title")
        shown.line(turn["content"])
        shown.line()


_VIEWS = {
    "summary": _summary,
    "events": show_events,
    "code": _code,
    "tests": _tests,
    "prompts": _prompts,
}
