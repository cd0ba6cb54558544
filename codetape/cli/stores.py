"""Finding the store and the session that a command is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from codetape.cli.exits import TAPE_FILE, USAGE, Failed

if TYPE_CHECKING:
    from codetape.engine.ports import EventStore
    from codetape.engine.tape import Source
    from codetape.replay.imports import TapeFile

SHORT = 8
"""So many characters of an id stand in a hint."""

EVENT = click.IntRange(min=1)
"""The number of an event; the lists of Python count from the end too, people do not."""

F = TypeVar("F", bound=Callable[..., Any])


def _named(_: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Refuse an empty name: a variable that is not set may not mean the usual store, and prune it."""
    if given is not None and not given.strip():
        raise click.BadParameter("it is empty", param=option)
    return given


def store_option(function: F) -> F:
    """Add --store."""
    return click.option(
        "--store",
        metavar="FILE",
        callback=_named,
        help="The file of the tapes.  [default: $CODETAPE_STORE, else ./codetape.db]",
    )(function)


def allow_option(function: F) -> F:
    """Add --allow."""
    return click.option(
        "--allow",
        metavar="G",
        multiple=True,
        help="Grant what a session from elsewhere may do here: sandbox=NAME, network, secrets=NAME, "
        "files, address, environment, image; all else is a package. Commas stand between grants.",
    )(function)


def session_argument(function: F) -> F:
    """Add the argument SESSION."""
    return click.argument("session")(function)


@contextmanager
def reading(given: str | None) -> Iterator[EventStore]:
    """Open the store for a command that looks at what is there; a missing file is not made."""
    from codetape.composition import store_path

    path = store_path(given)
    if not Path(path).exists():
        raise Failed(f"there is no store {path} yet; `codetape demo` makes one", USAGE)
    with writing(path) as store:
        yield store


@contextmanager
def writing(given: str | None) -> Iterator[EventStore]:
    """Open the store, which is made if there is none."""
    from codetape.composition import open_store, store_path

    store = open_store(store_path(given))
    try:
        yield store
    finally:
        store.close()


def find_session(store: EventStore, name: str) -> str:
    """Return the id for a unique prefix or `last`, the one with the newest event.

    Raises UnknownSession.
    """
    from codetape.tapes import find_session

    return find_session(store, name)


@contextmanager
def reading_tape(name: str, store: str | None) -> Iterator[tuple[Source, str]]:
    """Find the tape of a session, or of a file that `codetape export` wrote: FILE.jsonl.

    Yields where it is read from, and its session. Raises UnknownSession, BadTapeFile.
    """
    if name.endswith(TAPE_FILE):
        file = read_file(Path(name))
        yield file, file.session
        return
    with reading(store) as opened:
        yield opened, find_session(opened, name)


def read_file(path: Path) -> TapeFile:
    """Read a file that `codetape export` wrote. Raises BadTapeFile, and Failed if it cannot be read."""
    from codetape.replay.imports import read_tape_file

    try:
        return read_tape_file(path)
    except OSError as error:
        raise Failed(f"cannot read {path}: {error.strerror}", USAGE) from error


def short(session: str) -> str:
    """Return the id as hints give it: as a prefix that hardly ever fits a second session."""
    return session[:SHORT]


def command_line(
    command: str,
    operands: Sequence[str] = (),
    options: Sequence[str] = (),
    *,
    store: str | None = None,
) -> str:
    """Return a command as one can type it here: by the path of codetape if it is on no search path.

    Each word is quoted for the shell; an operand that looks like an option stands behind --.
    """
    import shlex

    words = [*operands, *options, *(["--store", store] if store else [])]
    if any(operand.startswith("-") for operand in operands):
        words = [*words[len(operands) :], "--", *operands]
    return shlex.join([_program(), command, *words])


def _program() -> str:
    import os
    import shutil
    import sys

    called = sys.argv[0]
    if shutil.which("codetape") or os.path.basename(called) != "codetape":
        return "codetape"
    return os.path.relpath(called)
