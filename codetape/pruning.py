"""Which sessions of a store may go: by age, state and number, and never what somebody still needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from codetape.engine.ports import SessionRow
from codetape.engine.tape import moment_of

_AGE = re.compile(r"^(\d+(?:\.\d+)?)\s*(m|h|d|w)$")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Chosen:
    """`gone` are to be deleted, forks before their parents; `kept` are the others, with the reason."""

    gone: tuple[SessionRow, ...]
    kept: tuple[tuple[SessionRow, str], ...]


def age(text: str) -> timedelta:
    """Return an age: "30d" is thirty days; m, h, d and w are known. Raises ValueError."""
    match = _AGE.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no age; write 90m, 12h, 30d or 8w")
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:
        raise ValueError(f"{text!r} is longer than time can be told") from None


def choose(
    rows: Sequence[SessionRow],
    now: datetime,
    *,
    older_than: timedelta | None = None,
    keep: int | None = None,
    states: Iterable[str] = (),
) -> Chosen:
    """Choose the sessions that did not change for `older_than`, are in one of `states`, and are not
    among the `keep` that changed last; what is not given does not matter.

    One that is running stays, and one with a fork that stays.
    """
    newest = sorted(rows, key=lambda row: row.updated_at)[max(len(rows) - (keep or 0), 0) :]
    allowed = frozenset(states)
    meant = {
        row.id
        for row in rows
        if row not in newest
        and (not allowed or row.state in allowed)
        and (older_than is None or _is_older(row, older_than, now))
    }
    reasons: dict[str, str] = {row.id: "it is running" for row in rows if row.owner}
    _keep_parents(rows, meant, reasons)
    gone = [row for row in rows if row.id in meant and row.id not in reasons]
    kept = [(row, reasons[row.id]) for row in rows if row.id in meant and row.id in reasons]
    return Chosen(tuple(_forks_first(gone)), tuple(kept))


def _is_older(row: SessionRow, age: timedelta, now: datetime) -> bool:
    """Compare the time of the last change; one whose time is unknown is not old."""
    moment = moment_of(row.updated_at)
    return moment is not None and now - moment > age


def _keep_parents(rows: Sequence[SessionRow], meant: set[str], reasons: dict[str, str]) -> None:
    """Keep whatever a session that stays has events of."""
    parents = {row.id: row.parent for row in rows}
    for row in rows:
        if row.id in meant and row.id not in reasons:
            continue
        fork, parent = row.id, row.parent
        while parent in parents and parent not in reasons:  # else it has had its turn
            reasons[parent] = f"its fork {fork} stays"
            fork, parent = parent, parents[parent]


def _forks_first(rows: Iterable[SessionRow]) -> list[SessionRow]:
    left = {row.id: row for row in rows}
    ordered: list[SessionRow] = []
    while left:
        parents = {row.parent for row in left.values()}
        leaves = [row for row in left.values() if row.id not in parents]
        for row in leaves or list(left.values()):  # a damaged store may have a ring of them
            ordered += [left.pop(row.id)]
    return ordered
