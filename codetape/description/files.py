"""Reading a sample file as a table, in part if it is large."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from codetape.description.frames import MissingLibrary, indexed, library, named
from codetape.description.texts import Text, has_unnamed, separator_of, text_of

LARGEST_READ = 8 << 20
"""Bytes of a text file that are read to describe it."""

MOST_ROWS = 50_000
"""Rows of a table that are looked at."""


@dataclass(frozen=True)
class Table:
    """A frame of pandas; `words` say how its file has to be read, and what was left out of it."""

    frame: Any
    words: str = ""


_ZEROS_FIRST = r"\s*[-+]?0\d"


def table_of(path: Path) -> Table | None:
    """Return a file as a table, or None if it is none. Raises ValueError where a reader is missing."""
    read = _READERS.get(path.suffix.lower())
    if read is None or path.stat().st_size == 0:
        return None
    try:
        table = read(path)
    except MissingLibrary:
        raise
    except Exception:  # noqa: BLE001 - readers raise what they like about a file that is broken
        return None  # named like a table and not one: its first lines tell more than an error
    return table and replace(table, frame=named(table.frame))


def needs_readers(path: Path) -> bool:
    """True if only an optional library can read this kind of file."""
    return path.suffix.lower() in {".parquet", ".xlsx", ".xls"}


def _pandas(path: Path) -> Any:
    return library("pandas", f"samples: {path.name} is a table, which needs pandas to be described")


def _delimited(path: Path) -> Table | None:
    pandas, head = _pandas(path), _head(path)
    tabs = path.suffix.lower() == ".tsv"
    separator = "\t" if tabs else separator_of(head.text)
    options = {"sep": separator, "nrows": MOST_ROWS}
    if has_unnamed(head.text, separator):
        return None  # pandas would name the fields from the last one on; its words would lie
    frame = pandas.read_csv(io.StringIO(head.text), **options)
    texts = pandas.read_csv(io.StringIO(head.text), **options, dtype=str)
    for place, name in enumerate(frame.columns):
        if texts.iloc[:, place].str.match(_ZEROS_FIRST).any():
            frame[name] = texts.iloc[:, place]  # 00123 is no number, but a name in digits
    told = f"Its fields are separated by {separator!r}." if separator != "," and not tabs else ""
    return Table(frame, _joined(told, head.words, _cut(len(frame))))


def _lines(path: Path) -> Table | None:
    head = _head(path)
    lines = (line for line in head.text.split("\n") if line.strip())
    return _records(path, head, [json.loads(line) for line in islice(lines, MOST_ROWS)])


def _json(path: Path) -> Table | None:
    if path.stat().st_size > LARGEST_READ:
        return None  # half a document is no document
    head = _head(path)
    return _records(path, head, json.loads(head.text))


def _records(path: Path, head: Text, values: Any) -> Table | None:
    """Return a list of objects as a table; pandas' own reader makes numbers and dates out of texts."""
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        return None  # an object, or a list of values: pandas would make some table of it
    frame = _pandas(path).DataFrame(values[:MOST_ROWS])
    return Table(frame, _joined(head.words, _cut(len(frame))))


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
    index = [str(name) for name in frame.index.names if name is not None]
    told = f"pandas reads its columns {', '.join(index)} as the index." if index else ""
    table = indexed(frame) if index else frame
    return Table(table, _joined(told, left if total > len(frame) else ""))


def _excel(path: Path) -> Table:
    pandas = _pandas(path)
    needed = f"samples: {path.name} is an Excel sheet, which needs"
    if path.suffix.lower() == ".xls":
        library("xlrd", f"{needed} xlrd", "install it with: pip install xlrd")
    else:
        library("openpyxl", f"{needed} openpyxl")
    with pandas.ExcelFile(path) as book:
        sheets = [str(name) for name in book.sheet_names]
        frame = pandas.read_excel(book, nrows=MOST_ROWS)
    others = ", ".join(map(repr, sheets[1:]))[:1000]
    told = f"This is the first sheet, {sheets[0]!r}; others are {others}." if others else ""
    return Table(frame, _joined(told, _cut(len(frame))))


def _head(path: Path) -> Text:
    """Return the text of a file, or its first whole lines and the words that say so.

    Raises ValueError if it is no text, or if its first line is longer than what is read.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_READ + 1)
    cut = len(content) > LARGEST_READ
    lines = content[:LARGEST_READ].rpartition(b"\n")[0] + b"\n" if cut else content
    found = text_of(lines)
    if found is None or not found.text.strip():
        raise ValueError(f"{path} has no line of text that could be read whole")
    if not cut:
        return found
    part = f"The file has {path.stat().st_size:,} bytes; the first {len(lines):,} were read."
    return Text(found.text, _joined(found.words, part))


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


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
