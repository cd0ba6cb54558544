"""`codetape replay`: hold a tape against today's rules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypedDict, cast

import click

from codetape.cli.exits import NOT_PASSED, PASSED, USAGE, Failed
from codetape.cli.progress import progress
from codetape.cli.stores import (
    EVENT,
    allow_option,
    find_session,
    reading,
    reading_tape,
    store_option,
)

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.engine.ports import EventStore
    from codetape.engine.tape import Source
    from codetape.halflive import Live
    from codetape.replay.drift import Report
    from codetape.result import Result


class Options(TypedDict):
    """How strictly tapes are compared; see `replay.replayer.replay`."""

    keep_going: bool
    ignore_prompts: bool


@click.command()
@click.argument("session", required=False)
@click.option("--all", "every", is_flag=True, help="Replay all sessions of the store.")
@click.option("--keep-going", is_flag=True, help="Report all differences, not only the first.")
@click.option("--ignore", type=click.Choice(["prompts"]), help="Compare the path only.")
@click.option("--to", type=EVENT, metavar="N", help="Show the session as it was after event N.")
@click.option(
    "--live",
    type=click.Choice(["sandbox", "model"]),
    help="Run the session again: this half is real, the other half comes from the tape.",
)
@click.option("--step", is_flag=True, help="Walk over the tape, event by event.")
@allow_option
@store_option
def command(
    session: str | None,
    ignore: str | None,
    to: int | None,
    live: Live | None,
    store: str | None,
    allow: tuple[str, ...],
    *,
    every: bool,
    keep_going: bool,
    step: bool,
) -> int:
    """Fold a tape with today's rules and report the first event that would differ.

    No model is asked and nothing is run. For each event it compares where it leads, what is asked
    for (prompt and schema, to the byte) and what is made of the answer. Ends with 0 if the two are
    identical, else with 1. How the session itself ended is another matter. SESSION is a prefix of
    its id, or last, or a FILE.jsonl of `codetape export`.

    \b
    Examples:
      codetape replay last
      codetape replay last --keep-going --ignore prompts
      codetape replay last --to 7       what was known after event 7
      codetape replay last --step       next, back, jump, code, prompts, answers
      codetape replay --all
      codetape replay last --live sandbox    recorded answers, real test runs
    """
    if every == bool(session):
        raise click.UsageError("give a SESSION, or --all", click.get_current_context())
    walk = "--step" if step else "--to"
    _check_modes({"--all": every, "--live": bool(live), walk: step or to is not None})
    options: Options = {"keep_going": keep_going, "ignore_prompts": ignore == "prompts"}
    if session is None:
        return _all(store, options)
    if live:
        return _live(session, live, store, allow)
    with reading_tape(session, store) as (source, found):
        if step:
            return _step(source, found, 1 if to is None else to, options)
        if to is not None:
            return _to(source, found, to)
        return _one(source, found, options)


def _check_modes(modes: dict[str, bool]) -> None:
    """Refuse what cannot be done together."""
    asked = [name for name, given in modes.items() if given]
    if len(asked) > 1:
        said = f"{' and '.join(asked)} do not go together"
        raise click.UsageError(said, click.get_current_context())


def _one(source: Source, session: str, options: Options) -> int:
    from codetape.cli.screen import screen
    from codetape.replay.replayer import replay

    report = replay(source, session, **options)
    _show(screen(), report)
    return PASSED if report.identical else NOT_PASSED


def _show(shown: Screen, report: Report) -> None:
    from codetape.cli.text import counted

    if report.identical:
        said = f"identical: {counted(report.events, 'event')}, rules {report.rules}"
        shown.line(f"Session {report.session} is {said}.", "good")
    for difference in report.differences:
        shown.line(f"Session {report.session} differs at {difference}", "bad")
        if difference.diff:
            shown.code(difference.diff, "diff")
    if report.ending:
        shown.line(f"The session itself: {report.ending.reason.removesuffix('.')}.", "dim")


def _all(store: str | None, options: Options) -> int:
    from codetape.cli.screen import screen
    from codetape.replay.replayer import replay

    with reading(store) as opened:
        rows = progress(opened.sessions(), "replayed")
        reports = [replay(opened, row.id, **options) for row in rows]
    if not reports:
        screen().line("The store has no session yet.")
        return PASSED
    screen().table(("session", "events", "ended", "replay"), [_row(report) for report in reports])
    differing = sum(not report.identical for report in reports)
    if differing:
        screen().line(f"{differing:,} of {len(reports):,} are not identical.", "bad")
    return NOT_PASSED if differing else PASSED


def _row(report: Report) -> tuple[str, str, str, str]:
    ended = "not yet"
    if report.ending:
        ended = str(report.ending.failure or "passed")
    found = "; ".join(map(str, report.differences)) or "identical"
    return report.session, str(report.events), ended, found


def _to(source: Source, session: str, at: int) -> int:
    from codetape.cli.screen import screen
    from codetape.cli.show import show_at

    show_at(screen(), source, session, at)
    return PASSED


def _step(source: Source, session: str, at: int, options: Options) -> int:
    from codetape.cli.screen import screen
    from codetape.cli.walking import Walk
    from codetape.replay.reading import open_tape
    from codetape.replay.replayer import replay

    tape = open_tape(source, session)
    try:
        tape[at]
    except IndexError as error:
        raise Failed(str(error), USAGE) from error
    report = replay(source, session, keep_going=True, ignore_prompts=options["ignore_prompts"])
    Walk(screen(), tape, report.differences, at).go(sys.stdin)
    return PASSED


def _live(session: str, live: Live, store: str | None, allow: tuple[str, ...]) -> int:
    from codetape.authority import read_grants
    from codetape.cli import diff
    from codetape.cli.screen import screen
    from codetape.cli.watching import Watch
    from codetape.halflive import half_live
    from codetape.replay.compare import compare
    from codetape.replay.reading import open_tape
    from codetape.result import Result

    shown = screen()
    watch = Watch(shown, store)
    with reading(store) as opened:
        tape = open_tape(opened, find_session(opened, session))

        async def work() -> Result:
            again, _ = await half_live(
                tape,
                live,
                on_event=watch.on_event,
                on_engine=watch.on_engine,
                authority=read_grants(allow),
            )
            return Result.of(again[-1].session, cast("EventStore", again.source))

        result = watch.run(work)
        comparison = compare(tape, open_tape(result.store, result.session))
        shown.line(_ended(result), "dim")
        diff.show(shown, comparison)
    return NOT_PASSED if comparison.parting else PASSED


def _ended(result: Result) -> str:
    ending = result.folded.ending
    said = f"Ended: {ending.reason}" if ending else f"Not ended: {result.error}"
    return f"{said.removesuffix('.')}."
