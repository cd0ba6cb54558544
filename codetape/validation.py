"""From a caller's arguments to a Job, or to a ValueError that names the argument.

Everything is checked before the first event; the caller's values are only read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, get_args

from codetape import secrecy, shapes
from codetape.states.answers import SHAPES
from codetape.states.job import Budget, Persona
from codetape.states.packages import requirement, system_package
from codetape.states.tools.personas import PERSONAS
from codetape.states.values import Declared, Limits, TypeName
from codetape.values import Dir, File, ImageConfig, Resources, Secret, bytes_of

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

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_OUTPUT = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_IMAGE = re.compile(r"^(?!.*//)(?:[A-Za-z0-9][A-Za-z0-9._:/@-]{0,250})?\Z")
_PYTHON = re.compile(r"^\d+\.\d+(\.\d+)?\Z")
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\Z")

CACHES = ("auto", "override", "disable")
"""What `run` does with equal runs."""

LANE_NAMES = ("orchestrator", "coder")
"""The lanes that `models` may name besides kinds of calls."""

TOOL_KINDS = ("fix_crash", "fix_logic", "harness")
"""The kinds of calls of the tool maker, personas aside."""

RESERVED = frozenset(
    {"help", "h", "solution", "test_solution", "output_dir", "overwrite", "unverified"}
)
"""Names that an option, a file in the sandbox, or an argument of `run` has already."""


def declared(argument: str, given: Mapping[str, Any] | None) -> tuple[Declared, ...]:
    """Return declared inputs or outputs. `argument` is "inputs" or "outputs"."""
    check = partial(_input_name, argument) if argument == "inputs" else _output_name
    types = shapes.mapping(argument, given).items()
    return tuple(Declared(name=check(n), type=type_name(argument, n, t)) for n, t in types)


def sample_names(given: Any) -> dict[str, Any]:
    """Return samples, each with a name that an input may have."""
    samples = shapes.mapping("samples", given)
    return {_input_name("samples", name): value for name, value in samples.items()}


def type_name(argument: str, name: str, given: Any) -> TypeName:
    """Return the name of a type that was given as a type or by its name."""
    if isinstance(given, str):
        for known in get_args(TypeName):
            if given.lower() == known.lower():
                return known  # type: ignore[no-any-return]  # get_args has no type
    elif isinstance(given, type) and given in _TYPES:
        return _TYPES[given]
    known_types = ", ".join(get_args(TypeName))
    shown = given if isinstance(given, str) else getattr(given, "__name__", repr(given))
    raise ValueError(f"{argument}: {name} has the unknown type {shown}; known are {known_types}")


def _input_name(argument: str, name: str) -> str:
    if not _NAME.match(name) or name.lower() in RESERVED:
        raise ValueError(f"{argument}: {name!r} cannot be the name of an option")
    return name


def _output_name(name: str) -> str:
    if not _OUTPUT.match(name) or name in {".", ".."}:
        raise ValueError(f"outputs: {name!r} is no file name")
    return name


def prompt(text: Any) -> str:
    """Return a prompt that says something."""
    if not shapes.text("prompt", text).strip():
        raise ValueError("prompt: it is empty; say what the code is to do")
    return str(text)


def one_of(argument: str, value: str, allowed: Iterable[str]) -> Any:
    """Return a value that is one of `allowed`."""
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{argument}: {value!r} is none of {', '.join(allowed)}")
    return value


def names(argument: str, given: Iterable[str], check: Callable[[str], str]) -> tuple[str, ...]:
    """Return package names in their one form."""
    listed = shapes.texts(argument, given)
    try:
        return tuple(check(name) for name in listed)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None


def kinds(argument: str, given: Mapping[str, str], own: Iterable[str] = ()) -> dict[str, str]:
    """Return models by kind of call or by lane, sorted; `own` are kinds that the caller made up.

    Those of both workflows are known, so that one file can say which models are asked for all of them.
    """
    models = shapes.mapping(argument, given)
    known = dict.fromkeys((*LANE_NAMES, *own, *SHAPES, *TOOL_KINDS, *(p.name for p in PERSONAS)))
    for kind, model in models.items():
        one_of(argument, kind, known)
        shapes.filled(f"{argument}: {kind}", model)
    return dict(sorted(models.items()))


def personas(given: Iterable[Persona]) -> tuple[Persona, ...]:
    """Return personas whose names tell them apart, from each other and from kinds of calls."""
    if isinstance(given, str | Persona) or not isinstance(given, Iterable):
        raise ValueError("personas: a list of personas is wanted")  # noqa: TRY004
    made = tuple(shapes.instance("personas", who, Persona) for who in given)
    if not made:
        raise ValueError("personas: there is none, and somebody has to write the code")
    taken = {*SHAPES, *TOOL_KINDS, *LANE_NAMES}
    for who in made:
        if not _NAME.match(who.name) or who.name in taken:
            raise ValueError(f"personas: {who.name!r} is taken or no name")
        _persona(who)
        taken.add(who.name)
    return made


def _persona(who: Persona) -> None:
    shapes.filled(f"personas: the directive of {who.name}", who.directive)
    if who.model:
        shapes.filled(f"personas: the model of {who.name}", who.model)
    if who.temperature is not None:
        shapes.at_least(f"personas: the temperature of {who.name}", who.temperature, 0)


def base_packages(given: Iterable[str]) -> tuple[str, ...]:
    """Return distributions that are always installed."""
    return names("base_packages", given, requirement)


def base_image(config: ImageConfig) -> str:
    """Return the base image with its registry."""
    registry, image = config.registry.rstrip("/"), config.base_image
    if not _IMAGE.match(image) or not _IMAGE.match(registry):
        raise ValueError(f"image_config: {registry or image!r} is no name of an image or registry")
    if not registry or _has_registry(image):
        return image
    if not image:
        raise ValueError("image_config: a registry needs a base_image")
    return f"{registry}/{image}"


def _has_registry(image: str) -> bool:
    first, slash, _ = image.partition("/")
    return bool(slash) and (first == "localhost" or "." in first or ":" in first)


def registry_secret(config: ImageConfig) -> str | None:
    """Return the name of the variable with "user:password", which has to be set."""
    if config.registry_secret is None:
        return None
    name = secrecy.variable("image_config", config.registry_secret)
    if ":" not in os.environ[name]:
        raise ValueError(f'image_config: the variable {name} is not set to "user:password"')
    return name


def system_packages(given: Iterable[str]) -> tuple[str, ...]:
    """Return Debian packages that are always installed."""
    return names("image_config", given, system_package)


def variables(argument: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables, sorted."""
    values = shapes.mapping(argument, given)
    for name, value in values.items():
        variable(argument, name)
        if not isinstance(value, str) or "\0" in value:
            raise ValueError(f"{argument}: the value of {name} is no text")
    return dict(sorted(values.items()))


