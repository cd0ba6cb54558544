"""Redaction: a tape without prompts and data, so that it can be shown to others.

What stays is the structure, field by field as `harmless` declares it: events and states, times, counts,
tokens and costs, labels, names of models, packages and images, types of exceptions. Every other text
becomes "[text 7, 812 characters]"; equal texts have equal numbers, so that one can still see what came
back and what changed. A text stays only if it has the form of a name: what code or a model wrote in the
place of one is gone. Other numbers become 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import JsonValue, ValidationError

from codetape.engine import codec
from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import StoredEvent
from codetape.engine.tape import Source, read
from codetape.engine.visible import safe
from codetape.replay.harmless import Form, kept_of
from codetape.replay.imports import TapeFile
from codetape.replay.reading import stored_request
from codetape.states.events import Event
from codetape.states.requests import Request
from codetape.states.values import Value, canonical

LOST = (
    "prompts and answers cannot be compared any more, so it does not replay",
    "it cannot be imported, resumed or forked",
)
"""What a redacted tape is no longer good for."""


class NotRedactable(ValueError):
    """A value of a workflow of one's own whose data cannot be taken out: `kind` is its class."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(safe(f"{kind} cannot be redacted: {reason}"))
        self.kind = kind


def redacted(source: Source, session: str) -> TapeFile:
    """Return the tape of a session without prompts and data, chained anew, a fork's events included.

    Raises UnknownSession, DamagedTape, UnreadableEvent, NotRedactable.
    """
    return _Redaction(source, session).tape()


class _Redaction:
    """The texts that were met so far, and the rows that came of it."""

    def __init__(self, source: Source, session: str) -> None:
        self._source = source
        self._session = session
        self._texts: dict[str, int] = {}
        self._blobs: dict[str, bytes] = {}
        self._rows: list[StoredEvent] = []
        self._requests = {kind.name: kind for kind in _below(Request) if "name" in vars(kind)}

    def tape(self) -> TapeFile:
        workflow = ""
        rows = self._source.read(self._session)
        for record, row in zip(read(self._source, self._session), rows, strict=True):
            packed = codec.pack_event(self._event(record.event))
            self._blobs.update(packed.blobs)
            workflow = workflow or getattr(record.event, "workflow", "")
            key = record.request_key and self._request(record.request_key)
            version = record.event.version
            self._append(replace(row, version=version, data=packed.text, request_key=key))
        return TapeFile(self._session, workflow, tuple(self._rows), self._blobs, redacted=True)

    def _append(self, row: StoredEvent) -> None:
        row = replace(row, session=self._session)
        previous = self._rows[-1].hash if self._rows else GENESIS
        self._rows.append(replace(row, hash=chained(previous, row)))

    def _event(self, event: Event) -> Event:
        bare: Event = self._value(event)
        return bare

    def _request(self, key: str) -> str:
        """Keep what was asked without its texts, and return the key that it has then."""
        body = stored_request(self._source.get_blob, key) or {}
        packed = codec.pack_json(self._asked(body))
        name = codec.key_of(packed)
        self._blobs |= {**packed.blobs, name: packed.text.encode()}
        return name

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a request as its class declares it; of any other one its shape."""
        facts = {name: value for name, value in body.items() if name != "request"}
        kind = self._requests.get(body.get("request", ""))
        if kind is None:
            return {"request": "unknown", **self._shape(facts)}
        try:
            bare = self._value(kind.model_validate(facts)).model_dump(mode="json")
        except ValidationError:  # of an older version
            bare = self._shape(facts)
        return {"request": kind.name, **bare}

    def _value(self, value: Value) -> Any:
        """Return a value of the same class; what no one has declared harmless is gone."""
        kept = kept_of(value)
        fields = {
            name: getattr(value, name)
            if _is_closed(info.annotation)
            else self._part(getattr(value, name), kept.get(name), _is_json(info.annotation))
            for name, info in type(value).model_fields.items()
        }
        try:
            return type(value).model_validate(fields)
        except ValidationError as error:
            raise NotRedactable(type(value).__name__, codec.misfits(error)) from error

    def _part(self, value: Any, form: Form | None, json: bool) -> Any:
        """Take out what is in a field: its texts of another form, and its numbers without any."""
        if isinstance(value, Value):
            return self._value(value)
        if type(value) is dict:
            return {
                self._part(key, form, json): self._part(item, form, json)
                for key, item in value.items()
            }
        if type(value) in {list, tuple, set, frozenset}:
            return type(value)(self._part(item, form, json) for item in value)
        if value is None or isinstance(value, Enum):
            return value
        if json:
            return self._mark(value if type(value) is str else canonical(value))
        return self._scalar(value, form)

    def _scalar(self, value: Any, form: Form | None) -> Any:
        if type(value) is str:
            return value if not value or (form and form.fullmatch(value)) else self._mark(value)
        if type(value) in {int, float, bool}:
            return value if form else type(value)(0)
        raise NotRedactable(type(value).__name__, "it is neither text nor number nor one of ours")

    def _shape(self, value: Any) -> Any:
        """Take everything out of JSON but the names of our fields."""
        if isinstance(value, dict):
            ours = _field_names()
            return {
                key if key in ours else self._mark(key): self._shape(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return list(map(self._shape, value))
        if value is None or value == "":
            return value
        return self._mark(value if type(value) is str else canonical(value))

    def _mark(self, text: str) -> str:
        number = self._texts.setdefault(text, len(self._texts) + 1)
        return f"[text {number}, {len(text)} characters]"


def _is_closed(annotation: Any) -> bool:
    """True for a type that has only words of the program: they are no data."""
    if get_origin(annotation) in {Union, UnionType}:
        return all(_is_closed(part) for part in get_args(annotation))
    return get_origin(annotation) is Literal or annotation is NoneType


def _is_json(annotation: Any) -> bool:
    """True for a field that takes any JSON: a mark can stand for its numbers too."""
    return annotation in {JsonValue, Any} or any(_is_json(part) for part in get_args(annotation))


@cache
def _field_names() -> frozenset[str]:
    return frozenset(name for kind in _below(Value) for name in kind.model_fields)


def _below(home: type[Any]) -> Iterator[type[Any]]:
    for sub in home.__subclasses__():
        yield sub
        yield from _below(sub)
