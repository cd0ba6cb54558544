"""`codetape export`: one tape as one file."""

from __future__ import annotations

from pathlib import Path

import click

from codetape.cli.exits import USAGE, Failed
from codetape.cli.stores import find_session, reading, session_argument, store_option


@click.command()
@session_argument
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@store_option
def command(session: str, file: Path, store: str | None) -> None:
    """Write the tape of a session to FILE, as JSON lines with all that it refers to.

    Equal tapes give equal files, to the byte. SESSION is a prefix of its id, or last.

    Example: codetape export last demo.jsonl
    """
    from codetape.cli.screen import screen
    from codetape.replay.export import export_tape

    with reading(store) as opened:
        found = find_session(opened, session)
        try:
            export_tape(opened, found, file)
        except OSError as error:
            raise Failed(f"cannot write {file}: {error.strerror}", USAGE) from error
    screen().line(f"Session {found} is in {file}, {file.stat().st_size:,} bytes.")
