"""`codetape import`: the tape of a file into a store."""

from __future__ import annotations

from pathlib import Path

import click

from codetape.cli.stores import command_line, read_file, short, store_option, writing


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@store_option
def command(file: Path, store: str | None) -> None:
    """Put the tape of FILE, which `codetape export` wrote, into a store, under its own id.

    The whole file is checked first: one that was cut off or changed is refused at the first bad
    event, by its number, with exit status 1. A session that is there and equal stays as it is; a fork
    brings the beginning of the sessions that it came from.

    Example: codetape import demo.tape.jsonl --store elsewhere.db
    """
    from codetape.cli.screen import screen
    from codetape.cli.text import counted
    from codetape.composition import owner
    from codetape.replay.imports import put_tape

    tape = read_file(file)  # before the store is opened, and made if there is none
    with writing(store) as opened:
        put_tape(tape, opened, owner())
    screen().line(f"Session {tape.session} is in the store: {counted(len(tape), 'event')}.", "good")
    screen().fields([("look at it", command_line("show", [short(tape.session)], store=store))])
