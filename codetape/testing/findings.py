"""What a walk over a table found, in words that a person can act on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from codetape.states.machine import Row, State

Kind = Literal["state", "row", "behind", "refused", "dead end", "endless", "fault"]
"""What may be wrong.

state: it is never reached. row: it is never taken. behind: it is never taken because an earlier row
holds whenever it does. refused: the rules bring an event about that the table does not accept there.
dead end: a session waits for nothing and is not done. endless: a cycle that nothing ends. fault: the
rules raise an error.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where in the table, and what to look at."""

    kind: Kind
    where: str
    says: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.says}"


@dataclass(frozen=True, slots=True)
class Place:
    """A row in one of its source states; `number` is the row's place in the table, from 1."""

    number: int
    row: Row
    source: State

    def __str__(self) -> str:
        guards = f" [{', '.join(self.row.guard_names)}]" if self.row.guards else ""
        return f"{self.source} {self.row.event}{guards} -> {self.row.dest}"


@dataclass(frozen=True, slots=True)
class Order:
    """Two guarded rows that held at once and lead elsewhere: their order decides."""

    first: Place
    second: Place
    times: int


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was found of a workflow.

    `taken` counts, for each place of the table, how often it was taken. `sessions` are the abstract
    sessions that were told apart, `events` those that were tried. `longest` is the number of events on
    the longest way to Done. `left` are abstract sessions that were not looked at any more: 0 says that
    the walk is complete.
    """

    workflow: str
    findings: tuple[Finding, ...]
    orders: tuple[Order, ...]
    taken: dict[Place, int] = field(repr=False)
    counters: tuple[str, ...]
    sessions: int
    events: int
    longest: int
    left: int

    @property
    def fine(self) -> bool:
        """True if nothing is wrong."""
        return not self.findings


def places(table: tuple[Row, ...]) -> tuple[Place, ...]:
    """Return each row in each of its states, in the order of the table."""
    return tuple(Place(n, row, state) for n, row in enumerate(table, 1) for state in row.sources)
