"""`codetape export`: one tape as one file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from codetape.cli.exits import USAGE, Failed
from codetape.cli.stores import (
    find_session,
    reading,
    session_argument,
    short,
    store_option,
)

if TYPE_CHECKING:
    from codetape.engine.ports import EventStore


@click.command()
@session_argument
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--redact", is_flag=True, help="Leave out prompts and data; the structure stays.")
@click.option(
    "--as-test",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write it to DIR, under a name that tests find.",
)
@store_option
def command(
    session: str, file: Path | None, as_test: Path | None, store: str | None, *, redact: bool
) -> None:
    """Write the tape of a session to FILE, as JSON lines with all that it refers to.

    Equal tapes give equal files, to the byte; a fork's file needs no other. A redacted one can be
    looked at (show, diff, verify) and not replayed. SESSION is a prefix of its id, or last.

    \b
    Examples:
      codetape export last demo.tape.jsonl
      codetape export last to-show.tape.jsonl --redact
      codetape export last --as-test tests/tapes
    """
    from codetape.cli.screen import screen

    if (file is None) == (as_test is None) or (as_test and redact):
        raise click.UsageError(
            "give FILE or --as-test DIR; --redact goes with FILE", click.get_current_context()
        )
    with reading(store) as opened:
        found = find_session(opened, session)
        target = file or _test_file(opened, found, as_test or Path())
        try:
            if as_test:
                as_test.mkdir(parents=True, exist_ok=True)
            _write(opened, found, target, redact=redact)
        except OSError as error:
            raise Failed(f"cannot write {target}: {error.strerror}", USAGE) from error
    shown = screen()
    shown.line(f"Session {found} is in {target}, {target.stat().st_size:,} bytes.")
    if redact:
        from codetape.replay.redact import LOST

        shown.line(f"It is redacted: {'; '.join(LOST)}.", "dim")


def _write(store: EventStore, session: str, target: Path, *, redact: bool) -> None:
    from codetape.replay.export import export_tape
    from codetape.replay.redact import redacted

    source = redacted(store, session) if redact else store
    export_tape(source, session, target, redacted=redact)


def _test_file(store: EventStore, session: str, folder: Path) -> Path:
    """Name a file by what the session is called and by its id."""
    name = next(row.name for row in store.sessions() if row.id == session)
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "session"
    return folder / f"{words}-{short(session)}.tape.jsonl"
