"""What models and sandboxes answered once, found again by what was asked: never by the order alone.

A tape is read into recordings, and the recorded adapters answer from them. What was not recorded is an
error that names what comes nearest. What was recorded several times is given as often, in its order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codetape.engine.ports import DamagedTape
from codetape.engine.tape import Source, read, request_of
from codetape.states.values import ImageSpec, LlmCall, Outcome, RunSpec, Value

NEAREST = 3
"""So many recordings are named where the one that was asked for is not there."""


class NotRecorded(Exception):
    """Nothing was recorded for what is asked, or nothing more: `nearest` are events of the tape."""

    def __init__(self, message: str, nearest: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.nearest = nearest


@dataclass(frozen=True, slots=True)
class Recording:
    """What was asked and what came of it, at event `seq` of a tape."""

    seq: int
    asked: Value
    outcome: Outcome

    @property
    def kind(self) -> str:
        """What kind of thing was asked: recordings of other kinds are never near."""
        return kind_of(self.asked)


def kind_of(asked: Value) -> str:
    """Return the kind of a call or a specification, as people call it."""
    match asked:
        case LlmCall():
            return f"{asked.kind} call"
        case RunSpec():
            return f"run of {asked.purpose}"
        case ImageSpec():
            return "build"
    return type(asked).__name__


def recordings(source: Source, session: str) -> Iterator[Recording]:
    """Yield what is recorded on a tape. Raises UnknownSession, DamagedTape, UnreadableEvent.

    Outcomes that a person gave are recordings like all others.
    """
    for record in read(source, session):
        if record.request_key is not None and record.event.outcome is not None:
            asked = request_of(source, record)
            try:
                yield Recording(record.seq, _given(asked), record.event.outcome)
            except (KeyError, TypeError, ValueError) as error:
                reason = "what was asked is none of what an adapter answers"
                raise DamagedTape(record.session, record.seq, reason) from error


def _given(body: Mapping[str, Any]) -> Value:
    """Return what an adapter was given for a request as it was stored."""
    if "call" in body:
        return LlmCall.model_validate(body["call"])
    kind = RunSpec if "image" in body["spec"] else ImageSpec
    return kind.model_validate(body["spec"])


class Recordings:
    """Recordings by what was asked. `out_of_order` are those that were taken before an earlier one."""

    def __init__(self, recorded: Iterable[Recording]) -> None:
        self._recorded = tuple(recorded)
        self._left: dict[str, list[Recording]] = defaultdict(list)
        for recording in self._recorded:
            self._left[recording.asked.key].append(recording)
        self._last: dict[str, int] = {}
        self.out_of_order: list[Recording] = []

    def take(self, asked: Value) -> Outcome:
        """Return what was recorded for `asked`; each recording is used once. Raises NotRecorded."""
        left = self._left.get(asked.key)
        if not left:
            raise self._missing(asked)
        recording = left.pop(0)
        if recording.seq < self._last.get(recording.kind, 0):
            self.out_of_order.append(recording)
        self._last[recording.kind] = max(recording.seq, self._last.get(recording.kind, 0))
        return recording.outcome

    def left_over(self) -> tuple[int, ...]:
        """Return the events whose outcome nobody has asked for."""
        return tuple(sorted(r.seq for left in self._left.values() for r in left))

    def _missing(self, asked: Value) -> NotRecorded:
        kind = kind_of(asked)
        used = [r.seq for r in self._recorded if r.asked.key == asked.key]
        if used:
            where = ", ".join(map(str, used))
            return NotRecorded(f"this {kind} was recorded at event {where}, and used", tuple(used))
        alike = [(differing(asked, r.asked), r.seq) for r in self._recorded if r.kind == kind]
        if not alike:
            return NotRecorded(f"no {kind} was recorded")
        near = sorted(alike)[:NEAREST]
        names = "; ".join(f"event {seq} differs in {_lines(count)}" for count, seq in near)
        return NotRecorded(f"this {kind} was not recorded: {names}", tuple(seq for _, seq in near))


def differing(one: Value, other: Value) -> int:
    """Count the lines that one has and the other has not, whatever their order."""
    a, b = Counter(_texts(one)), Counter(_texts(other))
    return max((a - b).total(), (b - a).total())


def _texts(value: Value) -> Iterator[str]:
    waiting: list[Any] = [value.model_dump(mode="json")]
    while waiting:
        match waiting.pop():
            case dict() as items:
                waiting += [f"{k}: {v}" if not _nested(v) else v for k, v in items.items()]
            case list() as items:
                waiting += items
            case item:
                yield from str(item).split("\n")


def _nested(value: object) -> bool:
    return isinstance(value, dict | list)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
