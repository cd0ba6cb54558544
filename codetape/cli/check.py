"""`codetape check`: is a table of rules sound, and which of its rows do real sessions take?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from codetape.cli.exits import NOT_PASSED, PASSED, USAGE, Failed
from codetape.cli.stores import reading

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.states.workflow import Workflow
    from codetape.testing.findings import Exploration


@click.command()
@click.argument("workflows", nargs=-1, metavar="[MODULE:WORKFLOW]...")
@click.option("--store", metavar="FILE", help="Also count the rows that its sessions took.")
@click.option("--orders", is_flag=True, help="Also list the rows whose order decides.")
def command(workflows: tuple[str, ...], store: str | None, *, orders: bool) -> int:
    """Walk over everything that a workflow's table allows, and say what is wrong with it.

    Real sessions are driven with every kind of answer, build and run, without a model or a sandbox.
    Without an argument the workflows of codetape are checked; MODULE:WORKFLOW names a Workflow of
    your own, as in `my_package.rules:REVIEWED`. What a model says to kinds of call of your own comes
    from their JSON schema, or from a dictionary BODIES in the same module: kind to a list of answers.
    Ends with 1 if anything is found.

    \b
    What is found:
      state      a state that no event leads to
      row        a row that is never taken
      behind     a row that an earlier row always takes the place of
      refused    an event that happens where the table has no row for it
      dead end   a session that waits for nothing and is not done
      endless    a cycle that no counter ends
      fault      rules that raise an error

    \b
    Examples:
      codetape check
      codetape check autocoder --orders
      codetape check my_package.rules:REVIEWED
      codetape check --store codetape.db
    """
    from codetape.cli.screen import screen
    from codetape.testing.exploring import explore

    shown = screen()
    every = [_found(name) for name in workflows] or _built_in()
    results = []
    for workflow, bodies in every:
        found = explore(workflow, bodies=bodies)
        results.append(found)
        _show(shown, found, orders=orders)
        if store:
            _show_coverage(shown, workflow, store)
    return PASSED if all(found.fine for found in results) else NOT_PASSED


def _built_in() -> list[tuple[Workflow, dict[str, list[object]]]]:
    from codetape.states.workflow import WORKFLOWS

    return [(workflow, {}) for workflow in WORKFLOWS]


def _found(name: str) -> tuple[Workflow, dict[str, list[object]]]:
    """Import a workflow, from the folder that we stand in, too."""
    from codetape.own import find

    if built_in := [found for found in _built_in() if found[0].name == name]:
        return built_in[0]
    if ":" not in name:
        names = ", ".join(workflow.name for workflow, _ in _built_in())
        raise Failed(f"{name} is none of {names}; your own are MODULE:WORKFLOW", USAGE)
    try:
        workflow, home = find(name)
    except ValueError as error:
        raise Failed(str(error), USAGE) from error
    return workflow, getattr(home, "BODIES", {})


def _show(shown: Screen, found: Exploration, *, orders: bool) -> None:
    from codetape.cli.text import counted

    rows = len({place.number for place in found.taken})
    walked = f"{counted(found.sessions, 'kind')} of session, {counted(found.events, 'event')}"
    shown.line(f"{found.workflow}: {counted(rows, 'row')}, {walked} tried.", "dim")
    shown.line(f"The longest way to Done that was seen has {found.longest} events.", "dim")
    shown.line(f"Counters that guards read: {', '.join(found.counters) or 'none'}.", "dim")
    if found.left:
        shown.line(f"{found.left:,} kinds of session were met and not followed.", "dim")
    if orders and found.orders:
        pairs = [(f"{o.first}", f"{o.second}", f"{o.times:,}") for o in found.orders]
        shown.table(("this row comes before", "which holds at the same time", "times"), pairs)
    if found.fine:
        shown.line(f"{found.workflow}: nothing is wrong.", "good")
        return
    shown.table(("found", "where", "what"), [(f.kind, f.where, f.says) for f in found.findings])
    shown.line(f"{found.workflow}: {counted(len(found.findings), 'finding')}.", "bad")


def _show_coverage(shown: Screen, workflow: Workflow, store: str) -> None:
    from codetape.cli.text import counted
    from codetape.testing.coverage import coverage

    with reading(store) as opened:
        mine = [row.id for row in opened.sessions() if row.workflow == workflow.name]
        taken = coverage(workflow, opened, mine)
    rows = [(str(place.number), str(place), f"{times:,}") for place, times in taken.items()]
    shown.table(("row", "in the table", "taken"), rows)
    reached = sum(times > 0 for times in taken.values())
    who = counted(len(mine), "session has", "sessions have")
    shown.line(f"{who} taken {reached} of {len(rows)} rows.", "dim")
