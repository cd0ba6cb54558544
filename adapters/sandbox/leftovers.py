"""Folders of ours for a while, and what a process that was killed has left of them.

Each folder says whose it is in a file that only we write: owner, session and start. A later process
finds the folders whose owner is gone, ends what still runs in them, and removes them. It leaves alone
what belongs to another user or to a living process, and names what it cannot tell.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetape.adapters.owner import alive, current_owner, readable
from codetape.adapters.sandbox.files import remove
from codetape.adapters.sandbox.trees import kill_marked

PREFIX = "codetape-run-"
FACTS = "owner.json"
GROUP = "codetape-"  # how the names of our control groups begin
YOUNG = 60.0  # seconds in which a folder may have no owner in it
ENDING = 5.0  # seconds in which the processes of a group must be gone

_log = logging.getLogger("codetape.sandbox")


@dataclass(frozen=True, slots=True)
class Left:
    """A folder that was found. `living` is None where that cannot be told from here."""

    folder: Path
    owner: str
    living: bool | None
    groups: tuple[Path, ...] = ()


@contextlib.contextmanager
def scratch(session: str) -> Iterator[Path]:
    """Make a folder that is ours, and remove it at the end."""
    folder = make(session)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):  # what cannot be removed does not spoil the outcome
            remove(folder)


def make(session: str) -> Path:
    """Make a folder that is ours; the caller removes it."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    note(folder, session)
    return folder


def note(folder: Path, session: str, groups: Iterable[Path] = ()) -> None:
    """Write down whose a folder is, and which control groups its processes are in."""
    facts = {
        "owner": current_owner(),
        "session": session,
        "started": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "groups": [str(group) for group in groups],
    }
    (folder / FACTS).write_text(json.dumps(facts))


def mark(folder: Path) -> str:
    """Return the variable by which the processes of a run are known."""
    return f"CODETAPE_RUN={folder}"


def sweep() -> list[Left]:
    """Remove what dead processes left; returns what is kept because nobody knows whose it is."""
    unknown = []
    for left in find():
        if left.living is False:
            with contextlib.suppress(OSError):
                _end(left)
        elif left.living is None and not _in_the_making(left):
            unknown.append(left)
            whose = readable(left.owner) or "a process that is not named in it"
            _log.warning("%s is left by %s and is kept: remove it by hand", left.folder, whose)
    return unknown


def _in_the_making(left: Left) -> bool:
    """Say whether another process may just be making or removing it: then it has no owner yet."""
    if left.owner:
        return False
    try:
        return time.time() - left.folder.stat().st_mtime < YOUNG
    except OSError:  # removed by now
        return True


def find() -> Iterator[Left]:
    """Yield the folders that belong to this user and not to this process."""
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                    continue
                facts = _facts(Path(entry.path))
                owner = str(facts.get("owner", ""))
                if owner != current_owner():
                    groups = tuple(Path(str(group)) for group in facts.get("groups", ()))
                    yield Left(Path(entry.path), owner, alive(owner), groups)


def _facts(folder: Path) -> dict[str, Any]:
    try:
        facts = json.loads((folder / FACTS).read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _end(left: Left) -> None:
    """Stop, then delete."""
    for group in left.groups:
        if group.name.startswith(GROUP) and (group / "cgroup.procs").exists():
            _end_group(group)
    kill_marked(mark(left.folder))
    remove(left.folder)


def _end_group(group: Path) -> None:
    """Kill all that is in a control group, and remove it."""
    until = time.monotonic() + ENDING
    while time.monotonic() < until:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.01)
        else:
            return


class Outputs:
    """Where collected outputs lie: below a folder that was given, or below one that `close` removes."""

    def __init__(self, given: Path | None, session: str) -> None:
        self._given = given
        self._session = session
        self._made: Path | None = None
        self._lock = threading.Lock()

    def place(self, name: str) -> Path:
        """Return the folder for the outputs of one run, which the caller makes if there are some."""
        if self._given is not None:
            return self._given / name
        with self._lock:
            self._made = self._made or make(self._session)
            return self._made / name

    def close(self) -> None:
        """Remove what is ours."""
        if self._made is not None:
            with contextlib.suppress(OSError):
                remove(self._made)
            self._made = None
