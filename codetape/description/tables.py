"""A table in words, bounded."""

from __future__ import annotations

from typing import Any

from codetape.description.columns import column_of, column_words, label
from codetape.description.files import Table
from codetape.description.rows import chosen
from codetape.states.job import Column

MOST_COLUMNS = 80
"""Columns that are described; the names of the others are listed."""

ROWS_SHOWN = 6000
"""Characters of rows in a description."""


def columns_of(table: Table) -> tuple[Column, ...]:
    """Return the columns of a table, as a schema needs them."""
    frame = table.frame
    return tuple(column_of(name, frame.iloc[:, n]) for n, name in enumerate(frame.columns))


def table_words(table: Table, rows: int, seed: int) -> str:
    """Return shape, columns, duplicates and some rows of a table."""
    frame = table.frame
    lines = [f"A table of {len(frame):,} rows and {frame.shape[1]} columns. {table.words}".strip()]
    lines += [_duplicates(frame)] if len(frame) else []
    described = list(frame.columns)[:MOST_COLUMNS]
    lines += [
        f"- {label(name)}: {column_words(frame.iloc[:, n])}" for n, name in enumerate(described)
    ]
    if others := list(frame.columns)[MOST_COLUMNS:]:
        lines.append(f"- and {len(others)} more: {', '.join(map(label, others))}"[:2000])
    return "\n".join([*lines, *_rows(frame, rows, seed)])


def _duplicates(frame: Any) -> str:
    try:
        count = int(frame.duplicated().sum())
    except (TypeError, NotImplementedError):  # cells that hold lists cannot be compared
        return "Whether rows are there twice is not known."
    return f"{count:,} rows are there twice or more." if count else "No row is there twice."


def _rows(frame: Any, rows: int, seed: int) -> list[str]:
    positions = chosen(frame, rows, seed)
    if not positions or frame.shape[1] == 0:
        return []
    text = frame.iloc[positions].to_csv(index=False, lineterminator="\n").rstrip("\n").split("\n")
    kept, size = [], 0
    for line in text:
        size += len(line) + 1
        if size > ROWS_SHOWN:
            break
        kept.append(line)
    return ["Some rows, in the order of the table (first, extreme, with gaps, drawn):", *kept]
