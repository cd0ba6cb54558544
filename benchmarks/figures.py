"""A figure that was measured, held against a goal, and the table of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_COLUMNS = "{:<35} {:>13} {:>16} {:>6} {:>6}"  # 80 characters


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: what was measured, and what it is held against.

    `ratio` is the measured value as a share of the other one. `kept` says whether the goal is kept;
    None for a figure without a goal, which only explains another one.
    """

    name: str
    measured: str
    against: str = ""
    ratio: float | None = None
    kept: bool | None = None


def at_least(name: str, value: float, goal: float, form: str) -> Figure:
    """A figure that must not be smaller than its goal; `form` is a format such as "{:,.0f} /s"."""
    against = f"goal {form.format(goal)}"
    return Figure(name, form.format(value), against, value / goal, value >= goal)


def at_most(name: str, value: float, limit: float, form: str) -> Figure:
    """A figure that must not be larger than its limit."""
    against = f"limit {form.format(limit)}"
    return Figure(name, form.format(value), against, value / limit, value <= limit)


def heading() -> str:
    """Return the first lines of the table."""
    return (
        _COLUMNS.format("figure", "measured", "limit or rival", "ratio", "goal") + "\n" + "-" * 80
    )


def line(figure: Figure) -> str:
    """Return a figure as a line of the table."""
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    goal = {True: "kept", False: "MISSED", None: ""}[figure.kept]
    return _COLUMNS.format(figure.name, figure.measured, figure.against, ratio, goal).rstrip()


def missed(figures: Iterable[Figure]) -> list[str]:
    """Return the names of the figures whose goal is missed."""
    return [figure.name for figure in figures if figure.kept is False]
