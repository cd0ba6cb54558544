"""What a model should know of a column: facts, in a few words."""

from __future__ import annotations

import math
import re
from typing import Any

from codetape.states.job import Column

FEW = 12
"""So many different values of a column are listed one by one."""

LONGEST_VALUE = 60
"""Characters of one value that are shown."""

LARGEST_INT = 2**63 - 1
"""A schema's int holds no larger one."""

YEARS = range(1678, 2262)
"""A schema's datetime, which counts nanoseconds, holds no other ones."""

_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d{1,2}:\d\d(:\d\d)?"

FORMATS = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "web addresses": re.compile(r"https?://\S+"),
    "UUIDs": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "IPv4 addresses": re.compile(r"\d{1,3}(\.\d{1,3}){3}"),
    "dates (YYYY-MM-DD)": re.compile(_DATE),
    "moments (ISO 8601)": re.compile(rf"{_DATE}[T ]{_TIME}(\.\d+)?(Z|[+-]\d\d:?\d\d)?"),
    "dates (DD.MM.YYYY)": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"),
    "dates (MM/DD/YYYY or DD/MM/YYYY)": re.compile(r"\d{1,2}/\d{1,2}/\d{4}"),
    "times of day": re.compile(_TIME),
    "whole numbers as text": re.compile(r"[-+]?\d+"),
    "numbers as text": re.compile(r"[-+]?\d+[.,]\d+"),
    "percentages": re.compile(r"[-+]?\d+([.,]\d+)?\s*%"),
}
"""Forms that all values of a text column may have, the narrower ones first."""


def column_of(name: Any, series: Any) -> Column:
    """Return name, type and nullability of a column, as a schema needs them."""
    kind = _type(series) if _holds(series) else "object"
    return Column(name=str(name), type=kind, nullable=bool(series.isna().any()))


def _holds(series: Any) -> bool:
    """False for moments that the datetime of a schema cannot hold."""
    if series.dtype.kind != "M" or series.isna().all():
        return True
    return series.min().year in YEARS and series.max().year in YEARS


def _type(series: Any) -> str:
    kind = series.dtype.kind if hasattr(series.dtype, "kind") else "O"
    if series.isna().all():
        return "unknown"
    if kind == "b":
        return "bool"
    if kind in "iu":
        return "int" if series.max() <= LARGEST_INT else "object"
    if kind == "f":
        return "float"
    if kind == "M":
        return "datetime"
    return "str" if series.dropna().map(lambda value: isinstance(value, str)).all() else "object"


def column_words(series: Any) -> str:
    """Return type, gaps, range or values, and form of a column."""
    kind, gaps = _type(series), int(series.isna().sum())
    parts = [kind, f"{gaps:,} missing" if gaps else "none missing"]
    filled = series.dropna()
    if len(filled) == 0:
        return "empty"
    parts += _values(kind, filled)
    if len(filled) > 1 and filled.map(str).is_unique and gaps == 0:
        parts.append("all different: may be a key")
    return "; ".join(parts)


def _values(kind: str, filled: Any) -> list[str]:
    if kind in {"int", "float"}:
        return [_numbers(filled), *_listed(filled)]
    if kind == "datetime":
        return [f"from {filled.min()} to {filled.max()}"]
    if kind == "bool":
        return _listed(filled)
    texts = filled.map(str)
    return _listed(texts) or _texts(texts)


def _numbers(filled: Any) -> str:
    numbers = filled.astype(float)
    finite = numbers[numbers.abs() != math.inf]
    if len(finite) == 0:
        return "infinite"
    quartiles = ", ".join(map(number, finite.quantile([0.25, 0.5, 0.75])))
    infinite = len(numbers) - len(finite)
    more = f", {infinite:,} infinite" if infinite else ""
    low, high = number(finite.min()), number(finite.max())
    return f"from {low} to {high}, quartiles {quartiles}{more}"


def _listed(filled: Any) -> list[str]:
    counts = filled.map(str).value_counts(sort=False)
    if len(counts) > FEW or len(counts) == len(filled):
        return []
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ["values " + ", ".join(f"{shown(value)} ({count:,})" for value, count in ordered)]


def _texts(texts: Any) -> list[str]:
    words = [f"{texts.nunique():,} different, such as {shown(texts.iloc[0])}"]
    if form := _form(texts):
        words.append(form)
    return words


def _form(texts: Any) -> str | None:
    stripped = [text.strip() for text in texts]
    for name, pattern in FORMATS.items():
        if all(pattern.fullmatch(text) for text in stripped):
            return name
    return None


def number(value: Any) -> str:
    """Return a number as it is written: whole ones by each digit, for they may be dates or keys."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{float(value):.6g}"


def label(name: Any) -> str:
    """Return the name of a column; one that would break the line it stands in is quoted."""
    text = str(name)
    plain = text.isprintable() and text == text.strip() and len(text) <= LONGEST_VALUE
    return text if plain and text else shown(text)


def shown(value: str) -> str:
    """Quote a value, cut if it is long."""
    return repr(value if len(value) <= LONGEST_VALUE else value[: LONGEST_VALUE - 1] + "…")
