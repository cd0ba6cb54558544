"""`codetape feedback`: what a person says of a session."""

from __future__ import annotations

import click

from codetape.cli.exits import PASSED
from codetape.cli.stores import command_line, find_session, reading, session_argument, store_option


@click.command()
@session_argument
@click.argument("note", required=False, default="")
@click.option("--good", is_flag=True, help="What became of it is good.")
@click.option("--bad", is_flag=True, help="It is not.")
@store_option
def command(session: str, note: str, good: bool, bad: bool, store: str | None) -> int:
    """Say whether what a session made is any good, and why.

    The NOTE is told to later sessions with similar requests: as something to do after --good, as
    something to avoid after --bad. What a session with a bad verdict taught by itself is told last.
    A later verdict on the same session takes the place of the first one.

    \b
    Examples:
      codetape feedback last --good
      codetape feedback 3f9ab2 --bad "It reads the whole file into memory."

    `codetape lessons` shows what was learned. The session itself is not changed.
    """
    from codetape.cli.screen import screen
    from codetape.learning import give_feedback

    if good == bad:
        raise click.UsageError("say --good or --bad")
    with reading(store) as opened:
        give_feedback(opened, find_session(opened, session), good, note)
    shown = screen()
    shown.line("It is kept." if note else "It is kept; a NOTE would say what to do, or to avoid.")
    shown.line(f"To see what was learned: {command_line('lessons', store=store)}", "dim")
    return PASSED
