"""What builds have left to be found again: images and environments, and which of them may go.

Only what codetape made is here. Whether something may go is worked out from facts alone, the same for
images and for environments.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol

from codetape.adapters.sandbox.environments import HALF, MARK
from codetape.adapters.sandbox.file_locks import locked


@dataclass(frozen=True, slots=True)
class Kept:
    """An image or an environment. `key` names its content: equal specs have equal keys.

    `used` is when it was last asked for. `size` is in bytes, of images without what they stand on;
    None: not to be known. `under` is the name of the image that it stands on. `held` says what uses it
    at the moment.
    """

    kind: Literal["image", "environment"]
    key: str
    name: str
    made: datetime
    used: datetime
    size: int | None
    python: str | None = None
    base: str | None = None
    under: str | None = None
    requirements: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


class Storeroom(Protocol):
    """A place where builds are kept. All methods raise SandboxBroken where it cannot be entered."""

    def kept(self) -> list[Kept]:
        """List what codetape made there."""
        ...

    def remove(self, kept: Kept) -> str:
        """Remove one; returns why it could not be removed, or nothing."""
        ...

    def close(self) -> None:
        """Free what was opened."""
        ...


def removable(kept: Iterable[Kept], now: datetime, unused: timedelta, age: timedelta) -> list[Kept]:
    """Return what nobody has asked for in `unused` and that was made `age` ago or earlier.

    In an order in which it can be removed: what stands on another one comes first. An image on which
    one stands that stays is itself to stay.
    """
    every = list(kept)
    going = [
        one for one in every if not one.held and now - one.used >= unused and now - one.made >= age
    ]
    while True:
        names = {id(one) for one in going}
        bearing = {one.under for one in every if id(one) not in names}
        staying = [one for one in going if one.name in bearing]
        if not staying:
            return sorted(going, key=lambda one: -_height(one, every))
        going = [one for one in going if one not in staying]


def _height(kept: Kept, every: list[Kept]) -> int:
    """Return on how many others one stands."""
    below = next((one for one in every if one.name == kept.under), None)
    return 0 if below is None else 1 + _height(below, every)


def find(kept: Iterable[Kept], wanted: str) -> list[Kept]:
    """Return those that a name or the beginning of a key means."""
    return [one for one in kept if wanted in (one.name, one.key) or one.key.startswith(wanted)]


class EnvironmentRoom:
    """The environments below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def kept(self) -> list[Kept]:
        """List those that are whole."""
        if not self._folder.is_dir():
            return []
        found = (_environment(path) for path in sorted(self._folder.iterdir()))
        return [one for one in found if one is not None]

    def remove(self, kept: Kept) -> str:
        """Move one out of sight, so that nobody ever sees half of it, then delete it."""
        with _locked(self._folder, kept.key) as ours:
            if not ours:
                return "it is in use"
            try:
                aside = self._folder / f"{HALF}{kept.key}.pruned"
                (self._folder / kept.key).rename(aside)
                shutil.rmtree(aside)
            except OSError as error:
                return str(error)
        return ""

    def close(self) -> None:
        """Nothing was opened."""


@contextlib.contextmanager
def _locked(folder: Path, key: str) -> Iterator[bool]:
    """Hold the lock of a key, if nobody else does; whoever runs code in one shares it."""
    with (folder / f"{key}.lock").open("w") as lock:
        yield locked(lock.fileno())


def _environment(path: Path) -> Kept | None:
    """Return what an environment says of itself; None for what is none, or not whole."""
    if path.name.startswith(HALF):
        return None
    try:
        facts = json.loads((path / MARK).read_text())
        used = os.stat(path / MARK).st_mtime
        made = os.stat(path / "pyvenv.cfg").st_mtime
    except (OSError, ValueError):
        return None
    with _locked(path.parent, path.name) as ours:
        held = () if ours else ("a run or a build",)
    return Kept(
        kind="environment",
        key=path.name,
        name=str(path),
        made=datetime.fromtimestamp(made, UTC),
        used=datetime.fromtimestamp(used, UTC),
        size=_size(path),
        python=facts.get("python"),
        base=facts.get("prefix"),
        requirements=tuple(facts.get("requirements", ())),
        held=held,
    )


def _size(path: Path) -> int:
    """Return the bytes of an environment; files that it shares with a cache count, too."""
    return sum(entry.lstat().st_blocks * 512 for entry in path.rglob("*") if not entry.is_symlink())
