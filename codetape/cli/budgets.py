"""The option --budget, and what stands in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

LIMITS: dict[str, Callable[[str], float]] = {
    "usd": float,
    "tokens": int,
    "calls": int,
    "seconds": float,
}

F = TypeVar("F", bound=Callable[..., Any])


def _read(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """Read LIMIT=N options; a limit that is given twice is an error."""
    limits: dict[str, float] = {}
    for text in given:
        name, _equals, number = text.partition("=")
        if name not in LIMITS:
            raise click.BadParameter(
                f"{text!r} is none of {', '.join(LIMITS)} with =N", param=option
            )
        if name in limits:
            raise click.BadParameter(f"{name!r} is given twice", param=option)
        limits[name] = _number(option, text, LIMITS[name], number)
    return limits


def _number(option: click.Parameter, text: str, kind: Callable[[str], float], digits: str) -> float:
    try:
        number = kind(digits)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise click.BadParameter(f"{text!r} has no number that could be a limit", param=option)
    return number


def budget_option(function: F) -> F:
    """Add --budget."""
    return click.option(
        "--budget",
        metavar="LIMIT=N",
        multiple=True,
        callback=_read,
        help="Pause before more is spent: usd, tokens, calls or seconds. May be repeated.",
    )(function)
