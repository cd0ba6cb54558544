"""Tars: of inputs, made while they are sent, and of outputs, which are hostile."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from codetape.adapters.sandbox.files import checked, printable
from codetape.engine.ports import SandboxBroken
from codetape.states.values import HostFile, SandboxFailure, TextFile

PIECE = 1 << 20


def of_bytes(files: dict[str, bytes]) -> Iterator[bytes]:
    """Yield a tar of files that are in memory, by path."""
    for path, body in files.items():
        yield from _member(path, len(body), iter([body]))
    yield _end()


def of_inputs(
    folder: str, files: Iterable[TextFile], host_files: Iterable[HostFile], more: dict[str, bytes]
) -> Iterator[bytes]:
    """Yield a tar with the inputs below `folder` and `more` by path. Raises SandboxBroken.

    Host files are copied, readable for everybody: a run sees what there was when it started, and
    whoever runs inside need not be able to reach them.
    """
    try:
        # A text comes after a host file of the same name, and so takes its place.
        for host_file in host_files:
            yield from _host(Path(host_file.path), f"{folder}/{checked(host_file.name)}")
        texts = {
            f"{folder}/{checked(file.name)}": file.text.encode("utf-8", "surrogatepass")
            for file in files
        }
    except (OSError, ValueError) as error:
        raise SandboxBroken(SandboxFailure(message=f"an input cannot be given: {error}")) from error
    yield from of_bytes({**texts, **more})


def _host(source: Path, path: str) -> Iterator[bytes]:
    """Yield a file or a whole folder; links are followed, as a reader of them would."""
    if not source.is_dir():
        with source.open("rb") as body:
            size = body.seek(0, io.SEEK_END)
            body.seek(0)
            yield from _member(path, size, iter(lambda: body.read(PIECE), b""))
        return
    yield _header(path, 0, tarfile.DIRTYPE)
    for inner in sorted(source.iterdir()):
        yield from _host(inner, f"{path}/{inner.name}")


def _member(path: str, size: int, body: Iterator[bytes]) -> Iterator[bytes]:
    """Yield one file of exactly `size` bytes: one that grows meanwhile is cut, a shorter one fails."""
    yield _header(path, size, tarfile.REGTYPE)
    left = size
    for piece in body:
        yield piece[:left]
        left -= len(piece[:left])
        if left == 0:
            break
    if left:
        message = f"{path} became shorter while it was read"
        raise OSError(message)
    yield b"\0" * (-size % tarfile.BLOCKSIZE)


def _header(path: str, size: int, kind: bytes) -> bytes:
    """Return the header: no time and no owner of this host in it."""
    info = tarfile.TarInfo(path)
    info.size, info.type = size, kind
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _end() -> bytes:
    return b"\0" * (2 * tarfile.BLOCKSIZE)


def unpack(tar: Iterator[bytes], target: Path, most: int | None, entries: int) -> list[str]:
    """Write the files and folders of a tar below `target`; returns what was left out, with reasons.

    Raises ValueError, with the reason, if there are more than `most` bytes or `entries` entries.
    """
    refused = []
    with tarfile.open(fileobj=_Reader(tar), mode="r|", encoding="utf-8") as archive:
        for count, member in enumerate(archive, 1):
            if count > entries:
                message = f"more than {entries} files"
                raise ValueError(message)
            if most is not None and member.size > most:
                message = f"too large ({member.size} bytes)"
                raise ValueError(message)
            most = None if most is None else most - member.size
            if member.isreg() or member.isdir():
                _try_to_write(archive, member, target / checked(member.name.strip("/")))
            else:
                kind = "a link" if member.issym() or member.islnk() else "a device, pipe or socket"
                refused.append(printable(f"{member.name}: {kind}, not a file or folder"))
    return refused


def _try_to_write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write one entry. Raises ValueError where the disk refuses; a line that broke is no refusal."""
    try:
        _write(archive, member, path)
    except OSError as error:
        if error.errno is None:
            raise
        raise ValueError(error.strerror) from error


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write one entry. Nothing here is a link, since none was ever written below the target."""
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    body = archive.extractfile(member)
    with path.open("xb") as file:
        while body and (piece := body.read(PIECE)):
            file.write(piece)


class _Reader(io.RawIOBase):
    """Pieces of bytes as a file that can only be read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, less only at the end."""
        got = [self._rest]
        length = len(self._rest)
        while length < size and (piece := next(self._pieces, b"")):
            got.append(piece)
            length += len(piece)
        data = b"".join(got)
        self._rest = data[size:]
        return data[:size]
