"""A table in a few words, by the standard library alone: where pandas is not installed."""

from __future__ import annotations

import csv
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from codetape.description.texts import has_unnamed, separator_of, text_of

LARGEST_READ = 1 << 20
"""Bytes of a file that are read to describe it; of a larger one the description says so."""

SHOWN = 4000
"""Characters of a text, and of the rows of a table, that a model gets to see."""

FEW = 8
"""So many different values of a column are listed one by one."""


def plain_table(path: Path, rows: int) -> str | None:
    """Return a table in words, or None if the file is none that can be read without pandas."""
    with path.open("rb") as file:
        head = file.read(LARGEST_READ)
    cut = f" Only the first {LARGEST_READ:,} bytes were read." if len(head) == LARGEST_READ else ""
    if (found := text_of(head)) is None:
        return None
    table = _table(path, found.text)
    told = f" {found.words}" if found.words else ""
    return _table_words(table, rows) + told + cut if table else None


def _table(path: Path, text: str) -> list[dict[str, str]] | None:
    ending = path.suffix.lower()
    if ending in {".csv", ".tsv"}:
        return _delimited(text, "\t" if ending == ".tsv" else separator_of(text))
    if ending in {".jsonl", ".ndjson"}:
        return _records(json.loads(line) for line in text.split("\n") if line.strip())
    if ending == ".json":
        return _json_table(text)
    return None


def _delimited(text: str, delimiter: str) -> list[dict[str, str]] | None:
    try:
        if has_unnamed(text, delimiter):
            return None
        reader = csv.DictReader(text.splitlines(), delimiter=delimiter)
        table = [_cells(row) for row in reader]
    except csv.Error:
        return None
    return table or None


def _cells(row: Mapping[Any, Any]) -> dict[str, str]:
    """Leave out what a row has beyond the columns."""
    return {str(k): v or "" for k, v in row.items() if isinstance(v, str | None)}


def _json_table(text: str) -> list[dict[str, str]] | None:
    try:
        return _records(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _records(values: Iterable[Any]) -> list[dict[str, str]] | None:
    try:
        listed = list(values)
    except (ValueError, TypeError, RecursionError):
        return None
    if not listed or not all(isinstance(value, dict) for value in listed):
        return None
    return [{k: "" if v is None else _text(v) for k, v in value.items()} for value in listed]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _table_words(table: list[dict[str, str]], rows: int) -> str:
    columns = list(dict.fromkeys(name for row in table for name in row))
    lines = [f"A table of {len(table):,} rows and {len(columns)} columns."]
    lines += [
        f"- {name}: {_column_words([row.get(name, '') for row in table])}" for name in columns
    ]
    shown = _rows_shown(table, columns, rows)
    return "\n".join([*lines, "Rows, from the first on:", ",".join(columns), *shown])


def _rows_shown(table: list[dict[str, str]], columns: list[str], rows: int) -> list[str]:
    shown: list[str] = []
    left = SHOWN
    for row in islice(table, rows):
        line = ",".join(row.get(name, "") for name in columns)
        left -= len(line) + 1
        if left < 0:
            break
        shown.append(line)
    return shown


def _column_words(values: list[str]) -> str:
    filled = [value for value in values if value.strip()]
    missing = len(values) - len(filled)
    gaps = f", {missing} missing" if missing else ""
    if not filled:
        return "empty"
    if numbers := _numbers(filled):
        low, high, middle = min(numbers), max(numbers), statistics.median(numbers)
        return f"number{gaps}, from {low:g} to {high:g}, median {middle:g}"
    counts = Counter(filled)
    if len(counts) <= FEW:
        each = ", ".join(f"{value!r} ({count})" for value, count in counts.most_common())
        return f"text{gaps}, {each}"
    return f"text{gaps}, {len(counts)} different values, such as {filled[0]!r}"


def _numbers(values: list[str]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None
