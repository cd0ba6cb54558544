"""`codetape resume`: go on from the end of a tape."""

from __future__ import annotations

import click

from codetape.cli.budgets import budget_option
from codetape.cli.stores import reading, session_argument, store_option


@click.command()
@session_argument
@click.option("--allow", metavar="P", multiple=True, help="Install a package that it asks about.")
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
    """
    from codetape.agent import AutoCoderAgent
    from codetape.cli import report
    from codetape.cli.exits import code_of
    from codetape.cli.screen import screen
    from codetape.cli.stores import find_session
    from codetape.cli.watching import Watch
    from codetape.states.job import Budget

    shown = screen()
    watch = Watch(shown, store)
    with reading(store) as opened:
        found = find_session(opened, session)
        agent = AutoCoderAgent(
            model="as on the tape",
            store=opened,
            on_event=watch.on_event,
            on_engine=watch.on_engine,
        )
        more = Budget.model_validate(budget) if budget else None
        result = watch.run(lambda: agent.resume.aio(found, budget=more, allow=allow, deny=deny))
        if watch.session is None:
            shown.line("The session was done already; nothing was asked.", "dim")
        report.show_result(shown, result)
        report.show_next_steps(shown, result, store)
    return code_of(result.folded)
