"""Files that go into a run and files that come out of it. What comes out is hostile.

Collecting assumes that every process of the run is gone: then nothing changes under our hands, and
looking at a path and opening it see the same thing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from codetape.engine.ports import SandboxBroken
from codetape.states.values import HostFile, OutputFile, SandboxFailure, TextFile

MOST_FILES = 10_000  # entries below /var/outputs; more is taken for an attack on the disk
DEEPEST = 32  # folders in folders that are collected
SHORT = 4096  # bytes of an output that is also given as text


def checked(name: str) -> PurePosixPath:
    """Return `name` as a relative path without tricks; raises ValueError otherwise."""
    parts = name.split("/")
    if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        message = f"{name!r} is no name of a file: give a relative path without '..'"
        raise ValueError(message)
    if any(len(part.encode("utf-8", "surrogatepass")) > 255 for part in parts):
        message = f"{name[:40]!r}… is too long for the name of a file"
        raise ValueError(message)
    return PurePosixPath(name)


def stage(
    folder: Path,
    files: Iterable[TextFile],
    host_files: Iterable[HostFile],
    text: Callable[[TextFile], str] = lambda file: file.text,
) -> None:
    """Write the inputs below `folder`, readable for everybody.

    Host files are copied: a run sees what there was when it started, and whoever runs inside need
    not be able to reach them. `translate` is applied to texts. Raises SandboxBroken.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for host_file in host_files:
            _copy(Path(host_file.path), _place(folder, host_file.name))
        for file in files:
            body = text(file).encode("utf-8", "surrogatepass")
            _place(folder, file.name).write_bytes(body)
        _open_up(folder)
    except (OSError, ValueError, shutil.Error) as error:
        raise SandboxBroken(SandboxFailure(message=f"an input cannot be given: {error}")) from error


def _place(folder: Path, name: str) -> Path:
    path = folder / checked(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def _open_up(folder: Path) -> None:
    """Let everybody read: the user inside is another one."""
    for path, _, names in os.walk(folder):
        Path(path).chmod(0o755)
        for name in names:
            Path(path, name).chmod(0o644)


@dataclass(slots=True)
class Collected:
    """Outputs that were found, and the names of those that were refused, with the reason."""

    outputs: list[OutputFile] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Refused(Exception):
    """This entry is not collected; the message says why."""


def collect(source: Path, names: Iterable[str], target: Path, most: int | None) -> Collected:
    """Copy the outputs `names` from `source` to `target`: regular files and folders, nothing else.

    `most` bounds the bytes of all of them together. A name that is not there is left out.
    """
    collected = Collected()
    room = Room(most)
    for name in names:
        try:
            output = _collect(source, checked(name), target, room, collected.refused)
        except (Refused, ValueError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            collected.refused.append(printable(f"{name}: {reason}"))
        else:
            collected.outputs += [output] if output else []
    return collected


@dataclass(slots=True)
class Room:
    """How much may still be collected: bytes (None: no limit) and entries."""

    size: int | None
    entries: int = MOST_FILES

    def take(self, size: int) -> None:
        """Account for an entry of `size` bytes; raises Refused."""
        self.entries -= 1
        if self.entries < 0:
            message = f"more than {MOST_FILES} files"
            raise Refused(message)
        if self.size is not None:
            if size > self.size:
                message = f"too large ({size} bytes)"
                raise Refused(message)
            self.size -= size


def _collect(
    source: Path, name: PurePosixPath, target: Path, room: Room, refused: list[str]
) -> OutputFile | None:
    path = _reach(source, name)
    if path is None:
        return None
    goal = target / name
    goal.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISDIR(path.lstat().st_mode):
        size = sum(_copy_folder(path, goal, str(name), room, refused, depth=1))
        return OutputFile(name=str(name), path=str(goal), is_folder=True, size=size)
    size = _copy_file(path, goal, room)
    text = _text(goal) if size <= SHORT else None
    return OutputFile(name=str(name), path=str(goal), size=size, text=text)


def _reach(source: Path, name: PurePosixPath) -> Path | None:
    """Return the path of `name`, which leads through real folders only; None if it is not there."""
    path = source
    for part in name.parts:
        path = path / part
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if kind := _foreign(mode):
            message = f"{kind}, not a file or folder"
            raise Refused(message)
    return path


def _foreign(mode: int) -> str | None:
    """Name what is neither a regular file nor a folder."""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "a link" if stat.S_ISLNK(mode) else "a device, pipe or socket"


def _copy_folder(
    source: Path, target: Path, name: str, room: Room, refused: list[str], depth: int
) -> Iterator[int]:
    """Copy what is in `source`; yields the size of each file."""
    if depth > DEEPEST:
        message = f"more than {DEEPEST} folders deep"
        raise Refused(message)
    target.mkdir(exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            inner = f"{name}/{entry.name}"
            mode = entry.stat(follow_symlinks=False).st_mode
            if kind := _foreign(mode):
                refused.append(printable(f"{inner}: {kind}, not a file or folder"))
            elif stat.S_ISDIR(mode):
                room.take(0)
                path = Path(entry.path)
                yield from _copy_folder(path, target / entry.name, inner, room, refused, depth + 1)
            else:
                yield _copy_file(Path(entry.path), target / entry.name, room)


def _copy_file(source: Path, target: Path, room: Room) -> int:
    """Copy one regular file without its mode and owner; returns its size in bytes."""
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as body:
        size = os.fstat(descriptor).st_size
        room.take(size)
        with target.open("wb") as copy:
            shutil.copyfileobj(body, copy, 1 << 20)
    return size


def printable(text: str) -> str:
    """Return `text` with what is no Unicode written as escapes: names on a disk are bytes."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        return None


def free(folder: Path) -> int:
    """Return the bytes that the disk below `folder` still has room for."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def measure(folder: Path, most: int, lost: int = 0) -> int | None:
    """Return the bytes below `folder`; None if there are more than `most`, or too many entries.

    `lost` is what the disk has lost in the meantime: a folder that is closed to us may hold it. One
    whose path is too long to be looked into is taken for too many entries.
    """
    size, entries, folders = 0, 0, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                for entry in found:
                    facts = entry.stat(follow_symlinks=False)
                    size += facts.st_blocks * 512  # what it takes: a sparse file takes little
                    entries += 1
                    if size > most or entries > MOST_FILES:
                        return None
                    if stat.S_ISDIR(facts.st_mode):
                        folders.append(Path(entry.path))
        except PermissionError:
            size = max(size, lost)
        except OSError as error:  # the code removed it meanwhile, mostly
            if error.errno == errno.ENAMETOOLONG:
                return None
    return size if size <= most else None


def remove(folder: Path) -> None:
    """Delete a folder that hostile code had in hand. Raises OSError if something is left."""
    with contextlib.suppress(RecursionError):  # too deep for Python, not for rm
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            full = [*command, "--", str(folder)]
            subprocess.run(full, stderr=subprocess.DEVNULL, check=False)
    if folder.exists():
        message = f"cannot remove {folder}"
        raise OSError(message)
