"""`codetape resume`: go on from the end of a tape."""

from __future__ import annotations

import click

from codetape.cli.stores import reading, session_argument, store_option


@click.command()
@session_argument
@store_option
def command(session: str, store: str | None) -> int:
    """Go on with a session that was interrupted, from the end of its tape.

    What is on the tape is not asked for again. SESSION is a prefix of its id, or last.

    Example: codetape resume last
    """
    from codetape.agent import AutoCoderAgent
    from codetape.cli import report
    from codetape.cli.exits import code_of
    from codetape.cli.screen import screen
    from codetape.cli.stores import find_session
    from codetape.cli.watching import Watch

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
        result = watch.run(lambda: agent.resume.aio(found))
        if watch.session is None:
            shown.line("The session was done already; nothing was asked.", "dim")
        report.show_result(shown, result)
        report.show_next_steps(shown, result, store)
    return code_of(result.folded)
