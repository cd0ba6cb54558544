"""Values of any class with a canary in each field, so that one sees which of them get out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from itertools import count
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import JsonValue

from codetape.engine import codec
from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import StoredEvent
from codetape.replay.imports import TapeFile
from codetape.states.events import Event, SessionOpened
from codetape.states.requests import Request
from codetape.states.values import Value

V = TypeVar("V", bound=Value)
NOW = "2026-01-02T03:04:05.000000+00:00"


class Canaries:
    """Makes values; `texts` and `numbers` are those that it has put into them."""

    def __init__(self, text: str = "canary {} of /home/me", first: int = 7_310_000) -> None:
        self._text = text
        self._next = count(first)
        self.texts: list[str] = []
        self.numbers: list[str] = []

    def text(self) -> str:
        self.texts.append(self._text.format(next(self._next)))
        return self.texts[-1]

    def number(self) -> int:
        number = next(self._next)
        self.numbers.append(str(number))
        return number

    def value(self, kind: type[V], **given: Any) -> V:
        """Return a value of a class with a canary in each field that is not `given`."""
        made = {
            name: self._made(info.annotation)
            for name, info in kind.model_fields.items()
            if name not in given
        }
        return kind.model_validate(made | given)

    def _made(self, kind: Any) -> Any:
        if kind is str:
            return self.text()
        if kind in {int, float}:
            return kind(self.number())
        if kind is bool:
            return True
        if kind is JsonValue:
            return {self.text(): [self.text(), self.number(), float(self.number()), True, None]}
        if isinstance(kind, type) and issubclass(kind, Value):
            return self.value(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return next(iter(kind))
        return self._made_of(get_origin(kind), get_args(kind))

    def _made_of(self, origin: Any, parts: Sequence[Any]) -> Any:
        if origin is Annotated:
            return self._made(parts[0])
        if origin is Literal:
            return parts[0]
        if origin in {Union, UnionType}:
            return self._made(next(part for part in parts if part is not NoneType))
        if origin is dict:
            return {self._made(parts[0]): self._made(parts[1])}
        return [self._made(parts[0])] * 2


def tape_of(events: Sequence[Event], requests: Sequence[Request] = ()) -> TapeFile:
    """Return a tape of these events, whatever a table says; requests go to events after the first."""
    rows: list[StoredEvent] = []
    blobs: dict[str, bytes] = {}
    state = "NeedsCode"
    for seq, event in enumerate(events, 1):
        packed = codec.pack_event(event)
        blobs |= packed.blobs
        key = None
        if 0 <= seq - 2 < len(requests):
            asked = codec.pack_request(requests[seq - 2])
            key = asked.key
            blobs |= {**asked.body.blobs, key: asked.body.text.encode()}
        row = StoredEvent(
            session="canaries0001",
            seq=seq,
            name=event.name,
            version=event.version,
            source=state,
            dest=state,
            request_key=key,
            data=packed.text,
            at=NOW,
            hash="",
        )
        rows.append(_chained(rows, row))
    first = events[0]
    assert isinstance(first, SessionOpened)
    return TapeFile("canaries0001", first.workflow, tuple(rows), blobs)


def _chained(rows: Sequence[StoredEvent], row: StoredEvent) -> StoredEvent:
    return replace(row, hash=chained(rows[-1].hash if rows else GENESIS, row))
