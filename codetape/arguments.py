"""From the values of inputs to the options and files of a run, or to a ValueError that names one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from codetape.description.frames import frame_of, is_frame, write
from codetape.states.job import Job
from codetape.states.script import option, place_of
from codetape.states.values import Declared, HostFile
from codetape.values import Dir, File

LONGEST = 131_072
"""Bytes of one option with its end; Linux starts no program with a longer one."""


def arguments_of(
    job: Job, given: Mapping[str, Any], folder: Path
) -> tuple[tuple[str, ...], tuple[HostFile, ...]]:
    """Return the options and the files of a run; an input that is not given takes its sample.

    Data frames are written below `folder`. Raises ValueError, which names the input that is wrong.
    """
    known = {d.name for d in job.inputs}
    for name in given:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise ValueError(f"{name}: there is no such input; there are {there}")
    arguments: list[str] = []
    files: list[HostFile] = []
    for declared in job.inputs:
        value, file = _argument(declared, job, given, folder)
        arguments += _option(declared.name, value)
        files += [file] if file else []
    return tuple(arguments), tuple(files)


def _argument(
    declared: Declared, job: Job, given: Mapping[str, Any], folder: Path
) -> tuple[str, HostFile | None]:
    samples = {sample.name: sample.path for sample in job.samples}
    value = given.get(declared.name, samples.get(declared.name))
    if value is None:
        raise ValueError(f"{declared.name}: this input has no value and no sample")
    if declared.type in {"File", "Dir"}:
        file = _host_file(declared, _written(declared.name, value, folder))
        _check_kind(declared, Path(file.path))
        return place_of(file.name), file
    return _text(declared, value), None


def _option(name: str, value: str) -> tuple[str, ...]:
    """Return a value as an option that a program can be started with. Raises ValueError."""
    words = option(name, value)
    try:
        size = max(len(word.encode()) for word in words)
    except UnicodeEncodeError:
        raise ValueError(f"{name}: its text is not valid Unicode") from None
    if "\0" in value:
        raise ValueError(f"{name}: no option can hold a NUL character")
    if size >= LONGEST:
        raise ValueError(f"{name}: {size:,} bytes are too long for an option; declare it as a File")
    return words


def _written(name: str, value: Any, folder: Path) -> Any:
    """Return a value as it is, or where the data frame that it is was written."""
    if not is_frame(value):
        return value
    write(frame_of(name, value), folder / f"{name}.csv")
    return folder / f"{name}.csv"


def _host_file(declared: Declared, value: Any) -> HostFile:
    try:
        path = value.path if isinstance(value, File | Dir) else Path(value).expanduser()
    except TypeError:
        kind = type(value).__name__
        message = f"{declared.name}: it is a path or a data frame, not {kind}"
        raise ValueError(message) from None
    if not str(value) or not path.exists():
        raise ValueError(f"{declared.name}: there is no file {str(value) or '(an empty name)'}")
    return HostFile(name=declared.name + path.suffix, path=str(path.resolve()))


def _check_kind(declared: Declared, path: Path) -> None:
    if path.is_dir() != (declared.type == "Dir"):
        found = "a folder" if path.is_dir() else "a file"
        raise ValueError(f"{declared.name}: {path} is {found}, declared is {declared.type}")


def _text(declared: Declared, value: Any) -> str:
    """Return a value as the text of an option, after checking that it has its type."""
    try:
        match declared.type:
            case "int":
                return str(_whole(value))
            case "float":
                return repr(float(value))
            case "bool":
                return str(value).lower() if isinstance(value, bool) else _bool_text(value)
            case "datetime":
                return _moment(value).isoformat()
            case "timedelta":
                seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
                return repr(timedelta(seconds=seconds).total_seconds())
    except (TypeError, ValueError, OverflowError):
        shown = repr(value)[:200]
        raise ValueError(f"{declared.name}: {shown} is no {declared.type}") from None
    return str(value)


def _whole(value: Any) -> int:
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError
    return number


def _bool_text(value: Any) -> str:
    if str(value).lower() not in {"true", "false"}:
        raise ValueError
    return str(value).lower()


def _moment(value: Any) -> datetime:
    given = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    if given != given:  # what pandas has for a missing moment
        raise ValueError
    return given
