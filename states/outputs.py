"""Declared outputs: whether a file is one, and its text as a value of its type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from codetape.states.values import Declared, OutputFile

PATHS = frozenset({"File", "Dir"})
"""Types whose value is the path itself."""


def _bool(text: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    return known[text.lower()]


_READERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": _bool,
    "datetime": datetime.fromisoformat,
    "timedelta": lambda text: timedelta(seconds=float(text)),
}


def check_kind(declared: Declared, file: OutputFile) -> None:
    """Raise ValueError for a folder in the place of a file, or a file in the place of a folder."""
    if file.is_folder != (declared.type == "Dir"):
        found = "a folder" if file.is_folder else "a file"
        raise ValueError(f"output {declared.name} is {found}, declared is {declared.type}")


def value_of(declared: Declared, text: str) -> Any:
    """Return the text of a file, without a mark of its byte order, as a value. Raises ValueError."""
    text = text.removeprefix("\ufeff")
    try:
        return _READERS[declared.type](text if declared.type == "str" else text.strip())
    except (ValueError, KeyError, OverflowError):
        raise ValueError(f"output {declared.name} is no {declared.type}: {text[:200]!r}") from None


def is_read(declared: Declared) -> bool:
    """Say whether the text of an output decides whether it fits."""
    return declared.type not in PATHS and declared.type != "str"


def misfit(declared: Declared, file: OutputFile) -> str:
    """Return why a file is no value of the declared type; empty if it is one."""
    try:
        check_kind(declared, file)
        if is_read(declared):
            _read(declared, file)
    except ValueError as why:
        return str(why)
    return ""


def _read(declared: Declared, file: OutputFile) -> None:
    if file.text is None:
        size = f"{file.size:,} bytes, which are too long or no UTF-8"
        raise ValueError(f"output {declared.name} is no {declared.type}: {size}")
    value_of(declared, file.text)
