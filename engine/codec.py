"""The one module that knows how events and requests become text, and text becomes events.

Texts over 1 KB leave the row: in their place stands {"$blob": SHA-256}, and the text is stored once.
A payload whose form changes gets a new version and an upcast, named upcast_<event>_v1_v2, in UPCASTS.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from codetape.engine.visible import safe
from codetape.states.events import KNOWN, Event
from codetape.states.requests import Request
from codetape.states.values import Value, canonical

FORMAT = 1
"""The version of this encoding; it is part of every export."""

LONG = 1024
"""Bytes of UTF-8 above which a text becomes a blob."""

BLOB = "$blob"

LARGEST_BLOB = 8 << 20
"""Bytes of one blob. A text is bounded long before; nothing of ours comes near."""

LARGEST_EVENT = 32 << 20
"""Characters of the texts of one event or request, each counted as often as it is referred to."""

DEEPEST = 200
"""Levels of nested lists and objects in one event or request."""

Upcast = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTS: dict[tuple[str, int], Upcast] = {}
"""(event, version) to the function that makes the next version of it."""


class UnreadableEvent(ValueError):
    """An event that this version does not know, or whose payload does not fit: `name`, `version`."""

    def __init__(self, name: str, version: int, reason: str) -> None:
        super().__init__(safe(f"event {name[:60]} v{version}: {reason}"))
        self.name = name
        self.version = version


@dataclass(frozen=True, slots=True)
class Packed:
    """Canonical JSON, and the blobs that it refers to."""

    text: str
    blobs: Mapping[str, bytes] = field(default_factory=dict)


def pack_event(event: Event) -> Packed:
    """Return the payload of an event. Raises ValueError for what JSON or UTF-8 cannot hold."""
    return _pack(event.model_dump(mode="json"))


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with its key and its body.

    The key is the SHA-256 of the body: it changes with anything that the request says, and the body
    can be kept as a blob under its own key.
    """

    request: Request
    key: str
    body: Packed


def pack_request(request: Request) -> Asked:
    """Return a request with its key. Raises ValueError for what JSON or UTF-8 cannot hold."""
    body = _pack({"request": request.name, **request.model_dump(mode="json")})
    return Asked(request, _sha(body.text), body)


def pack_json(value: dict[str, Any]) -> Packed:
    """Return JSON that is no event and no request of today, packed like one; `value` is used up."""
    return _pack(value)


def key_of(packed: Packed) -> str:
    """Return the key of a packed request."""
    return _sha(packed.text)


def unpack_event(name: str, version: int, text: str, get_blob: Callable[[str], bytes]) -> Event:
    """Return the event that was packed. Raises UnreadableEvent; KeyError for a blob that is gone."""
    kind = KNOWN.get(name)
    if kind is None or not 1 <= version <= kind.version:
        reason = "a newer version of codetape wrote it, or a workflow that is not imported"
        raise UnreadableEvent(name, version, reason)
    try:
        if version == kind.version and BLOB not in text:
            return kind.model_validate_json(text)
        return kind.model_validate(_upcast(kind, version, unpack_json(text, get_blob)))
    except ValidationError as error:
        raise UnreadableEvent(name, version, misfits(error)) from error
    except TypeError as error:
        raise UnreadableEvent(name, version, str(error)) from error


def misfits(error: ValidationError) -> str:
    """Return what does not fit, in one line, the first three of them."""
    told = [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors()]
    more = f"; {len(told) - 3} more" if len(told) > 3 else ""
    return "; ".join(f"{where}: {what}" if where else what for where, what in told[:3]) + more


def _upcast(kind: type[Event], version: int, data: dict[str, Any]) -> dict[str, Any]:
    for step in range(version, kind.version):
        data = UPCASTS[(kind.name, step)](data)
    return data


def unpack_json(text: str, get_blob: Callable[[str], bytes]) -> Any:
    """Return packed JSON with its blobs put back.

    Raises ValueError for what is too large or nested too deep, KeyError for a blob that is gone.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _Restoring(get_blob).restored(value)


def _pack(dumped: dict[str, Any]) -> Packed:
    blobs: dict[str, bytes] = {}
    _reduce(dumped, blobs, 1)
    return Packed(canonical(dumped), blobs)


_TOO_DEEP = f"it is nested deeper than {DEEPEST} levels"


def _reduce(value: dict[Any, Any] | list[Any], blobs: dict[str, bytes], depth: int) -> None:
    """Put references in the place of long texts, and a mark before each key that begins like ours.

    It changes `value` itself, which nobody else has: a copy would take longer than all the rest.
    """
    if depth > DEEPEST:
        raise ValueError(_TOO_DEEP)
    for key, item in value.items() if type(value) is dict else enumerate(value):
        kind = type(item)
        if kind is str:
            if len(item) * 4 > LONG:
                value[key] = _reference(item, blobs)
        elif kind is dict or kind is list:
            _reduce(item, blobs, depth + 1)
    if type(value) is dict and "$" in "".join(value):
        ours = [key for key in value if key.startswith("$")]
        for key in sorted(ours, key=len, reverse=True):  # "$$x" makes room for "$x"
            value[f"${key}"] = value.pop(key)


def _reference(text: str, blobs: dict[str, bytes]) -> str | dict[str, str]:
    sha, size = _sha_and_size(text)
    if size <= LONG:
        return text
    blobs[sha] = text.encode()
    return {BLOB: sha}


class _Restoring:
    """Puts blobs back: each is decoded once and shared, and counted as often as it stands there."""

    def __init__(self, get_blob: Callable[[str], bytes]) -> None:
        self._get_blob = get_blob
        self._texts: dict[str, str] = {}
        self._size = 0

    def restored(self, value: Any, depth: int = 1) -> Any:
        if not isinstance(value, dict | list):
            return value
        if depth > DEEPEST:
            raise ValueError(_TOO_DEEP)
        if isinstance(value, list):
            return [self.restored(item, depth + 1) for item in value]
        if value.keys() == {BLOB}:
            return self._text(value[BLOB])
        return {_unmarked(key): self.restored(item, depth + 1) for key, item in value.items()}

    def _text(self, name: Any) -> str:
        if not isinstance(name, str):
            raise ValueError("a reference to a blob is no text")  # noqa: TRY004 - of a tape's content
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = self._get_blob(name).decode()
        self._size += len(text)
        if self._size > LARGEST_EVENT:
            raise ValueError(f"its texts are larger than {LARGEST_EVENT >> 20} MB together")
        return text


def _unmarked(key: str) -> str:
    return key.removeprefix("$")


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=512)
def _sha_and_size(text: str) -> tuple[str, int]:
    """The same long texts go into prompt after prompt; each is hashed once."""
    body = text.encode()
    return hashlib.sha256(body).hexdigest(), len(body)


def same(one: Value, other: Value) -> bool:
    """True if two values have the same stored form."""
    return canonical(one.model_dump(mode="json")) == canonical(other.model_dump(mode="json"))
