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
@click.option("--events", is_flag=True, help="Every event, with its facts.")
@click.option("--code", is_flag=True, help="The newest code.")
@click.option("--tests", is_flag=True, help="The newest test file.")
@click.option("--prompts", is_flag=True, help="What the model was asked, and what it said.")
@save_option
@store_option
def command(session: str, save: Path | None, store: str | None, **views: bool) -> None:
    """Show a session: how it ended, or one view of it.

    Control characters in what a model wrote are shown escaped; --save writes the files as they are.
    SESSION is a prefix of its id, or last.

    Example: codetape show last --events
    """
    from codetape.cli import report
    from codetape.cli.screen import screen
    from codetape.result import Result

    chosen = [name for name, asked in views.items() if asked] or ["summary"]
    if len(chosen) > 1:
        raise click.UsageError(
            f"give one of --{' and --'.join(chosen)}", click.get_current_context()
        )
    shown = screen()
    with reading(store) as opened:
        result = Result.load(find_session(opened, session), opened)
        _VIEWS[chosen[0]](shown, result)
        if save:
            report.save_and_say(shown, result, save)


def _summary(shown: Screen, result: Result) -> None:
    from codetape.cli import report
    from codetape.cli.text import listed

    job = result.folded.job
    shown.line(job.prompt)
    shown.line()
    more = [
        ("sandbox", job.sandbox),
        ("inputs", listed([f"{d.name}: {d.type}" for d in job.inputs], "")),
        ("outputs", listed([f"{d.name}: {d.type}" for d in job.outputs], "")),
        ("state", f"{result.folded.state}, after event {result.folded.seq}"),
        ("opened", f"{result.records[0].at:.19} UTC"),
    ]
    report.show_result(shown, result, more)


def show_events(shown: Screen, result: Result) -> None:
    """Show the events of a tape as a table."""
    from codetape.cli.facts import row

    start = datetime.fromisoformat(result.records[0].at)
    rows = []
    for record in result.records:
        shape = row(record)
        after = (datetime.fromisoformat(record.at) - start).total_seconds()
        rows.append((str(shape.seq), f"{after:.2f}", shape.event, shape.dest, shape.facts))
    shown.table(("#", "sec", "event", "leads to", "facts"), rows)


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
