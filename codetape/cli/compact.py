"""`codetape compact`: give free space back to the disk."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from codetape.cli.exits import USAGE, Failed
from codetape.cli.stores import store_option


@click.command()
@store_option
def command(store: str | None) -> None:
    """Make the file of a store as small as what is in it, after `codetape prune`.

    The file is written anew: as much space as it takes has to be free beside it. Sessions that run
    wait meanwhile. If the disk is full, nothing has changed.

    Example: codetape compact --store work.db
    """
    from codetape.cli.screen import screen
    from codetape.composition import open_file, store_path

    path = store_path(store)
    if not Path(path).exists():
        raise Failed(f"there is no store {path} yet", USAGE)
    with closing(open_file(path)) as file:
        before, after = file.compact()
    screen().line(f"{path}: {before:,} bytes before, {after:,} bytes after.", "good")
