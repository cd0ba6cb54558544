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

LONGEST_CELL = 200
"""Characters of one cell in these rows."""


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
    shown = _short(frame.iloc[positions, :MOST_COLUMNS])
    kept = _bounded(shown.to_csv(index=False, lineterminator="\n").rstrip("\n").split("\n"))
    if not positions or len(kept) < 2:  # the first line has the names
        return []
    part = (
        f"The first {MOST_COLUMNS} columns of some" if len(frame.columns) > MOST_COLUMNS else "Some"
    )
    return [f"{part} rows, in the order of the table (first, extreme, with gaps, drawn):", *kept]


def _short(rows: Any) -> Any:
    """Cut long cells, so that none takes the room of all others."""
    made = rows.copy()
    for place in range(made.shape[1]):
        if made.dtypes.iloc[place].kind == "O":  # all others are short
            made.isetitem(place, made.iloc[:, place].astype(object).map(_cell, na_action="ignore"))
    return made


def _cell(value: Any) -> Any:
    text = str(value)
    return value if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def _bounded(lines: list[str]) -> list[str]:
    """Return the first lines, as many whole rows as there is room for."""
    kept, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > ROWS_SHOWN:
            break
        kept.append(line)
    while "\n".join(kept).count('"') % 2:  # a cell of many lines was cut off
        kept.pop()
    return kept
