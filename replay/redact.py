"""Redaction: a tape without prompts and data, so that it can be shown to others.

What stays is the structure: events and states, times, counts, tokens and costs, labels, names of
models, packages and images, types of exceptions. Every other text becomes "[text 7, 812 characters]";
equal texts have equal numbers, so that one can still see what came back and what changed. A text stays
only where a field is listed here, and only if it has the form of a name there: what nobody has thought
of is gone, and so is what code or a model wrote in the place of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, get_origin

from codetape.engine import codec
from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import StoredEvent
from codetape.engine.tape import Source, read
from codetape.replay.imports import TapeFile
from codetape.replay.reading import stored_request
from codetape.states.constraints import Check
from codetape.states.values import Value, canonical

LOST = (
    "prompts and answers cannot be compared any more, so it does not replay",
    "it cannot be imported, resumed or forked",
)
"""What a redacted tape is no longer good for."""

KEPT: Mapping[str, frozenset[str]] = {
    "SessionOpened": frozenset({"workflow"}),
    "Forked": frozenset({"parent", "changed"}),
    "CodeWritten": frozenset({"packages", "system_packages"}),
    "TestsWritten": frozenset({"packages"}),
    "TestsPatched": frozenset({"packages"}),
    "PackageReplaced": frozenset({"rejected", "replacement"}),
    "Needs": frozenset({"packages", "system_packages"}),
    "AnswerRejected": frozenset({"kind"}),
    "CallFailed": frozenset({"kind"}),
    "Resumed": frozenset({"allow", "deny"}),
    "Job": frozenset(
        {"model", "models", "fallback_models", "sandbox", "python", "base_image"}
        | {"base_packages", "system_packages", "package_policy"}
    ),
    "LlmCall": frozenset({"kind", "model"}),
    "Answer": frozenset({"finish_reason", "model"}),
    "ImageSpec": frozenset({"base", "python", "requirements", "system_packages"}),
    "ImageRef": frozenset({"ref", "spec_key", "python", "sandbox"}),
    "BuildFailure": frozenset({"packages"}),
    "Failure": frozenset({"phase"}),
    "Problem": frozenset({"type", "module"}),
    "TestReport": frozenset({"python"}),
    "Column": frozenset({"type"}),
}
"""Fields whose texts stay, by the class that has them."""

_NAME = re.compile(r"[\w.+:/@<>=!~,\[\]-]{1,200}", re.ASCII)
"""The form of names of models, packages with their versions, images and types."""

_CALL_FIELDS = ("model", "kind", "seconds")


def redacted(source: Source, session: str) -> TapeFile:
    """Return the tape of a session without prompts and data, chained anew, a fork's events included.

    Raises UnknownSession, DamagedTape, UnreadableEvent.
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
        self._fields = frozenset(_fields(Value)) | {"request"}

    def tape(self) -> TapeFile:
        workflow = ""
        rows = self._source.read(self._session)
        for record, row in zip(read(self._source, self._session), rows, strict=True):
            packed = codec.pack_event(self._value(record.event))
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

    def _request(self, key: str) -> str:
        """Keep what was asked without its texts, and return the key that it has then."""
        body = stored_request(self._source.get_blob, key) or {"request": "unknown"}
        bare = {**self._json(body), "request": body["request"]}
        if "call" in body:
            bare["call"] |= {n: self._named(body["call"].get(n)) for n in _CALL_FIELDS}
            for message, stored in zip(
                bare["call"]["messages"], body["call"]["messages"], strict=True
            ):
                message["role"] = stored["role"]
        packed = codec.pack_json(bare)
        name = codec.key_of(packed)
        self._blobs |= {**packed.blobs, name: packed.text.encode()}
        return name

    def _value(self, value: Any) -> Any:
        kept = KEPT.get(type(value).__name__, frozenset())
        fields = {
            name: (self._named if name in kept else self._any)(getattr(value, name))
            for name, info in type(value).model_fields.items()
            if get_origin(info.annotation) is not Literal
        }
        return value.model_copy(update=fields)

    def _any(self, value: Any) -> Any:
        if isinstance(value, Check):
            arguments = tuple(self._mark(canonical(one)) for one in value.arguments)
            return self._value(value.model_copy(update={"arguments": ()})).model_copy(
                update={"arguments": arguments}  # numbers too: they are what was asked for
            )
        if isinstance(value, Value):
            return self._value(value)
        if isinstance(value, tuple):
            return tuple(map(self._any, value))
        return self._json(value)

    def _named(self, value: Any) -> Any:
        """Keep the texts that have the form of a name."""
        if isinstance(value, tuple):
            return tuple(map(self._named, value))
        if isinstance(value, dict):
            return {self._named(key): self._named(item) for key, item in value.items()}
        if type(value) is str and _NAME.fullmatch(value):
            return value
        return self._any(value)

    def _json(self, value: Any) -> Any:
        """Take the texts out of what JSON can hold; names of our fields stay, values of enums too."""
        if type(value) is str:
            return self._mark(value) if value else ""
        if isinstance(value, dict):
            return {self._key(key): self._json(item) for key, item in value.items()}
        if isinstance(value, list):
            return list(map(self._json, value))
        return value

    def _key(self, key: str) -> str:
        """Keep the name of a field of ours; other keys are data, such as names of variables."""
        return key if key in self._fields else self._mark(key)

    def _mark(self, text: str) -> str:
        number = self._texts.setdefault(text, len(self._texts) + 1)
        return f"[text {number}, {len(text)} characters]"


def _fields(home: type[Value]) -> Iterator[str]:
    """Yield the names of all fields of a class and of those that are made of it."""
    yield from home.model_fields
    for sub in home.__subclasses__():
        yield from _fields(sub)
