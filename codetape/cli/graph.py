"""`codetape graph`: the table of the machine as a Mermaid diagram."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from codetape.cli.out import put

if TYPE_CHECKING:
    from codetape.states.machine import State

ANYWHERE = {"cancelled", "noted", "paused", "resumed"}
"""Events that happen in every state and would hide the others."""


@click.command()
@click.option("--all", "everything", is_flag=True, help="With what can happen in every state, too.")
def command(everything: bool) -> None:
    """Print the state machine as a Mermaid diagram, from the table that runs.

    An arrow is labelled with its events; a guard that must hold stands in brackets. Put the output
    into a Markdown file, in a block that is fenced as mermaid, or into mermaid.live.

    Example: codetape graph > machine.mmd
    """
    for line in mermaid(everything=everything):
        put(line)


def mermaid(*, everything: bool = False) -> Iterator[str]:
    """Yield the lines of the diagram: one arrow for each pair of states."""
    from codetape.states.autocoder import TABLE

    arrows: dict[tuple[State, State], list[str]] = {}
    for row in TABLE:
        if row.event in ANYWHERE and not everything:
            continue
        guards = f" [{', '.join(row.guard_names)}]" if row.guards else ""
        for source in row.sources:
            arrows.setdefault((source, row.dest), []).append(f"{row.event}{guards}")
    yield "stateDiagram-v2"
    yield "    [*] --> NeedsCode"
    for (source, dest), labels in arrows.items():
        yield f"    {source} --> {dest} : {'<br/>'.join(labels)}"
    yield "    Done --> [*]"
