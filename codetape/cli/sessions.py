"""`codetape sessions`: what is in a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from codetape.cli.stores import reading, short, store_option
from codetape.cli.text import one_line

if TYPE_CHECKING:
    from codetape.engine.ports import EventStore, SessionRow

NEWEST = 50
"""So many sessions are listed."""

LONGEST_NAME = 40
"""Characters of a name that stand in a table; `show` has all of it."""

HEADERS = (
    *("session", "name", "state", "events", "calls", "tokens", "cost"),
    *("last event", "changed"),
)


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=NEWEST,
    show_default=True,
    metavar="N",
    help="List the N that changed last; 0 lists all.",
)
@store_option
def command(limit: int, store: str | None) -> None:
    """List the sessions of a store, the newest last, and below each one its forks.

    Calls, tokens and cost are what a session has paid itself; what a fork has inherited is counted
    where it was paid. A fork's events are counted with those that it shares.

    Example: codetape sessions --store work.db
    """
    from codetape.cli.screen import screen

    shown = screen()
    with reading(store) as opened:
        every = opened.sessions()
        newest = sorted(every, key=lambda row: row.updated_at)[-limit:] if limit else every
        rows = [_row(opened, row, depth) for row, depth in as_tree(every, newest)]
    if not rows:
        shown.line("The store has no session yet.")
        return
    shown.table(HEADERS, rows)
    if len(newest) < len(every):
        left = len(every) - len(newest)
        shown.line(f"{left:,} older ones are not listed: --limit 0 lists all.", "dim")


def as_tree(
    every: Iterable[SessionRow], some: Iterable[SessionRow]
) -> Iterator[tuple[SessionRow, int]]:
    """Yield `some` in the order of `every`, forks below their parents, each with its depth."""
    wanted = {row.id for row in some}
    listed = [row for row in every if row.id in wanted]
    forks: dict[str | None, list[SessionRow]] = {}
    for row in listed:
        forks.setdefault(row.parent if row.parent in wanted else None, []).append(row)

    waiting = [(row, 0) for row in reversed(forks.get(None, []))]
    while waiting:
        row, depth = waiting.pop()
        yield row, depth
        waiting += [(fork, depth + 1) for fork in reversed(forks.get(row.id, []))]


def _row(store: EventStore, row: SessionRow, depth: int) -> tuple[str, ...]:
    """One row; of the tape only the session's own events are read."""
    branch = f"{'   ' * (depth - 1)}└─ " if depth else ""
    name = one_line(row.name, LONGEST_NAME)
    if row.parent:
        name += f", fork of {short(row.parent)} at {row.parent_seq}"
    state = f"{row.state}, running" if row.owner else row.state
    head = (f"{branch}{row.id}", name, state, str(row.seq))
    return (*head, *_paid(store, row), _last(store, row), ago(row.updated_at))


def _paid(store: EventStore, row: SessionRow) -> tuple[str, str, str]:
    from codetape.cli.text import money
    from codetape.engine.ports import DamagedTape
    from codetape.replay.totals import own_totals

    try:
        paid = own_totals(store, row)
    except DamagedTape:
        return "", "", ""  # the other sessions can be listed all the same
    return str(paid.calls), f"{paid.input_tokens + paid.output_tokens:,}", money(paid.cost)


def _last(store: EventStore, row: SessionRow) -> str:
    from codetape.engine.ports import DamagedTape

    try:
        return next((event.name for event in store.read(row.id, row.seq - 1)), "")
    except DamagedTape:
        return "damaged"


def ago(moment: str) -> str:
    """Return how long ago a moment of a tape was."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}s ago"
    return f"{max(seconds, 0):.0f} s ago"
