"""What an argument has to be, whatever it is about: else a ValueError of one line that names it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from codetape.states.values import Value

V = TypeVar("V", bound=Value)


def text(argument: str, given: Any) -> str:
    """Return a text."""
    if not isinstance(given, str):
        raise ValueError(f"{argument}: a text is wanted, not {_kind(given)}")  # noqa: TRY004
    return given


def filled(argument: str, given: Any) -> str:
    """Return a text that says something."""
    if not text(argument, given).strip():
        raise ValueError(f"{argument}: it is empty")
    return str(given)


def texts(argument: str, given: Iterable[str] | None) -> tuple[str, ...]:
    """Return texts that say something."""
    return tuple(filled(argument, each) for each in listed(argument, given))


def listed(argument: str, given: Any) -> tuple[Any, ...]:
    """Return a list; None is an empty one. A text alone is none, though Python takes it for one."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable | None):
        raise ValueError(f"{argument}: a list of texts is wanted, not {_kind(given)}")  # noqa: TRY004
    return () if given is None else tuple(given)


def mapping(argument: str, given: Any) -> dict[str, Any]:
    """Return a mapping with texts as its keys; None is an empty one."""
    if not isinstance(given, Mapping | None):
        raise ValueError(f"{argument}: names with values are wanted, not {_kind(given)}")  # noqa: TRY004
    return {text(argument, name): value for name, value in (given or {}).items()}


def at_least(argument: str, value: Any, least: float) -> Any:
    """Return a finite number that is not below `least`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{argument}: a number is wanted, not {_kind(value)}")  # noqa: TRY004
    if not math.isfinite(value):
        raise ValueError(f"{argument}: {value} is no limit")
    if value < least:
        raise ValueError(f"{argument}: {value!r} is less than {least:g}")
    return value


def whole(argument: str, value: Any, least: int) -> int:
    """Return a whole number that is not below `least`."""
    if at_least(argument, value, least) != int(value):
        raise ValueError(f"{argument}: {value!r} is no whole number")
    return int(value)


def instance(argument: str, given: Any, kind: type[Any]) -> Any:
    """Return a value of a class of ours."""
    if not isinstance(given, kind):
        raise ValueError(f"{argument}: {kind.__name__}(…) is wanted, not {_kind(given)}")  # noqa: TRY004
    return given


def port(argument: str, given: Any, kind: type[Any]) -> Any:
    """Return what has all methods of a port."""
    if not all(hasattr(given, name) for name in vars(kind) if not name.startswith("_")):
        raise ValueError(f"{argument}: {kind.__name__} is wanted, not {_kind(given)}")
    return given


def function(argument: str, given: Any) -> Any:
    """Return a function that answers at once, or None."""
    if given is not None and not callable(given):
        raise ValueError(f"{argument}: a function is wanted, not {_kind(given)}")
    if inspect.iscoroutinefunction(given):
        raise ValueError(f"{argument}: nobody awaits it; give a function that is not async")
    return given


def made(model: type[V], names: Mapping[str, str], /, **fields: Any) -> V:
    """Make a value; `names` says which argument a field comes from where the two differ."""
    try:
        return model(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        message = first["msg"][:1].lower() + first["msg"][1:]
        raise ValueError(f"{names.get(field, field)}: {message}") from None


def _kind(given: Any) -> str:
    return "None" if given is None else type(given).__name__
