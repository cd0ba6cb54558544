"""What guards read of a session: a stand-in that notes it.

A guard is asked about the stand-in as about the session itself. Numbers that it reads, and collections
that it counts, are the counters of a workflow: what a walk over all its states has to keep apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel

Path = tuple[str, ...]
"""The attributes that lead from a session to a number; the last one may be COUNT."""

COUNT = "()"
"""Stands for how many there are of a collection."""


class _Seen:
    """A value that notes which of its parts are read."""

    def __init__(self, value: Any, path: Path, noted: set[Path]) -> None:
        object.__setattr__(self, "_parts", (value, path, noted))

    @property  # type: ignore[misc] # it answers isinstance as the value does
    def __class__(self) -> type:
        return type(self._parts[0])

    def __getattr__(self, name: str) -> Any:
        value, path, noted = self._parts
        return _seen(getattr(value, name), (*path, name), noted)

    def __eq__(self, other: object) -> bool:
        return bool(self._parts[0] == other)

    def __hash__(self) -> int:
        return hash(self._parts[0])


class _SeenMany(_Seen):
    """A collection that notes that it was counted."""

    def __len__(self) -> int:
        value, path, noted = self._parts
        noted.add((*path, COUNT))
        return len(value)

    def __bool__(self) -> bool:
        return bool(self._parts[0])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts[0])

    def __contains__(self, item: object) -> bool:
        return item in self._parts[0]

    def __getitem__(self, at: Any) -> Any:
        return self._parts[0][at]


def _seen(value: Any, path: Path, noted: set[Path]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        noted.add(path)
        return value
    if isinstance(value, tuple | list | frozenset | set | dict):
        return _SeenMany(value, path, noted)
    if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        return _Seen(value, path, noted)
    return value


def numbers_read(ask: Callable[[Any], object], sessions: Iterable[Any]) -> set[Path]:
    """Return the numbers that a function reads of these sessions; those of the job never change."""
    noted: set[Path] = set()
    for session in sessions:
        # What does not bear a stand-in is read as far as it goes.
        with suppress(Exception):
            ask(_seen(session, (), noted))
    return {path for path in noted if path[0] != "job" and "ending" not in path}


def number_at(session: Any, path: Path) -> int:
    """Return the number that stands there; -1 if something on the way is not there."""
    value = session
    for name in path:
        if value is None:
            return -1
        value = len(value) if name == COUNT else getattr(value, name)
    return -1 if value is None else int(value)
