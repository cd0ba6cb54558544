"""Limits and facts from the kernel's control groups, versions 1 and 2, where they can be written.

Without them a limit on memory is one per process (RLIMIT_AS), nothing counts processes, and whether
the memory ran out stays unknown.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codetape.states.values import Limits

PERIOD = 100_000  # microseconds over which the share of a processor is kept
ENDING = 10.0  # seconds in which the killed processes of a group must be gone
CONTROLLERS = ("memory", "pids", "cpu", "cpuacct")  # the last one only counts, in version 1
# Enters the groups, then becomes the command: a process that is moved later leaves children behind.
JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"'


@dataclass(frozen=True, slots=True)
class Parents:
    """Where groups can be made: a folder per controller (version 1), or one for all (version 2)."""

    folders: dict[str, Path]
    unified: bool

    def group(self, limits: Limits) -> Group:
        """Make a group with these limits; one that holds no limit where that is not possible."""
        name = f"codetape-{uuid.uuid4().hex[:16]}"
        group = Group({kind: folder / name for kind, folder in self.folders.items()}, self.unified)
        group.make(limits)
        return group


@dataclass(frozen=True, slots=True)
class Group:
    """The control group of one run. `folders` is empty where there are none."""

    folders: dict[str, Path]
    unified: bool

    def make(self, limits: Limits) -> None:
        """Make the folders and set the limits. A controller that refuses is left out."""
        for kind, folder in tuple(self.folders.items()):
            try:
                folder.mkdir(exist_ok=True)  # one folder may stand for several
                self._set(kind, folder, limits)
            except OSError:
                del self.folders[kind]
                if folder not in self.folders.values():
                    with contextlib.suppress(OSError):
                        folder.rmdir()

    def _set(self, kind: str, folder: Path, limits: Limits) -> None:
        quota = None if limits.cpus is None else int(limits.cpus * PERIOD)
        if kind == "pids":
            _write(folder / "pids.max", limits.processes)
        elif kind == "cpu" and self.unified:
            _write(folder / "cpu.max", None if quota is None else f"{quota} {PERIOD}")
        elif kind == "cpuacct":
            return
        elif kind == "cpu":
            _write(folder / "cpu.cfs_period_us", PERIOD)
            _write(folder / "cpu.cfs_quota_us", quota)
        elif self.unified:
            _write(folder / "memory.max", limits.memory)
            with contextlib.suppress(OSError):  # no swap in this kernel; older than the file
                _write(folder / "memory.swap.max", 0)
        else:
            _write(folder / "memory.limit_in_bytes", limits.memory)
            with contextlib.suppress(OSError):  # swap is not accounted for in this kernel
                _write(folder / "memory.memsw.limit_in_bytes", limits.memory)

    def has(self, kind: str) -> bool:
        """Say whether the limits of this controller are in force."""
        return kind in self.folders

    def join(self) -> tuple[str, ...]:
        """What to put before a command, so that it and all its children belong to the group."""
        files = dict.fromkeys(str(folder / "cgroup.procs") for folder in self.folders.values())
        return ("/bin/sh", "-c", JOIN, "codetape", *files, "--") if files else ()

    def ran_out(self) -> bool | None:
        """Say whether the kernel ended a process for want of memory; None if that is unknown."""
        if not self.has("memory"):
            return None
        name = "memory.events" if self.unified else "memory.oom_control"
        kills = _counted(self.folders["memory"] / name, "oom_kill")
        return None if kills is None else kills > 0

    def refused_forks(self) -> int | None:
        """Return how often the kernel refused a process or thread for the limit; None if unknown."""
        return _counted(self.folders["pids"] / "pids.events", "max") if self.has("pids") else None

    def cpu_seconds(self) -> float | None:
        """Return the time that all processes together have computed; None if unknown."""
        if not self.has("cpuacct"):
            return None
        folder = self.folders["cpuacct"]
        if self.unified:
            spent = _counted(folder / "cpu.stat", "usage_usec")
            return None if spent is None else spent / 1e6
        return next((int(line) / 1e9 for line in _lines(folder / "cpuacct.usage")), None)

    def peak(self) -> int | None:
        """Return the most memory that all processes together held, in bytes."""
        if not self.has("memory"):
            return None
        name = "memory.peak" if self.unified else "memory.max_usage_in_bytes"
        return next((int(line) for line in _lines(self.folders["memory"] / name)), None)

    def kill(self) -> bool:
        """End every process of the group; False if some are left after ENDING seconds."""
        deadline = time.monotonic() + ENDING
        while processes := self.processes():
            for process in processes:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    def processes(self) -> set[int]:
        """Return the processes that are in the group now."""
        lines = (_lines(folder / "cgroup.procs") for folder in self.folders.values())
        return {int(line) for found in lines for line in found}

    def remove(self) -> None:
        """Remove the folders; they are empty a moment after the last process has gone."""
        for folder in {*self.folders.values()}:
            for _ in range(100):
                with contextlib.suppress(FileNotFoundError):
                    try:
                        folder.rmdir()
                    except OSError:
                        time.sleep(0.01)
                        continue
                break


def _write(file: Path, value: float | str | None) -> None:
    """Set a limit; None leaves the one that is there, which is none."""
    if value is not None:
        file.write_text(str(value))


def _counted(file: Path, word: str) -> int | None:
    """Return the number after `word` at the beginning of a line."""
    found = (line.partition(" ") for line in _lines(file))
    return next((int(number) for name, _, number in found if name == word), None)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def find_parents(root: Path = Path("/")) -> Parents:
    """Find where this process may make groups, from what the kernel tells below `root`/proc."""
    own = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, names, path = line.split(":", 2)
        own.update(dict.fromkeys(names.split(","), path))
    first: dict[str, Path] = {}
    second: list[Path] = []
    for line in _lines(root / "proc/self/mountinfo"):
        place, mount = line.split(" ")[3:5]
        kind, _, options = line.split(" - ")[1].split(" ")[:3]
        where = root / mount.lstrip("/")
        if kind == "cgroup2":
            second = [*_upwards(where, place, own.get("", "/"))]
        for name in options.split(",") if kind == "cgroup" else ():
            if name in CONTROLLERS:
                first[name] = next(_upwards(where, place, own.get(name, "/")))
    return _usable(first, second)


def _upwards(mount: Path, place: str, path: str) -> Iterator[Path]:
    """Yield the folder of the group `path` where `mount` shows `place`, and those above it."""
    inner = os.path.relpath(path, place)
    folder = mount if inner.startswith("..") else mount / inner
    yield folder
    while folder != mount and folder != folder.parent:
        folder = folder.parent
        yield folder


def _usable(first: dict[str, Path], second: list[Path]) -> Parents:
    """Take version 1 where it has the memory; else the nearest group that may have children."""
    if "memory" in first and _tried(Parents(first, unified=False)):
        return Parents(first, unified=False)
    for folder in second:
        parents = Parents(dict.fromkeys(CONTROLLERS, folder), unified=True)
        if _tried(parents):
            return parents
    return Parents({}, unified=False)


def _tried(parents: Parents) -> bool:
    """Say whether a process can be put into a group there: only trying tells."""
    group = parents.group(Limits())
    try:
        if not group.has("memory"):
            return False
        command = [*group.join(), "/bin/true"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    finally:
        group.remove()
