"""`codetape verify`: are tapes what was written?"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from codetape.cli.exits import NOT_PASSED, PASSED
from codetape.cli.progress import progress
from codetape.cli.stores import reading, reading_tape, store_option

if TYPE_CHECKING:
    from codetape.replay.verify import Checked


@click.command()
@click.argument("session", required=False)
@store_option
def command(session: str | None, store: str | None) -> int:
    """Compute every hash of a session's tape again, or of all tapes of a store.

    Events are chained and large texts are kept by their hash, so that nothing can be changed, moved
    or left out unseen. Ends with 1 if anything is damaged, and names the first bad event of each
    tape. SESSION is a prefix of its id, or last, or a FILE.jsonl of `codetape export`.

    \b
    Examples:
      codetape verify
      codetape verify last
    """
    from codetape.cli.screen import screen
    from codetape.cli.text import counted

    checked = _one(session, store) if session else _all(store)
    damaged = [one for one in checked if one.fault]
    shown = screen()
    if not checked:
        shown.line("The store has no session yet.")
        return PASSED
    shown.table(("session", "events", "result"), [_row(one) for one in checked])
    if damaged:
        shown.line(f"{counted(len(damaged), 'tape is', 'tapes are')} damaged.", "bad")
        return NOT_PASSED
    return PASSED


def _one(session: str, store: str | None) -> list[Checked]:
    from codetape.replay.verify import verify

    with reading_tape(session, store) as (source, found):
        return [verify(source, found)]


def _all(store: str | None) -> list[Checked]:
    from codetape.composition import open_file, store_path
    from codetape.replay.verify import verify

    with reading(store) as opened:
        with closing(open_file(store_path(store))) as file:
            lost = file.lost()
        sessions = [*(row.id for row in opened.sessions()), *lost]
        return [verify(opened, session) for session in progress(sessions, "checked")]


def _row(one: Checked) -> tuple[str, str, str]:
    if one.fault is None:
        return one.session, str(one.events), "intact"
    return one.session, str(one.events), f"damaged at event {one.fault.seq}: {one.fault.reason}"
