"""`codetape sessions`: what is in a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from codetape.cli.out import in_json, put
from codetape.cli.stores import reading, short, store_option
from codetape.cli.text import one_line

if TYPE_CHECKING:
    from codetape.engine.ports import EventStore, SessionRow
    from codetape.states.session import Totals

NEWEST = 50
"""So many sessions are listed."""

LONGEST_NAME = 40
"""Characters of a name that stand in a table; `show` has all of it."""

HEADERS = (
    *("session", "name", "state", "events", "calls", "tokens", "cost"),
    *("last event", "changed"),
)

SPARE = ("last event", "calls", "events", "tokens", "cost")
"""What a narrow terminal leaves out, one after the other; a pipe and --json have all."""


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=NEWEST,
    show_default=True,
    metavar="N",
    help="List the N that changed last; 0 lists all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print them as one JSON array.")
@store_option
def command(limit: int, store: str | None, *, as_json: bool) -> None:
    """List the sessions of a store, the newest last, and below each one its forks.

    Calls, tokens and cost are what a session has paid itself; what a fork has inherited is counted
    where it was paid. A fork's events are counted with those that it shares. A narrow terminal shows
    fewer columns; a pipe and --json have all.

    Example: codetape sessions --store work.db
    """
    from codetape.cli.screen import screen

    shown = screen()
    with reading(store) as opened:
        every = opened.sessions()
        newest = sorted(every, key=lambda row: row.updated_at)[-limit:] if limit else every
        listed = as_tree(every, newest)
        if as_json:
            facts = [_facts(opened, row) for row, _ in listed]
            put(in_json(facts))
            return
        rows = [_row(opened, row, depth) for row, depth in listed]
    if not rows:
        shown.line("The store has no session yet.")
        return
    shown.table(HEADERS, rows, SPARE)
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


def _facts(store: EventStore, row: SessionRow) -> dict[str, Any]:
    """A session as JSON has it; null is unknown or not there. What is damaged has no totals."""
    paid = _totals(store, row)
    return {
        "session": row.id,
        "name": row.name,
        "workflow": row.workflow,
        "state": row.state,
        "running": row.owner,
        "events": row.seq,
        "last_event": _last(store, row),
        "parent": row.parent,
        "parent_seq": row.parent_seq,
        "model_calls": paid.calls if paid else None,
        "input_tokens": paid.input_tokens if paid else None,
        "output_tokens": paid.output_tokens if paid else None,
        "cost_usd": paid.cost if paid else None,
        "started_at": row.started_at,
        "updated_at": row.updated_at,
    }


def _totals(store: EventStore, row: SessionRow) -> Totals | None:
    """What a session has paid itself; None if it is damaged: the others are listed all the same."""
    from codetape.engine.ports import DamagedTape
    from codetape.replay.totals import own_totals

    try:
        return own_totals(store, row)
    except DamagedTape:
        return None


def _paid(store: EventStore, row: SessionRow) -> tuple[str, str, str]:
    from codetape.cli.text import money

    if (paid := _totals(store, row)) is None:
        return "", "", ""
    return str(paid.calls), f"{paid.input_tokens + paid.output_tokens:,}", money(paid.cost)


def _last(store: EventStore, row: SessionRow) -> str:
    from codetape.engine.ports import DamagedTape

    try:
        return next((event.name for event in store.read(row.id, row.seq - 1)), "")
    except DamagedTape:
        return "damaged"


def ago(moment: str) -> str:
    """Return how long ago a moment of a tape was; unknown if that cannot be told."""
    seconds = between(moment, datetime.now(UTC).isoformat())
    if seconds is None:
        return "unknown"
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}s ago"
    return f"{max(seconds, 0):.0f} s ago"


def between(start: str, end: str) -> float | None:
    """Return the seconds from one moment of a tape to another one; None if one is no moment."""
    from codetape.engine.tape import moment_of

    first, last = moment_of(start), moment_of(end)
    return (last - first).total_seconds() if first and last else None
