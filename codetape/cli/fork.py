"""`codetape fork`: a session of its own that shares the beginning of another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codetape.cli.exits import USAGE, Failed
from codetape.cli.stores import (
    EVENT,
    command_line,
    find_session,
    reading,
    session_argument,
    short,
    store_option,
)

if TYPE_CHECKING:
    from codetape.replay.reading import Tape


@click.command()
@session_argument
@click.option("--at", type=EVENT, required=True, metavar="N", help="The last event that is shared.")
@click.option(
    "--set", "sets", metavar="FIELD=VALUE", multiple=True, help="Change what is asked for."
)
@click.option("--model", metavar="M", help="Ask another model from there on.")
@click.option(
    "--outcome",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take this for what event N+1 brought.",
)
@store_option
def command(
    session: str,
    at: int,
    sets: tuple[str, ...],
    model: str | None,
    outcome: Path | None,
    store: str | None,
) -> None:
    """Start a session that shares the events of another one up to event N.

    Nothing is asked and nothing is run yet, and the other session stays as it is: `codetape show
    SESSION --events` numbers its events. A FIELD is prompt, model, max_iterations, timeout, memory,
    usd, tokens, calls, seconds, …; a wrong one names them all. FILE holds the JSON of an outcome, or
    the text of a model's answer. SESSION is a prefix of its id, or last.

    \b
    Examples:
      codetape fork last --at 6 --model gpt-4.1
      codetape fork last --at 9 --set timeout=60 --set "prompt=Count words."
      codetape fork last --at 11 --outcome another-diagnosis.json
    """
    from codetape.cli.screen import screen
    from codetape.cli.show import intact_until
    from codetape.replay.reading import open_intact

    with reading(store) as opened:
        tape, fault = open_intact(opened, find_session(opened, session))
        if fault and at > len(tape):
            raise intact_until(tape, fault)
        new = _forked(
            tape, at, [*sets, *([f"model={model}"] if model is not None else [])], outcome
        )
        name, shown = short(new.id), screen()
        shown.line(f"Session {new.id} begins with events 1 to {at} of {tape.id}.", "good")
        shown.fields(
            [
                ("state", new[-1].state),
                (
                    "go on",
                    "" if new[-1].state == "Done" else command_line("resume", [name], store=store),
                ),
                ("its events", command_line("show", [name], ["--events"], store=store)),
                ("compare later", command_line("diff", [short(tape.id), name], store=store)),
            ]
        )


def _forked(tape: Tape, at: int, sets: list[str], outcome: Path | None) -> Tape:
    from codetape.tapes import fork

    try:
        given = _text(outcome) if outcome else None
        return fork(tape, at, outcome=given, **_changes(sets))
    except (ValueError, IndexError) as error:
        raise Failed(str(error), USAGE) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{file}: it is no text in UTF-8") from None


def _changes(sets: list[str]) -> dict[str, Any]:
    from codetape.changes import from_text

    changes: dict[str, Any] = {}
    for text in sets:
        name, mark, value = text.partition("=")
        if not (name and mark):
            raise ValueError(f"--set {text}: write FIELD=VALUE")
        if name in changes:
            raise ValueError(f"--set {name}: it is given twice")
        changes[name] = from_text(name, value)
    return changes
