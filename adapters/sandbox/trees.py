"""Ends a tree of processes that has no container around it, as well as that can be done."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENDING = 5.0  # seconds in which the killed processes must be gone
NOBODY = -1  # the number of no process, group or session


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    group: int
    session: int
    marked: bool


def kill_tree(leader: int, mark: str) -> bool:
    """End `leader`, its group and session, all descendants, and whoever has `mark` among its variables.

    A process that left its session and lost its parent is found by the mark. One that moreover
    cleared its environment escapes. Returns False if some are left after ENDING seconds.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    return _kill(leader, mark)


def kill_marked(mark: str) -> bool:
    """End whoever has `mark` among its variables, and all descendants; see kill_tree."""
    return _kill(NOBODY, mark)


def _kill(leader: int, mark: str) -> bool:
    deadline = time.monotonic() + ENDING
    while found := _tree(leader, mark.encode()):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def _tree(leader: int, mark: bytes) -> set[int]:
    """Return the living processes of the tree, without ourselves."""
    processes = list(_processes(mark))
    tree = {
        one.pid for one in processes if one.marked or leader in (one.pid, one.group, one.session)
    }
    while more := {one.pid for one in processes if one.parent in tree} - tree:
        tree |= more
    return tree - {os.getpid()}


def _processes(mark: bytes) -> Iterator[_Process]:
    """Yield the living processes of this machine that can be seen."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            state, *numbers = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if state not in "ZX":
                parent, group, session = map(int, numbers)
                marked = mark in _environment(folder).split(b"\0")
                yield _Process(int(folder.name), parent, group, session, marked)


def _environment(folder: Path) -> bytes:
    try:
        return (folder / "environ").read_bytes()
    except OSError:  # somebody else's, or gone
        return b""
