"""What a replay finds: a report, and the differences in it, in words that a person reads first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from codetape.engine import codec
from codetape.engine.codec import UnreadableEvent
from codetape.engine.ports import DamagedTape
from codetape.engine.tape import Recorded
from codetape.replay.diffs import counted, difference_of, in_words, readable_request
from codetape.replay.rules import UnknownRules
from codetape.states.events import Event
from codetape.states.machine import State
from codetape.states.session import Ending
from codetape.states.values import canonical

Kind = Literal["destination", "request", "interpretation", "refused", "unreadable"]
"""What differs.

destination: the event leads to another state. request: something else is asked for, or follows by
itself, at that point. interpretation: the same outcome is another event. refused: the table does not
accept the event there. unreadable: the tape is damaged there, or a newer version wrote it.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that today's rules do otherwise, at event `seq`, named `event` (empty: unknown).

    `expected` is what the tape holds, `found` what today's rules say; `reason` is the difference in
    words, and `diff` the changed lines (`-` the tape, `+` today), empty where words say it all.
    """

    seq: int
    event: str
    kind: Kind
    expected: str
    found: str
    reason: str
    diff: str = ""

    def __str__(self) -> str:
        return f"event {self.seq}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay found. `events` were folded, under rule set `rules` (None: it is not here).

    `ending` tells how the session itself ended; None if it did not, or not within those events. A
    session that failed may replay well, and one that ended well may differ.
    """

    session: str
    rules: int | None
    events: int
    differences: tuple[Difference, ...] = ()
    ending: Ending | None = None

    @property
    def identical(self) -> bool:
        """True if today's rules do what the tape says, to its end."""
        return not self.differences

    def __str__(self) -> str:
        found = "; ".join(map(str, self.differences)) or f"identical, {self.events} events"
        return f"session {self.session}: {found}"


# --- one function for each way to differ ----------------------------------------------------------


def request(record: Recorded, expected: str, found: str) -> Difference:
    """Something else is asked for, or follows by itself."""
    reason = f"the tape has {expected}; today's rules have {found}"
    return _difference(record, "request", expected, found, reason)


def content(record: Recorded, expected: tuple[str, Any], found: tuple[str, Any]) -> Difference:
    """The same is asked for in other words: (key, body) of both requests."""
    one, other = readable_request(expected[1]), readable_request(found[1])
    diff, lines = difference_of(one, other)
    reason = in_words(one, other, lines)
    return _difference(record, "request", expected[0], found[0], reason, diff)


def interpretation(record: Recorded, today: Event) -> Iterator[Difference]:
    """The same outcome, or the same session, brings another event; nothing if it is the same one."""
    recorded = record.event
    if today == recorded:
        return
    if type(today) is not type(recorded):
        reason = f"today's rules make {today.name} of it, the tape has {recorded.name}"
        yield _difference(record, "interpretation", recorded.name, today.name, reason)
    elif not codec.same(today, recorded):
        one, other = recorded.model_dump(mode="json"), today.model_dump(mode="json")
        diff, lines = difference_of(one, other)
        keys = [key for key in one if one[key] != other[key]]
        reason = f"{recorded.name} differs in {counted(lines)}: {', '.join(keys)}"
        expected, found = (canonical({key: x[key] for key in keys}) for x in (one, other))
        yield _difference(record, "interpretation", expected, found, reason, diff)


def no_outcome(record: Recorded) -> Difference:
    """An event that answers a request and brings nothing to interpret."""
    reason = f"{record.event.name} answers a request and holds no outcome"
    return _difference(record, "interpretation", "an outcome", "none", reason)


def destination(record: Recorded, source: State, dest: State) -> Difference:
    """The event comes from another state or leads to another one."""
    expected, found = f"{record.source} -> {record.dest}", f"{source} -> {dest}"
    reason = f"{record.event.name} leads {found} today; on the tape {expected}"
    return _difference(record, "destination", expected, found, reason)


def refused(record: Recorded, state: State, accepted: Sequence[str]) -> Difference:
    """The table has no row for the event in this state."""
    expected, found = f"{record.event.name} in {state}", ", ".join(accepted) or "nothing"
    reason = f"{expected} is refused today; accepted there: {found}"
    return _difference(record, "refused", expected, found, reason)


def fault(record: Recorded, kind: Kind, error: Exception) -> Difference:
    """The rules raised something: they cannot deal with what the tape holds."""
    found = f"{type(error).__name__}: {error}"
    reason = f"today's rules break at {record.event.name}: {found}"
    return _difference(record, kind, record.event.name, found, reason)


def unreadable(seq: int, error: DamagedTape | UnreadableEvent | UnknownRules) -> Difference:
    """The tape cannot be read any further."""
    name = error.name if isinstance(error, UnreadableEvent) else ""
    reason = error.reason if isinstance(error, DamagedTape) else str(error)
    return Difference(seq, name, "unreadable", "an event that can be read", reason, reason)


def redacted() -> Difference:
    """The tape is one without prompts and data."""
    reason = "it is redacted: prompts and answers are gone, there is nothing to compare"
    return Difference(1, "session_opened", "unreadable", "a whole tape", "a redacted one", reason)


def _difference(
    record: Recorded, kind: Kind, expected: str, found: str, reason: str, diff: str = ""
) -> Difference:
    return Difference(record.seq, record.event.name, kind, expected, found, reason, diff)
