"""`codetape resume`: go on from the end of a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from codetape.cli.budgets import budget_option
from codetape.cli.stores import reading, session_argument, store_option

if TYPE_CHECKING:
    from codetape.authority import Authority
    from codetape.cli.watching import Watch
    from codetape.engine.ports import EventStore
    from codetape.states.events import Resumed
    from codetape.states.session import Session

AS_BEFORE = "as on the tape"
"""Stands for the model of a session that goes on: its own is on the tape."""


@click.command()
@session_argument
@click.option(
    "--allow",
    metavar="P",
    multiple=True,
    help="Install a package that it asks about, or grant what a session from elsewhere may do here: "
    "sandbox=NAME, network, secrets=NAME, files, address, environment, image.",
)
@click.option("--deny", metavar="P", multiple=True, help="Do without it. Both may be repeated.")
@budget_option
@store_option
def command(
    session: str,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    budget: dict[str, float],
    store: str | None,
) -> int:
    """Go on with a session that was interrupted or paused, from the end of its tape.

    What is on the tape is not asked for again. SESSION is a prefix of its id, or last. A budget
    replaces the one that was spent.

    \b
    Examples:
      codetape resume last
      codetape resume last --budget usd=2.50
      codetape resume last --allow polars --deny left-pad
      codetape resume last --allow network,secrets=DB_PASSWORD    it was imported
    """
    from codetape.authority import read_grants
    from codetape.cli.exits import code_of
    from codetape.cli.screen import screen
    from codetape.cli.watching import Watch
    from codetape.engines import decision, standing
    from codetape.states.job import Budget
    from codetape.states.tools.session import ToolSession

    shown = screen()
    watch = Watch(shown, store)
    with reading(store) as opened:
        before = standing(opened, session).session
        more = Budget.model_validate(budget) if budget else None
        authority = read_grants(allow)
        resumed = decision(more, authority.packages, deny)
        go_on = _tool if isinstance(before, ToolSession) else _code
        after = go_on(watch, opened, before.id, _options(resumed, authority), store)
    return code_of(after)


def _code(
    watch: Watch, opened: EventStore, session: str, options: dict[str, Any], store: str | None
) -> Session:
    from codetape.agent import AutoCoderAgent
    from codetape.cli import report

    agent = AutoCoderAgent(
        model=AS_BEFORE, store=opened, on_event=watch.on_event, on_engine=watch.on_engine
    )
    result = watch.run(lambda: agent.resume.aio(session, **options))
    _say_if_done(watch)
    report.show_result(watch.screen, result)
    report.show_next_steps(watch.screen, result, store)
    return result.folded


def _tool(
    watch: Watch, opened: EventStore, session: str, options: dict[str, Any], store: str | None
) -> Session:
    from codetape.cli import tool_report
    from codetape.toolmaker import ToolMaker

    maker = ToolMaker(
        model=AS_BEFORE,
        store=opened,
        on_event=lambda progress: watch.on_event(progress.recorded, progress.session),
        on_engine=watch.on_engine,
    )
    tool = watch.run(lambda: maker.resume.aio(session, **options))
    _say_if_done(watch)
    tool_report.show(watch.screen, tool, store)
    return tool.folded


def _options(resumed: Resumed, authority: Authority) -> dict[str, Any]:
    return {
        "budget": resumed.budget,
        "allow": resumed.allow,
        "deny": resumed.deny,
        "authority": authority,
    }


def _say_if_done(watch: Watch) -> None:
    if watch.session is None:
        watch.screen.line("The session was done already; nothing was asked.", "dim")