def variable(argument: str, name: str) -> str:
    """Return the name of an environment variable."""
    if not isinstance(name, str) or not _VARIABLE.match(name):
        raise ValueError(f"{argument}: {name!r} is not the name of an environment variable")
    return name


def secrets(given: Iterable[Secret | str]) -> tuple[str, ...]:
    """Return the names of the variables that hold secrets."""
    listed = shapes.listed("secrets", given)
    names = (secret.name if isinstance(secret, Secret) else secret for secret in listed)
    return tuple(secrecy.variable("secrets", name) for name in names)


def python(given: Any) -> str | None:
    """Return a version of Python, such as 3.12; None is that of the base image."""
    if given is not None and not _PYTHON.match(shapes.text("image_config: python", given)):
        raise ValueError(f"image_config: {given!r} is no version of Python, such as 3.12")
    return None if given is None else str(given)


def budget(given: Any) -> Budget:
    """Return a budget whose limits can be kept."""
    for name, limit in shapes.instance("budget", given, Budget):
        if limit is not None:
            shapes.at_least(f"budget: {name}", limit, 0)
    return given  # type: ignore[no-any-return]  # instance has looked


def name(given: Any) -> str:
    """Return the name of an agent, which is a line in what is saved."""
    if not shapes.filled("name", given).isprintable():
        raise ValueError("name: it has to be one line")
    return str(given)


def other_limits(known: Limits, resources: Resources | None, timeout: float | None) -> Limits:
    """Return limits in which what was given replaces what is known."""
    seconds = known.seconds if timeout is None else timeout
    if resources is not None:
        return limits(resources, seconds)
    return known.model_copy(update={"seconds": shapes.at_least("timeout", seconds, 0.1)})


def limits(resources: Resources, timeout: float) -> Limits:
    """Return the limits of a run; `timeout` in seconds of wall clock."""
    shapes.instance("resources", resources, Resources)
    try:
        memory, disk = bytes_of(resources.memory), bytes_of(resources.disk)
    except ValueError as error:
        raise ValueError(f"resources: {error}") from None
    return Limits(
        memory=shapes.at_least("resources: memory", memory, 32 << 20),
        cpus=shapes.at_least("resources: cpu", resources.cpu, 0.01),
        processes=shapes.at_least("resources: processes", resources.processes, 8),
        seconds=shapes.at_least("timeout", timeout, 0.1),
        disk=shapes.at_least("resources: disk", disk, 1),
    )
