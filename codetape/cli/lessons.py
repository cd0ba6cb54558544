"""`codetape lessons`: what was learned from sessions; correcting it, and forgetting it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from codetape.cli.exits import PASSED, USAGE, Failed
from codetape.cli.out import in_json, put
from codetape.cli.sessions import ago
from codetape.cli.stores import command_line, reading, short, store_option
from codetape.cli.text import counted

if TYPE_CHECKING:
    from codetape.adapters.store.library import Lesson, Library

LANES = ("autocoder", "make_tool")
HEADERS = ("id", "lane", "said", "used", "learned", "lesson")

lane_option = click.option(
    "--lane",
    type=click.Choice(LANES),
    help="Only those of `generate` (autocoder) or of `tool` (make_tool).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group(invoke_without_command=True)
@lane_option
@json_option
@store_option
@click.pass_context
def command(context: click.Context, lane: str | None, as_json: bool, store: str | None) -> int:
    """List, correct and forget what was learned from sessions.

    A lesson comes from a tape (which error was repaired by what) or from a person (`codetape
    feedback`). A new session is told the five that fit its request best; those that were used often,
    are fresh or were praised go first. No model is asked.

    \b
    Examples:
      codetape lessons
      codetape lessons --lane make_tool
      codetape lessons edit 3 "Read large logs line by line."
      codetape lessons forget 3
    """
    context.obj = store
    if context.invoked_subcommand is None:
        return _list(lane, as_json, store)
    if lane or as_json:
        raise click.UsageError(f"say it behind: codetape lessons {context.invoked_subcommand} …")
    return PASSED


@command.command("list")
@lane_option
@json_option
@store_option
@click.pass_obj
def list_(before: str | None, lane: str | None, as_json: bool, store: str | None) -> int:
    """List the lessons, the newest last.

    USED counts the sessions that were told a lesson. SAID is a person's verdict on the session that it
    comes from; the words of a person are marked as a note.

    Example: codetape lessons list --lane autocoder --json
    """
    return _list(lane, as_json, store or before)


@command.command("edit")
@click.argument("id", type=int)
@click.argument("text")
@store_option
@click.pass_obj
def edit(before: str | None, id: int, text: str, store: str | None) -> int:
    """Give a lesson another text.

    ID is its number in the list. The old text is overwritten in the file.

    Example: codetape lessons edit 3 "Read large logs line by line."
    """
    from codetape.cli.screen import screen

    with _library(store or before) as library:
        library.edit(id, text)
    screen().line(f"Lesson {id} is changed.")
    return PASSED


@command.command("forget")
@click.argument("id", type=int)
@store_option
@click.pass_obj
def forget(before: str | None, id: int, store: str | None) -> int:
    """Forget a lesson for good.

    ID is its number in the list. Its text is overwritten in the file; but a session that was told it
    has it on its tape, and so has the session that it comes from.

    Example: codetape lessons forget 3
    """
    from codetape.cli.screen import screen

    with _library(store or before) as library:
        library.forget(id)
    screen().line(f"Lesson {id} is forgotten.")
    return PASSED


@contextmanager
def _library(store: str | None) -> Iterator[Library]:
    from codetape.adapters.store.library import UnknownLesson
    from codetape.learning import library_of

    try:
        with reading(store) as opened, library_of(opened) as library:
            yield library
    except UnknownLesson as error:
        raise Failed(
            f"{error}; `{command_line('lessons', store=store)}` lists them", USAGE
        ) from None
    except ValueError as error:
        raise Failed(str(error), USAGE) from None


def _list(lane: str | None, as_json: bool, store: str | None) -> int:
    from codetape.cli.screen import screen

    with _library(store) as library:
        lessons = library.lessons(lane)
    if as_json:
        facts = [asdict(lesson) for lesson in lessons]
        put(in_json({"lessons": facts}))
        return PASSED
    shown = screen()
    if not lessons:
        shown.line("Nothing was learned yet: see `codetape feedback --help`.")
        return PASSED
    shown.table(HEADERS, map(_row, lessons), ("used", "learned"))
    shown.line(f"{counted(len(lessons), 'lesson')}.", "dim")
    return PASSED


def _row(lesson: Lesson) -> tuple[str, ...]:
    said = {None: "", True: "good", False: "bad"}[lesson.good]
    text = f"(note) {lesson.text}" if lesson.note else lesson.text
    used = str(lesson.uses)
    return (
        str(lesson.id),
        lesson.lane,
        said,
        used,
        ago(lesson.at),
        f"{text} [{short(lesson.session)}]",
    )
