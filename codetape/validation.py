"""From a caller's arguments to a Job, or to a ValueError that names the argument.

Everything is checked before the first event; the caller's values are only read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, get_args

from codetape.states.answers import SHAPES
from codetape.states.job import Declared, TypeName
from codetape.states.packages import requirement, system_package
from codetape.states.values import Limits
from codetape.values import Dir, File, Resources, bytes_of

_TYPES: dict[Any, TypeName] = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    datetime: "datetime",
    timedelta: "timedelta",
    File: "File",
    Dir: "Dir",
}

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")
_OUTPUT = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")

RESERVED = frozenset({"help", "h", "solution", "test_solution"})
"""Names that an option or a file in the sandbox has already."""


def declared(argument: str, given: Mapping[str, Any]) -> tuple[Declared, ...]:
    """Return declared inputs or outputs. `argument` is "inputs" or "outputs"."""
    check = _input_name if argument == "inputs" else _output_name
    return tuple(Declared(name=check(n), type=type_name(argument, n, t)) for n, t in given.items())


def type_name(argument: str, name: str, given: Any) -> TypeName:
    """Return the name of a type that was given as a type or by its name."""
    if isinstance(given, str):
        for known in get_args(TypeName):
            if given.lower() == known.lower():
                return known  # type: ignore[no-any-return]  # get_args has no type
    elif given in _TYPES:
        return _TYPES[given]
    known_types = ", ".join(get_args(TypeName))
    shown = given if isinstance(given, str) else getattr(given, "__name__", repr(given))
    raise ValueError(f"{argument}: {name} has the unknown type {shown}; known are {known_types}")


def _input_name(name: str) -> str:
    if not _NAME.match(name) or name.lower() in RESERVED:
        raise ValueError(f"inputs: {name!r} cannot be the name of an option")
    return name


def _output_name(name: str) -> str:
    if not _OUTPUT.match(name) or name in {".", ".."}:
        raise ValueError(f"outputs: {name!r} is no file name")
    return name


def prompt(text: Any) -> str:
    """Return a prompt that says something."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError("prompt: it is empty; say what the code is to do")
    return text


def at_least(argument: str, value: Any, least: float) -> Any:
    """Return a number that is not below `least`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        raise ValueError(f"{argument}: {value!r} is less than {least:g}")
    return value


def one_of(argument: str, value: str, allowed: Iterable[str]) -> Any:
    """Return a value that is one of `allowed`."""
    allowed = tuple(allowed)
    if value not in allowed:
        raise ValueError(f"{argument}: {value!r} is none of {', '.join(allowed)}")
    return value


def names(argument: str, given: Iterable[str], check: Callable[[str], str]) -> tuple[str, ...]:
    """Return package names in their one form."""
    if isinstance(given, str):
        raise ValueError(f"{argument}: give a list of names, not one text")  # noqa: TRY004
    try:
        return tuple(check(name) for name in given)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None


def kinds(argument: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return models by kind of call, sorted."""
    for kind in given:
        one_of(argument, kind, SHAPES)
    return dict(sorted(given.items()))


def base_packages(given: Iterable[str]) -> tuple[str, ...]:
    """Return distributions that are always installed."""
    return names("base_packages", given, requirement)


def system_packages(given: Iterable[str]) -> tuple[str, ...]:
    """Return Debian packages that are always installed."""
    return names("image_config", given, system_package)


def variables(argument: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables, sorted."""
    for name, value in given.items():
        variable(argument, name)
        if not isinstance(value, str):
            raise ValueError(f"{argument}: the value of {name} is no text")  # noqa: TRY004
    return dict(sorted(given.items()))


def variable(argument: str, name: str) -> str:
    """Return the name of an environment variable."""
    if not isinstance(name, str) or not _VARIABLE.match(name):
        raise ValueError(f"{argument}: {name!r} is not the name of an environment variable")
    return name


def limits(resources: Resources, timeout: float) -> Limits:
    """Return the limits of a run; `timeout` in seconds of wall clock."""
    try:
        memory, disk = bytes_of(resources.memory), bytes_of(resources.disk)
    except ValueError as error:
        raise ValueError(f"resources: {error}") from None
    return Limits(
        memory=at_least("resources: memory", memory, 32 << 20),
        cpus=at_least("resources: cpu", resources.cpu, 0.01),
        processes=at_least("resources: processes", resources.processes, 8),
        seconds=at_least("timeout", timeout, 0.1),
        disk=at_least("resources: disk", disk, 1),
    )
