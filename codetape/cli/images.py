"""`codetape images`: what builds have left here to be found again, why, and what of it may go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from codetape.cli.exits import INFRASTRUCTURE, PASSED, USAGE, Failed
from codetape.cli.out import in_json, put
from codetape.cli.sessions import ago
from codetape.cli.text import counted, listed, one_line

if TYPE_CHECKING:
    from codetape.adapters.sandbox.kept import Kept, Storeroom

HEADERS = ("key", "kind", "python", "content", "size", "used", "held")
SPARE = ("python", "kind")

SHORT = 12
"""So many characters of a key stand in a list."""

F = TypeVar("F", bound=Callable[..., Any])
Rooms = dict[str, "Storeroom"]


def json_option(function: F) -> F:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(function)


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List, explain and remove the images and environments that codetape has built.

    A build is kept under a key of its content: base, Python, packages, commands. A session that asks
    for the same finds it again and does not build. What others have made is neither shown nor touched.

    \b
    Examples:
      codetape images
      codetape images explain 3f9ab2
      codetape images prune --dry-run
    """
    if context.invoked_subcommand is None:
        context.invoke(list_)


@command.command("list")
@json_option
def list_(as_json: bool = False) -> int:
    """List what is kept here, the one that was used last at the end.

    Podman's images and the environments of bubblewrap and process stand side by side. SIZE is what an
    image adds to the one below it. HELD says what uses it now.

    Example: codetape images list --json
    """
    with _rooms() as rooms:
        kept, missing = _everything(rooms)
    if as_json:
        return _print({"kept": [_facts(one) for one in kept], "missing": missing})
    _say_missing(missing)
    _table(kept)
    return PASSED


@command.command("explain")
@click.argument("image")
@json_option
def explain(image: str, as_json: bool) -> int:
    """Say what is in an IMAGE, what it stands on and what stands on it.

    IMAGE is the beginning of a key, or a whole name, as `codetape show` and the list have it.

    Example: codetape images explain 3f9ab2
    """
    from codetape.cli.screen import screen

    with _rooms() as rooms:
        kept, missing = _everything(rooms)
    found = _found(kept, image, missing)
    above = [one.key for one in kept if one.under == found.name]
    if as_json:
        return _print({**_facts(found), "bears": above})
    screen().fields(_explained(found, _below(found, kept), above))
    return PASSED


