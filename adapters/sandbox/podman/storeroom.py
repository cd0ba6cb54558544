"""The images that codetape made, as they are kept in podman: listed, explained, removed."""

from __future__ import annotations

import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codetape.adapters.sandbox.environments import default_folder
from codetape.adapters.sandbox.file_locks import locked
from codetape.adapters.sandbox.kept import Kept
from codetape.adapters.sandbox.podman.service import Missing, Service, quoted
from codetape.engine.ports import SandboxBroken

KEY = "codetape.key"  # label of an image: its key
REPOSITORY = "localhost/codetape"


class Uses:
    """When each image was last asked for, which podman does not know: an empty file for each key.

    The file is a lock, too: of all that ask for an image at once, in whatever processes, one builds.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or default_folder().parent / "images"

    def note(self, keys: Iterable[str]) -> None:
        """Write down that these are used. Where that cannot be done, they count as unused."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for key in keys:
                (self._folder / key).touch()
        except OSError:
            return

    @contextlib.contextmanager
    def alone(self, key: str, wait: Callable[[], None]) -> Iterator[None]:
        """Hold the right to build; `wait` is called until it is to be had, and may raise."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = (self._folder / f"{key}.lock").open("w")
        except OSError:  # then equal images may be made twice, and one replaces the other
            yield
            return
        with lock:
            while not locked(lock.fileno()):
                wait()
            yield

    def last(self, key: str) -> float:
        """Return the moment of the last use; 0 if there was none."""
        try:
            return (self._folder / key).stat().st_mtime
        except OSError:
            return 0.0

    def forget(self, key: str) -> None:
        """Forget one that is gone."""
        for name in (key, f"{key}.lock"):
            (self._folder / name).unlink(missing_ok=True)


class ImageRoom:
    """The images of one podman; see adapters.sandbox.kept.Storeroom."""

    def __init__(
        self, environment: Mapping[str, str] = os.environ, uses: Uses | None = None
    ) -> None:
        self._service = Service(environment)
        self._uses = uses or Uses()

    def kept(self) -> list[Kept]:
        """List the images of ours."""
        every = self._service.get("/images/json", params={"all": "true"}).json() or []
        by_id = {each["Id"]: each for each in every}
        holders = self._holders()
        return [
            self._image(each, by_id.get(each.get("ParentId") or "", {}), holders[each["Id"]])
            for each in every
            if _name(each)
        ]

    def _holders(self) -> defaultdict[str, tuple[str, ...]]:
        """Return the containers of each image by its id, whoever has made them."""
        found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
        params = {"all": "true"}
        for each in self._service.get("/containers/json", params=params).json() or ():
            found[each["ImageID"]] += (f"container {each['Names'][0]}",)
        return found

    def _image(self, facts: dict[str, Any], below: dict[str, Any], held: tuple[str, ...]) -> Kept:
        labels = facts["Labels"]
        key, names = labels[KEY], tuple(labels.get("codetape.names", "").split())
        system = labels.get("codetape.stage") == "system"
        made = datetime.fromtimestamp(facts["Created"], UTC)
        # One that has lost its name is not found by builds any more.
        used = self._uses.last(key) if _name(facts) != facts["Id"] else 0.0
        return Kept(
            kind="image",
            key=key,
            name=_name(facts),
            made=made,
            used=max(made, datetime.fromtimestamp(used, UTC)),
            size=facts["Size"] - below["Size"] if below else None,
            python=labels.get("codetape.python"),
            base=labels.get("codetape.base"),
            under=(_name(below) if below else "") or None,
            requirements=() if system else names,
            system_packages=names if system else (),
            commands=_commands(labels.get("codetape.commands", "")),
            held=held,
        )

    def remove(self, kept: Kept) -> str:
        """Remove the name that codetape gave; the image goes with it unless others have named it."""
        try:
            self._service.delete(f"/images/{quoted(kept.name)}")
        except Missing:
            return ""
        except SandboxBroken as error:
            return error.failure.message
        self._uses.forget(kept.key)
        return ""

    def close(self) -> None:
        """Free the connection."""
        self._service.close()


def _name(facts: dict[str, Any]) -> str:
    """Return the name of an image of ours, its id if it has lost its name; nothing for others.

    Labels alone prove nothing: what others build on an image of ours has them, too.
    """
    key = (facts.get("Labels") or {}).get(KEY)
    ours = f"{REPOSITORY}:{key}"
    names = facts.get("Names") or ()
    if ours in names:
        return ours
    lost = not names and ours in (facts.get("History") or ())
    return str(facts["Id"]) if lost else ""


def _commands(label: str) -> tuple[str, ...]:
    """Read the commands of a label; podman 4 keeps the escapes of its own quotes in it."""
    for text in (label, f'"{label}"'):
        try:
            found = json.loads(text)
            return tuple(json.loads(found) if isinstance(found, str) else found)
        except (ValueError, TypeError):
            continue
    return ()
