"""`codetape show`: a session as the tape has it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from codetape.cli.exits import INFRASTRUCTURE, USAGE, Failed
from codetape.cli.generate import save_option
from codetape.cli.out import put
from codetape.cli.sessions import between
from codetape.cli.stores import EVENT, reading_tape, session_argument, store_option

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.engine.ports import EventStore
    from codetape.engine.tape import Source
    from codetape.replay.reading import Tape
    from codetape.result import Result
    from codetape.states.session import Session


@click.command()
@session_argument
@click.option("--at", type=EVENT, metavar="N", help="As it was after event N.")
@click.option("--events", is_flag=True, help="Every event, with its facts.")
@click.option("--code", is_flag=True, help="The newest code.")
@click.option("--tests", is_flag=True, help="The newest test file.")
@click.option("--prompts", is_flag=True, help="What the model was asked, and what it said.")
@click.option("--json", is_flag=True, help="The result as one JSON object, as generate prints it.")
@save_option
@store_option
def command(
    session: str, at: int | None, save: Path | None, store: str | None, **views: bool
) -> None:
    """Show a session: how it ended, or one view of it; as it is, or as it was after event N.

    Control characters in what a model wrote are shown escaped; --save writes the files as they are.
    SESSION is a prefix of its id, or last, or a FILE.jsonl of `codetape export`.

    \b
    Examples:
      codetape show last --events
      codetape show last --at 7 --code
    """
    from codetape.cli import report
    from codetape.cli.screen import screen

    chosen = [name for name, asked in views.items() if asked] or ["summary"]
    if len(chosen) > 1:
        raise click.UsageError(
            f"give one of --{' and --'.join(chosen)}", click.get_current_context()
        )
    shown = screen(sys.stderr if views["json"] else sys.stdout)
    with reading_tape(session, store) as (source, found):
        result, heading = load(source, found, at)
        _VIEWS[chosen[0]](shown, result, heading)
        if save:
            report.save_and_say(shown, result, save)


def load(source: Source, session: str, at: int | None) -> tuple[Result, str]:
    """Return the result of a session, or what it was after event `at` and a heading that says so."""
    from codetape.replay.reading import open_intact
    from codetape.result import Result

    tape, fault = open_intact(source, session)
    if fault and (at is None or at > len(tape)):
        raise intact_until(tape, fault)
    try:
        step = tape[at if at is not None else -1]
    except IndexError as error:
        raise Failed(str(error), USAGE) from error
    result = Result.of(step.session, cast("EventStore", source))
    where = f"After event {step.seq} of {len(tape)}, {step.event.name}: {step.state}"
    return result, where if at is not None else _running(source, session)


def _running(source: Source, session: str) -> str:
    """Say that a process is at work on a session of a store at this moment; empty if none is."""
    from codetape.replay.imports import TapeFile

    if isinstance(source, TapeFile):
        return ""
    rows = cast("EventStore", source).sessions()
    owner = next((row.owner for row in rows if row.id == session), None)
    return f"Not done: it is running ({owner})." if owner else ""


def intact_until(tape: Tape, fault: Exception) -> Failed:
    """Say what is damaged, and what can be looked at and forked all the same."""
    message = f"{fault}\nEvents 1 to {len(tape)} are intact: show and fork them with --at"
    return Failed(message, INFRASTRUCTURE)


def show_at(shown: Screen, source: Source, session: str, at: int) -> None:
    """Show a session as it was after event `at`."""
    _summary(shown, *load(source, session, at))


def _summary(shown: Screen, result: Result, heading: str) -> None:
    from codetape.cli import report
    from codetape.cli.text import listed

    job = result.folded.job
    shown.line(job.prompt)
    shown.line()
    more = [
        *_of_a_tool(result.folded),
        ("sandbox", job.sandbox),
        ("inputs", listed([f"{d.name}: {d.type}" for d in job.inputs], "")),
        ("outputs", listed([f"{d.name}: {d.type}" for d in job.outputs], "")),
        ("state", f"{result.folded.state}, after event {result.folded.seq}"),
        ("opened", f"{result.records[0].at:.19} UTC"),
    ]
    if result.records[-1].session != result.records[0].session:
        more.append(("fork of", _lineage(result)))
    report.show_result(shown, result, more, heading)


def _of_a_tool(session: Session) -> list[tuple[str, str]]:
    """What is known of a tool besides; nothing of another session."""
    from codetape.cli.text import counted
    from codetape.states.tools.ending import harness_status, status
    from codetape.states.tools.session import ToolSession

    if not isinstance(session, ToolSession):
        return []
    crashes = counted(session.fixes, "crash", "crashes")
    return [
        ("status", status(session) or "not done"),
        ("harness", harness_status(session)),
        ("repairs", f"{crashes}, {session.logic_repairs} of its logic"),
    ]


def _lineage(result: Result) -> str:
    """The sessions that a fork came from, the nearest first."""
    from codetape.states.events import Forked

    forks = [r.event for r in reversed(result.records) if isinstance(r.event, Forked)]
    given = ", with an outcome that was given" if any(fork.given for fork in forks) else ""
    return ", of ".join(f"{fork.parent} at event {fork.seq}" for fork in forks) + given


def show_events(shown: Screen, result: Result, _: str = "") -> None:
    """Show the events of a tape as a table."""
    from codetape.cli.facts import row

    start = result.records[0].at
    rows = []
    for record in result.records:
        shape = row(record)
        after = between(start, record.at)
        seconds = "unknown" if after is None else f"{after:.2f}"
        rows.append((str(shape.seq), seconds, shape.event, shape.dest, shape.facts))
    shown.table(("#", "sec", "event", "leads to", "facts"), rows, ("sec",))


def _code(shown: Screen, result: Result, _: str) -> None:
    if result.solution is None:
        raise Failed(f"session {result.session} has no code yet", USAGE)
    shown.code(result.solution.code, "python")


def _tests(shown: Screen, result: Result, _: str) -> None:
    if result.tests is None:
        raise Failed(f"session {result.session} has no tests", USAGE)
    shown.code(result.tests, "python")


def _prompts(shown: Screen, result: Result, _: str) -> None:
    for turn in result.conversation_history:
        shown.line(f"--- {turn['role']} ---", "title")
        shown.line(turn["content"])
        shown.line()


def _json(_: Screen, result: Result, __: str) -> None:
    from codetape.cli import report

    put(report.as_json(result))


_VIEWS: dict[str, Callable[[Screen, Result, str], None]] = {
    "summary": _summary,
    "events": show_events,
    "code": _code,
    "tests": _tests,
    "prompts": _prompts,
    "json": _json,
}
