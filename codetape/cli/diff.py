"""`codetape diff`: two sessions side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from codetape.cli.exits import NOT_PASSED, PASSED
from codetape.cli.out import in_json, put
from codetape.cli.stores import reading_tape, short, store_option

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.replay.compare import Comparison


@click.command()
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as one JSON object.")
@store_option
def command(one: str, other: str, store: str | None, *, as_json: bool) -> int:
    """Say where two sessions part, and what differs after that: states, code, tests, packages, costs.

    What no two runs have in common, such as how long something took, counts as equal. Ends with 0 if
    they are the same, else with 1. A and B are prefixes of ids, or last, or a FILE.jsonl of
    `codetape export`.

    Example: codetape diff 4f2a last
    """
    from codetape.cli.screen import screen
    from codetape.replay.compare import compare
    from codetape.replay.reading import open_tape

    with reading_tape(one, store) as first, reading_tape(other, store) as second:
        comparison = compare(open_tape(*first), open_tape(*second))
    if as_json:
        put(in_json(asdict(comparison)))
    else:
        show(screen(), comparison)
    return NOT_PASSED if comparison.parting else PASSED


def show(shown: Screen, comparison: Comparison) -> None:
    """Show where two sessions part, and what differs after that."""
    first, second = short(comparison.sessions.one), short(comparison.sessions.other)
    parting = comparison.parting
    if parting is None:
        shown.line(f"Sessions {first} and {second} are the same.", "good")
        return
    where = _where(parting.seqs.one, parting.seqs.other)
    shown.line(f"Sessions {first} and {second} part at {where}: {parting.reason}", "bad")
    if parting.diff:
        shown.code(parting.diff, "diff")
    shown.line()
    shown.table(("", "first", "second"), [("session", first, second), *_facts(comparison)])
    _show_paths(shown, comparison)
    for name, text in (("solution.py", comparison.code), ("test_solution.py", comparison.tests)):
        if text:
            shown.line(f"\n{name} in the end:", "title")
            shown.code(text, "diff")


def _where(one: int | None, other: int | None) -> str:
    """Name the event where two tapes part; None is the end of a tape."""
    if one is None or other is None:
        return f"the end of the {'first' if one is None else 'second'}"
    return f"event {one}" if one == other else f"events {one} and {other}"


def _facts(comparison: Comparison) -> list[tuple[str, str, str]]:
    from codetape.cli.text import listed

    pairs = [(name.replace("_", " "), p.one, p.other) for name, p in comparison.facts.items()]
    rows = [(name, _said(one, name), _said(other, name)) for name, one, other in pairs]
    only = comparison.packages
    return [*rows, ("packages only here", listed(only.one, ""), listed(only.other, ""))]


def _said(value: Any, name: str) -> str:
    match value:
        case None:
            return "not yet" if name == "ending" else "unknown"
        case int() | float():
            return f"{value:,}"
    return str(value)


def _show_paths(shown: Screen, comparison: Comparison) -> None:
    from itertools import zip_longest

    paths = zip_longest(comparison.paths.one, comparison.paths.other, fillvalue="")
    shown.line("\nFrom there on:", "title")
    shown.table(("first", "second"), list(paths))
