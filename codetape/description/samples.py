"""From what a caller gives as samples to what a job holds of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetape.description.columns import label
from codetape.description.files import LARGEST_READ, Table, needs_readers, table_of
from codetape.description.frames import MissingLibrary, frame_of, is_frame, write
from codetape.description.plain import plain_table
from codetape.description.tables import columns_of, table_words
from codetape.description.texts import text_of
from codetape.states.job import Column, Sample

SHOWN = 4000
"""Characters of a text that a model gets to see."""


@dataclass(frozen=True)
class Choice:
    """How samples are described: rows that may be shown, the seed of the draw, a private folder."""

    rows: int
    seed: int
    folder: Path


def samples_of(given: Mapping[str, Any], choice: Choice) -> tuple[Sample, ...]:
    """Describe samples. A frame is written to the private folder first, which is made then.

    Raises ValueError that names the sample: a missing file, a value that is neither a path nor a
    frame, a library that is needed and not there.
    """
    return tuple(_sample(name, value, choice) for name, value in given.items())


def _sample(name: str, value: Any, choice: Choice) -> Sample:
    if is_frame(value):
        return _frame_sample(name, value, choice)
    path = _path_of(name, value)
    if path.is_dir():
        return _made(name, path, _folder_words(path))
    return _file_sample(name, path, choice)


def _frame_sample(name: str, value: Any, choice: Choice) -> Sample:
    table = Table(frame_of(name, value))
    path = choice.folder / f"{name}.csv"
    write(table.frame, path)
    words = table_words(table, choice.rows, choice.seed)
    return _made(name, path, words, columns_of(table))


def _path_of(name: str, value: Any) -> Path:
    try:
        path = Path(value).expanduser()
    except TypeError:
        kind = type(value).__name__
        raise ValueError(f"samples: {name} is a path or a data frame, not {kind}") from None
    if not str(value) or not path.exists():
        raise ValueError(f"samples: {name}: there is no file {str(value) or '(an empty name)'}")
    if not (path.is_file() or path.is_dir()):
        raise ValueError(f"samples: {name}: {path} is neither a file nor a folder")
    if not os.access(path, os.R_OK):
        raise ValueError(f"samples: {name}: {path} may not be read")
    return path.resolve()


def _file_sample(name: str, path: Path, choice: Choice) -> Sample:
    try:
        table = table_of(path)
    except MissingLibrary:
        if needs_readers(path):
            raise
        return _made(name, path, plain_table(path, choice.rows) or _text_words(path))
    if table is None:
        return _made(name, path, _text_words(path))
    words = table_words(table, choice.rows, choice.seed)
    return _made(name, path, words, columns_of(table))


def _made(name: str, path: Path, words: str, columns: tuple[Column, ...] = ()) -> Sample:
    file = name + path.suffix
    return Sample(name=name, path=str(path), file=file, description=words, columns=columns)


def _text_words(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(min(size, LARGEST_READ))
    if (found := text_of(head)) is None:
        return f"A binary file of {size:,} bytes, named *{path.suffix or '(no ending)'}."
    told = f" {found.words}" if found.words else ""
    return f"A text file of {size:,} bytes.{told} It begins:\n{found.text[:SHOWN]}"


def _folder_words(path: Path) -> str:
    names = sorted(entry.name for entry in path.iterdir())
    listed = "\n".join(f"- {label(name)}" for name in names[:50])
    more = f"\n… and {len(names) - 50} more" if len(names) > 50 else ""
    return f"A folder of {len(names)} entries:\n{listed}{more}"
