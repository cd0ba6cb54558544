"""`codetape prune`: delete sessions that nobody needs any more."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from codetape.cli.exits import PASSED, USAGE, Failed
from codetape.cli.progress import progress
from codetape.cli.stores import command_line, reading, store_option

if TYPE_CHECKING:
    from pathlib import Path

    from codetape.cli.screen import Screen
    from codetape.engine.ports import EventStore
    from codetape.pruning import Chosen


def _age(_: click.Context, option: click.Parameter, given: str | None) -> timedelta | None:
    from codetape.pruning import age

    try:
        return None if given is None else age(given)
    except ValueError as error:
        raise click.BadParameter(str(error), param=option) from None


@click.command()
@click.option(
    "--older-than", metavar="AGE", callback=_age, help="Not changed for 90m, 12h, 30d, 8w."
)
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Not the N that changed last.")
@click.option("--state", "states", metavar="STATE", multiple=True, help="In this state, as Done.")
@click.option("--dry-run", is_flag=True, help="Only list what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def command(
    older_than: timedelta | None,
    keep: int | None,
    states: tuple[str, ...],
    store: str | None,
    *,
    dry_run: bool,
    yes: bool,
) -> int:
    """Delete sessions for good: those that all the given options are true of.

    A session that is running stays, and one that a fork needs which stays. Deleted texts are
    overwritten; `codetape compact` then makes the file smaller. Others may write meanwhile, and what
    was interrupted goes on at the next time.

    \b
    Examples:
      codetape prune --older-than 30d --state Done --dry-run
      codetape prune --keep 100 --yes
    """
    from codetape.cli.screen import screen
    from codetape.pruning import choose

    if older_than is None and keep is None and not states:
        raise click.UsageError(
            "say what may go: --older-than, --keep or --state", click.get_current_context()
        )
    _check_states(states)
    shown = screen()
    with reading(store) as opened:
        rows = opened.sessions()
        chosen = choose(rows, datetime.now(UTC), older_than=older_than, keep=keep, states=states)
        _show(shown, chosen)
        if dry_run or not chosen.gone:
            return PASSED
        _confirm(len(chosen.gone), yes=yes)
        gone = [row.id for row in chosen.gone]
        folders = _own_folders(opened, gone)
        _prune(store, gone)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    shown.line(f"{len(chosen.gone):,} deleted.", "good")
    shown.fields([("free the space", command_line("compact", store=store))])
    return PASSED


def _check_states(states: tuple[str, ...]) -> None:
    from codetape.states.machine import State

    known = [state.value for state in State]
    for state in states:
        if state not in known:
            raise Failed(f"--state {state}: there is no such state; {', '.join(known)}", USAGE)


def _show(shown: Screen, chosen: Chosen) -> None:
    from codetape.cli.sessions import LONGEST_NAME, ago
    from codetape.cli.text import counted, one_line

    if chosen.gone:
        rows = [
            (r.id, one_line(r.name, LONGEST_NAME), r.state, str(r.seq), ago(r.updated_at))
            for r in chosen.gone
        ]
        shown.table(("to delete", "name", "state", "events", "changed"), rows, ("events",))
    else:
        shown.line("Nothing is to be deleted.")
    for row, reason in chosen.kept:
        shown.line(f"{row.id} stays: {reason}", "dim")
    if chosen.gone:
        shown.line(counted(len(chosen.gone), "session"))


def _confirm(count: int, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failed(f"nobody can be asked whether to delete {count}: add --yes", USAGE)
    click.confirm("Delete for good?", abort=True)


def _prune(store: str | None, sessions: list[str]) -> None:
    from contextlib import closing

    from codetape.composition import open_file, store_path

    with closing(open_file(store_path(store))) as file:
        file.prune(progress(sessions, "deleted"))


def _own_folders(store: EventStore, sessions: list[str]) -> list[Path]:
    """Return the folders with data that sessions were given, and with what came out of their runs.

    A folder goes by the session's id: a session of others, with an id of this user's, has none.
    """
    from codetape.composition import session_folder
    from codetape.tapes import opened_here

    found = [(name, session_folder(name)) for name in sessions]
    return [folder for name, folder in found if folder.is_dir() and opened_here(store, name)]
