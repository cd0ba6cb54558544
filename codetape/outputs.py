"""Reading declared outputs back as their types."""

from __future__ import annotations

import keyword
import re
from collections import namedtuple
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codetape.states.outputs import check_kind, value_of
from codetape.states.values import Declared, OutputFile
from codetape.values import Dir, File


def typed(declared: Iterable[Declared], files: Mapping[str, OutputFile]) -> Any:
    """Return one output as itself, several as a named tuple in declared order, none as None.

    Raises ValueError that names the output which is missing or does not fit its type.
    """
    values = {d.name: _value(d, files.get(d.name)) for d in declared}
    if len(values) == 1:
        return next(iter(values.values()))
    if not values:
        return None
    return _tuple(values)


def _value(declared: Declared, file: OutputFile | None) -> Any:
    if file is None:
        raise ValueError(f"the code wrote no output {declared.name}")
    check_kind(declared, file)
    if declared.type == "Dir":
        return Dir(file.path)
    if declared.type == "File":
        return File(file.path)
    return value_of(declared, Path(file.path).read_bytes().decode("utf-8", "replace"))


def _tuple(values: Mapping[str, Any]) -> Any:
    fields = [_field(name, number) for number, name in enumerate(values)]
    if len(set(fields)) < len(fields):
        fields = [f"output_{number}" for number in range(len(values))]
    return namedtuple("Outputs", fields)(*values.values())  # noqa: PYI024 - fields are known at run time


def _field(name: str, number: int) -> str:
    """Return an output's name as an attribute: report.csv is report_csv."""
    field = re.sub(r"\W", "_", name).lstrip("_")
    good = field.isidentifier() and not keyword.iskeyword(field)
    return field if good else f"output_{number}"