@command.command("prune")
@click.option(
    *("--unused", "unused"),
    type=click.FloatRange(min=0),
    default=30.0,
    metavar="DAYS",
    help="Keep what was asked for in the last DAYS.  [default: 30]",
)
@click.option(
    *("--age", "age"),
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="DAYS",
    help="Keep what was made in the last DAYS, too.  [default: 0]",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@json_option
def prune(unused: float, age: float, dry_run: bool, as_json: bool) -> int:
    """Remove builds that nobody has asked for in a while.

    What is in use stays, and so does an image on which one stands that stays. A session that needs
    again what is gone builds it again. Ends with 3 if something could not be removed.

    Example: codetape images prune --unused 7 --dry-run
    """
    from codetape.adapters.sandbox.kept import removable

    with _rooms() as rooms:
        kept, missing = _everything(rooms)
        going = removable(kept, datetime.now(UTC), timedelta(unused), timedelta(age))
        failed = {} if dry_run else _removed(rooms, going)
    gone = [one for one in going if one.name not in failed]
    if as_json:
        facts = {"removed": [_facts(one) for one in gone], "failed": failed, "missing": missing}
        _print({**facts, "dry_run": dry_run})
    else:
        _say_missing(missing)
        _tell(gone, failed, dry_run)
    return INFRASTRUCTURE if failed else PASSED


@contextmanager
def _rooms() -> Iterator[Rooms]:
    from codetape.composition import storerooms

    rooms = storerooms()
    try:
        yield rooms
    finally:
        for room in rooms.values():
            room.close()


def _everything(rooms: Rooms) -> tuple[list[Kept], dict[str, str]]:
    """Return what is kept, and why some rooms could not be looked into."""
    from codetape.engine.ports import SandboxBroken

    kept: list[Kept] = []
    missing: dict[str, str] = {}
    for name, room in rooms.items():
        try:
            kept += room.kept()
        except SandboxBroken as error:
            missing[name] = error.failure.message
    return sorted(kept, key=lambda one: one.used), missing


def _removed(rooms: Rooms, going: Iterable[Kept]) -> dict[str, str]:
    """Remove them in order; returns what could not be removed, with the reason."""
    by_kind = {"image": rooms["podman"], "environment": rooms["environments"]}
    tried = {one.name: by_kind[one.kind].remove(one) for one in going}
    return {name: reason for name, reason in tried.items() if reason}


def _found(kept: list[Kept], image: str, missing: dict[str, str]) -> Kept:
    """Return the one that is meant. Raises Failed."""
    from codetape.adapters.sandbox.kept import find

    found = find(kept, image)
    if len({one.key for one in found}) > 1:
        keys = listed(tuple(one.key[:SHORT] for one in found))
        raise Failed(f"{image} could be {keys}: give more of the key", USAGE)
    if not found:
        unseen = "".join(f"; {name} was not looked into: {why}" for name, why in missing.items())
        raise Failed(f"codetape has made no {image}; `codetape images` lists all{unseen}", USAGE)
    return found[0]


def _below(kept: Kept, every: list[Kept]) -> list[Kept]:
    """Return what it stands on, the nearest first."""
    names = {one.name: one for one in every}
    found = []
    while kept.under in names:
        kept = names[kept.under]
        found.append(kept)
    return found


def _explained(kept: Kept, below: list[Kept], above: list[str]) -> list[tuple[str, str]]:
    system = [name for one in (kept, *below) for name in one.system_packages]
    what = "an image of podman" if kept.kind == "image" else "an environment"
    return [
        ("what", f"{what}, for every spec with the same content"),
        ("key", kept.key),
        ("name", kept.name),
        ("python", kept.python or ""),
        ("base", kept.base or ""),
        ("packages", listed(kept.requirements, "")),
        ("system", listed(system, "")),
        ("commands", "; ".join(one_line(each) for each in kept.commands)),
        ("size", _size(kept.size) + (" above what it stands on" if below else "")),
        ("made", ago(kept.made.isoformat())),
        ("used", ago(kept.used.isoformat())),
        ("stands on", listed([one.key[:SHORT] for one in below], "")),
        ("bears", listed([key[:SHORT] for key in above], "")),
        ("held by", listed(kept.held, "")),
    ]


def _table(kept: list[Kept]) -> None:
    from codetape.cli.screen import screen

    if not kept:
        screen().line("Nothing is kept: no session has built anything here.")
        return
    screen().table(HEADERS, [_row(one) for one in kept], SPARE)
    total = sum(one.size or 0 for one in kept)
    screen().line(f"\n{counted(len(kept), 'build')}, {_size(total)} in all.")


def _row(kept: Kept) -> tuple[str, ...]:
    size, held = _size(kept.size), "yes" if kept.held else ""
    used = ago(kept.used.isoformat())
    return (kept.key[:SHORT], kept.kind, kept.python or "", _content(kept), size, used, held)


def _content(kept: Kept) -> str:
    words = [*kept.requirements, *kept.system_packages]
    words += [counted(len(kept.commands), "command")] if kept.commands else []
    return one_line(" ".join(words) or "(nothing but Python)", 40)


def _tell(gone: list[Kept], failed: dict[str, str], dry_run: bool) -> None:
    from codetape.cli.screen import screen

    if not gone and not failed:
        screen().line("Nothing is to be removed.")
        return
    screen().table(HEADERS, map(_row, gone), SPARE)
    for name, reason in failed.items():
        screen().line(f"{name} stays: {reason}", "bad")
    verb = "would be removed" if dry_run else "removed"
    total = _size(sum(one.size or 0 for one in gone))
    screen().line(f"\n{counted(len(gone), 'build')} {verb}, {total} in all.")


def _say_missing(missing: dict[str, str]) -> None:
    for name, reason in missing.items():
        put(f"{name} was not looked into: {one_line(reason)}", error=True)


def _size(size: int | None) -> str:
    """Return a size as people say it; empty if it is unknown."""
    if size is None:
        return ""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _facts(kept: Kept) -> dict[str, Any]:
    return {**asdict(kept), "made": kept.made.isoformat(), "used": kept.used.isoformat()}


def _print(facts: dict[str, Any]) -> int:
    put(in_json(facts))
    return PASSED
