"""Export: one tape as one text file that needs nothing else.

A line is one JSON value in its canonical form, so that a file has exactly one form:

    {"codetape":"tape","encoding":1,"format":1,"rules":1,"session":"…","workflow":"autocoder"}
    {"blob":"<sha256>","text":"…"}            each blob once, before the event that needs it first
    {"at":"…","data":{…},"dest":"…","event":1,"hash":"…","name":"…", …}
    {"end":2,"head":"<hash of the last event>"}

An event that a fork has inherited names the session that wrote it, so that its hash can be checked:
the file of a fork needs no other. Equal tapes give equal files, byte for byte.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from codetape.engine import codec
from codetape.engine.chain import GENESIS
from codetape.engine.ports import DamagedTape, StoredEvent, UnknownSession
from codetape.engine.tape import Source
from codetape.states.values import canonical

FORMAT = 1
"""The version of the form of the file; `engine.codec.FORMAT` is that of the events in it."""

_BEGIN = b'{"codetape":"tape"'
"""So begins a file that was exported."""


def export_tape(source: Source, session: str, path: Path, *, redacted: bool = False) -> None:
    """Write a tape to a file, which only its owner may read: whole, or not at all.

    `redacted` marks one that `replay.redact` made.

    Raises UnknownSession, DamagedTape and OSError, and FileExistsError for what is there and is no
    older tape; whatever has that name is then still there.
    """
    if path.exists() and not _replaceable(path):
        raise FileExistsError(errno.EEXIST, "it is there already and is no tape", str(path))
    descriptor, part = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            lines = tape_lines(source, session, redacted=redacted)
            file.writelines(f"{line}\n" for line in lines)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink()
        raise


def _replaceable(path: Path) -> bool:
    """Say whether nothing is lost with a file: it is empty, or was exported. A device is neither."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_BEGIN)) in {b"", _BEGIN}


def tape_lines(source: Source, session: str, *, redacted: bool = False) -> Iterator[str]:
    """Yield the lines of an export, without line ends. Raises UnknownSession, DamagedTape."""
    written: set[str] = set()
    head, count = GENESIS, 0
    for row in source.read(session):
        data = _data(row)
        if count == 0:
            mark = {"redacted": True} if redacted else {}
            yield canonical({**header_of(row, data, session), **mark})
        for name, body in blobs_of(row, source.get_blob):
            if name not in written:
                written.add(name)
                yield canonical({"blob": name, "text": body.decode()})
        yield canonical(event_line(row, data, session))
        head, count = row.hash, row.seq
    if count == 0:
        raise UnknownSession(session)
    yield canonical({"end": count, "head": head})


def _data(row: StoredEvent) -> Any:
    try:
        data = json.loads(row.data)
        if canonical(data) == row.data:
            return data
    except (ValueError, RecursionError):
        pass
    raise DamagedTape(row.session, row.seq, "its data is no JSON in canonical form")


def header_of(row: StoredEvent, data: Any, session: str) -> dict[str, Any]:
    """Return the header of the tape of `session`, which begins with `row`.

    Raises DamagedTape for an event that opens no session.
    """
    try:
        rules, workflow = data["rules"], data["workflow"]
    except (KeyError, TypeError) as error:
        reason = f"a tape begins with session_opened, not {row.name}"
        raise DamagedTape(row.session, row.seq, reason) from error
    return {
        "codetape": "tape",
        "encoding": codec.FORMAT,
        "format": FORMAT,
        "rules": rules,
        "session": session,
        "workflow": workflow,
    }


def blobs_of(row: StoredEvent, get_blob: Callable[[str], bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield name and body of each blob that an event needs, always in the same order.

    These are the texts of its payload, those of its request, and the request itself. Raises
    DamagedTape for one that is gone or damaged.
    """
    needed: dict[str, bytes] = {}

    def get(name: str) -> bytes:
        needed[name] = get_blob(name)
        return needed[name]

    try:
        codec.unpack_json(row.data, get)
        if row.request_key is not None:
            body = get_blob(row.request_key)
            codec.unpack_json(body.decode(), get)
            needed[row.request_key] = body
    except KeyError as missing:
        raise DamagedTape(row.session, row.seq, f"blob {missing} is gone") from missing
    except ValueError as damage:
        raise DamagedTape(row.session, row.seq, str(damage)) from damage
    yield from needed.items()


def event_line(row: StoredEvent, data: Any, session: str) -> dict[str, Any]:
    """Return the line of an event; its session stands in the header, unless it is another one."""
    inherited = {"session": row.session} if row.session != session else {}
    return {
        **inherited,
        "at": row.at,
        "data": data,
        "dest": row.dest,
        "event": row.seq,
        "hash": row.hash,
        "name": row.name,
        "request_key": row.request_key,
        "source": row.source,
        "version": row.version,
    }
