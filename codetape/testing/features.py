"""Rough features of what a session remembers: they tell sessions apart that look the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any
from zlib import crc32

from pydantic import BaseModel

SHORT = 13
"""Texts below this length are words that rules may know; longer ones are somebody's prose."""

BUCKETS = 8
"""Prose is told apart by so many kinds: which one a text is of is left to chance."""


def features_of(value: Any) -> Iterator[Any]:
    """What is there, how many, which label: roughly."""
    if isinstance(value, frozenset | dict):
        yield min(len(value), 4)
    elif isinstance(value, tuple):
        yield min(len(value), 3)
        yield from (part for item in value for part in _parts(item))
    else:
        yield from _parts(value)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, BaseModel):
        yield from ((name, _rough(item)) for name, item in vars(value).items())
    elif is_dataclass(value):
        yield from ((field.name, _rough(getattr(value, field.name))) for field in fields(value))
    else:
        yield _rough(value)


def _rough(value: Any) -> Any:
    if value is None or isinstance(value, bool | StrEnum):
        return value
    if isinstance(value, int):
        return min(value, 3)
    if isinstance(value, str):
        return value if len(value) < SHORT else crc32(value.encode(errors="replace")) % BUCKETS
    return len(value) if hasattr(value, "__len__") else "…"
