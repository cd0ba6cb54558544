"""Reading a sample file as a table, in part if it is large."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetape.description.frames import library

LARGEST_READ = 8 << 20
"""Bytes of a text file that are read to describe it."""

MOST_ROWS = 50_000
"""Rows of a table that are looked at."""


@dataclass(frozen=True)
class Table:
    """A frame of pandas; `partial` says in words what was left out, empty if nothing was."""

    frame: Any
    partial: str = ""


def table_of(path: Path) -> Table | None:
    """Return a file as a table, or None if it is none. Raises ValueError where a reader is missing."""
    read = _READERS.get(path.suffix.lower())
    if read is None or path.stat().st_size == 0:
        return None
    try:
        return read(path)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        if "codetape[data]" in str(error):
            raise
        return None  # named like a table and not one: its first lines tell more than an error


def needs_readers(path: Path) -> bool:
    """True if only an optional library can read this kind of file."""
    return path.suffix.lower() in {".parquet", ".xlsx", ".xls"}


def _pandas(path: Path) -> Any:
    return library("pandas", f"samples: {path.name} is a table, which needs pandas to be described")


def _delimited(path: Path) -> Table:
    separator = "\t" if path.suffix.lower() == ".tsv" else None
    text, partial = _head(path)
    frame = _pandas(path).read_csv(io.StringIO(text), sep=separator or ",", nrows=MOST_ROWS)
    return Table(frame, partial or _cut(len(frame)))


def _lines(path: Path) -> Table:
    text, partial = _head(path)
    frame = _pandas(path).read_json(io.StringIO(text), lines=True, nrows=MOST_ROWS)
    return Table(frame, partial or _cut(len(frame)))


def _json(path: Path) -> Table | None:
    text, partial = _head(path)
    if partial:
        return None  # half a document is no document
    frame = _pandas(path).read_json(io.StringIO(text), orient="records")
    return Table(frame.head(MOST_ROWS), _cut(len(frame)))


def _parquet(path: Path) -> Table:
    _pandas(path)
    arrow = library("pyarrow.parquet", f"samples: {path.name} is Parquet, which needs pyarrow")
    with arrow.ParquetFile(path) as file:
        total = file.metadata.num_rows
        batch = next(file.iter_batches(batch_size=MOST_ROWS), None)
        frame = (
            batch.to_pandas() if batch is not None else file.schema_arrow.empty_table().to_pandas()
        )
    left = f"The file has {total:,} rows; the first {len(frame):,} were read."
    return Table(frame, left if total > len(frame) else "")


def _excel(path: Path) -> Table:
    library("openpyxl", f"samples: {path.name} is an Excel sheet, which needs openpyxl")
    frame = _pandas(path).read_excel(path, nrows=MOST_ROWS)
    return Table(frame, _cut(len(frame)))


def _head(path: Path) -> tuple[str, str]:
    """Return the text of a file, or its first whole lines and the words that say so."""
    with path.open("rb") as file:
        content = file.read(LARGEST_READ + 1)
    if len(content) <= LARGEST_READ:
        return content.decode("utf-8-sig"), ""
    lines = content[:LARGEST_READ].rpartition(b"\n")[0] + b"\n"
    size = path.stat().st_size
    return lines.decode(
        "utf-8-sig"
    ), f"The file has {size:,} bytes; the first {len(lines):,} were read."


def _cut(rows: int) -> str:
    return f"Only the first {MOST_ROWS:,} rows were looked at." if rows >= MOST_ROWS else ""


_READERS: dict[str, Callable[[Path], Table | None]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _json,
    ".parquet": _parquet,
    ".xlsx": _excel,
    ".xls": _excel,
}
