"""`codetape sessions`: what is in a store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from codetape.cli.stores import reading, store_option

if TYPE_CHECKING:
    from codetape.engine.ports import EventStore, SessionRow


@click.command()
@store_option
def command(store: str | None) -> None:
    """List the sessions of a store, the newest last.

    Example: codetape sessions --store work.db
    """
    from codetape.cli.screen import screen

    with reading(store) as opened:
        rows = [_row(opened, row) for row in opened.sessions()]
    if not rows:
        screen().line("The store has no session yet.")
        return
    screen().table(("session", "name", "state", "events", "last event", "changed"), rows)


def _row(store: EventStore, row: SessionRow) -> tuple[str, ...]:
    """One row; of the tape only the last event is read."""
    state = f"{row.state}, running" if row.owner else row.state
    return (row.id, row.name, state, str(row.seq), _last(store, row), ago(row.updated_at))


def _last(store: EventStore, row: SessionRow) -> str:
    from codetape.engine.ports import DamagedTape

    try:
        return next((event.name for event in store.read(row.id, row.seq - 1)), "")
    except DamagedTape:
        return "damaged"  # the other sessions can be listed all the same


def ago(moment: str) -> str:
    """Return how long ago a moment of a tape was."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}s ago"
    return f"{max(seconds, 0):.0f} s ago"
