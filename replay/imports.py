"""Import: a file that `export` wrote, checked to the last byte before anything of it is used.

A line that is not in its one form, a blob that does not fit its name, an event that is not chained to
the one before it, anything left out, added or moved: the file is refused at the first bad event.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count, groupby
from pathlib import Path
from typing import Any, BinaryIO

from codetape.engine import codec
from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import DamagedTape, EventStore, StoredEvent, StoreError, UnknownSession
from codetape.engine.tape import Source, moment_of
from codetape.engine.visible import safe
from codetape.replay.export import FORMAT, blobs_of, header_of
from codetape.states.values import canonical

LONGEST_LINE = 24 << 20
"""Bytes of a line; escapes make a blob longer than it is."""

MOST_VALUES = 40_000
"""Lists and objects in a line, which take many times the memory of its text."""

_BLOB = re.compile(rb'\{"blob":"[0-9a-f]{64}","text":"(?:[^"\\]++|\\.)*+"\}\n?')
"""A line with one long text: brackets in it are no lists."""

LARGEST_FILE = 512 << 20
"""Bytes of a file: a whole tape is in memory while it is read."""


class BadTapeFile(ValueError):
    """A file that is no unchanged export: `path`, `line`, `seq` of the first bad event, `reason`."""

    def __init__(self, path: Path, line: int, seq: int, reason: str) -> None:
        super().__init__(safe(f"{path}, line {line}, event {seq}: {reason}"))
        self.path = path
        self.line = line
        self.seq = seq
        self.reason = reason


class OtherContent(StoreError):
    """The store has a session of this id with other events: `session`, `seq` of the first one."""

    def __init__(self, session: str, seq: int) -> None:
        super().__init__(f"session {session} is in the store already, with another event {seq}")
        self.session = session
        self.seq = seq


class Redacted(ValueError):
    """A tape without prompts and data: it can be looked at, and nothing else: `session`."""

    def __init__(self, session: str) -> None:
        super().__init__(
            f"session {session} is redacted: look at the file itself with show or diff"
        )
        self.session = session


@dataclass(frozen=True, slots=True)
class TapeFile:
    """The tape of a file, in memory: it can be replayed and read like one in a store.

    Of a `redacted` one prompts and data are gone: it can be looked at, and not replayed.
    """

    session: str
    workflow: str
    rows: tuple[StoredEvent, ...] = field(repr=False)
    blobs: Mapping[str, bytes] = field(repr=False)
    redacted: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, session: str, after: int = 0) -> Iterator[StoredEvent]:
        """Yield the events with seq > `after`. Raises UnknownSession for another session."""
        if session != self.session:
            raise UnknownSession(session)
        return iter(self.rows[max(after, 0) :])

    def get_blob(self, hash: str) -> bytes:
        """Return the body of a blob. Raises KeyError."""
        return self.blobs[hash]


def tape_of(source: Source, session: str) -> TapeFile:
    """Take a tape into memory, with all that it refers to. Raises UnknownSession, DamagedTape."""
    rows = tuple(source.read(session))
    blobs = dict(chain.from_iterable(blobs_of(row, source.get_blob) for row in rows))
    workflow = str(header_of(rows[0], json.loads(rows[0].data), session)["workflow"])
    return TapeFile(session, workflow, rows, blobs)


def import_tape(path: Path, store: EventStore, owner: str = "an import") -> TapeFile:
    """Put the tape of a file into a store, under its own session id, and return it.

    A session that is there already stays as it is if it is equal, and is completed if the file goes
    on from its end. A fork brings what it has inherited: the sessions that it came from, up to where
    it left them, unless they are there. Raises BadTapeFile before anything is written, OtherContent,
    SessionOwned, and what `EventStore.append` raises; an import that was cut off can be made again.
    """
    return put_tape(read_tape_file(path), store, owner)


def put_tape(tape: TapeFile, store: EventStore, owner: str = "an import") -> TapeFile:
    """Do as `import_tape` does with a file that was read. Raises Redacted too."""
    if tape.redacted:
        raise Redacted(tape.session)
    written = groupby(tape.rows, lambda row: row.session)
    parts = [_Part(session, tuple(rows)) for session, rows in written]
    known = [_known(store, part, whole=part is parts[-1]) for part in parts]
    for at, (part, there) in enumerate(zip(parts, known, strict=True)):
        if there is None or there < len(part.rows):
            _append(store, tape, parts[: at + 1], there, owner)
    return tape


@dataclass(frozen=True, slots=True)
class _Part:
    """The events of a tape that one session has written."""

    session: str
    rows: tuple[StoredEvent, ...]


def _known(store: EventStore, part: _Part, *, whole: bool) -> int | None:
    """Return how many of the events are there, None if the session is not.

    An ancestor may have gone on. Raises OtherContent.
    """
    before = part.rows[0].seq - 1
    try:
        there = [row for row in store.read(part.session, before) if row.session == part.session]
    except UnknownSession:
        return None
    for one, other in zip(there, (*part.rows, None), strict=False):
        if other is None and not whole:
            break
        if one != other:
            raise OtherContent(part.session, one.seq)
    return min(len(there), len(part.rows))


def _append(
    store: EventStore, tape: TapeFile, parts: list[_Part], there: int | None, owner: str
) -> None:
    """Append what is not `there` of the last part; None: the session is not there yet."""
    part = parts[-1]
    if there is not None:
        lease = store.acquire(part.session, owner)
        if hasattr(store, "mark"):
            store.mark(part.session, "")  # others wrote what follows
    elif len(parts) > 1:
        lease = store.fork(part.session, parts[-2].session, part.rows[0].seq - 1, owner)
    else:
        lease = store.create(part.session, tape.workflow, _name_of(tape.rows[0]), owner)
    try:
        for row in part.rows[there or 0 :]:
            store.append(lease, row, dict(blobs_of(row, tape.get_blob)))
    finally:
        store.release(lease)


def _name_of(row: StoredEvent) -> str:
    """Return the name that a list of sessions shows; empty if the tape has none, or a very long one."""
    match json.loads(row.data):
        case {"job": {"name": str(name)}}:
            return name
    return ""


def read_tape_file(path: Path) -> TapeFile:
    """Read and check a whole file. Raises BadTapeFile, OSError."""
    if path.exists() and not path.is_file():  # a pipe or a device may have no end
        raise BadTapeFile(path, 1, 1, "it is no regular file")
    with path.open("rb") as file:
        return _Reading(path, _lines(path, file)).tape()


def _lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, while one is no longer than a line of ours, and all are not either."""
    left = LARGEST_FILE
    for number in count(1):
        line = file.readline(LONGEST_LINE + 1)
        left -= len(line)
        if len(line) > LONGEST_LINE or left < 0:
            longest = f"a line is longer than {LONGEST_LINE >> 20} MB"
            reason = longest if left >= 0 else f"the file is longer than {LARGEST_FILE >> 20} MB"
            raise BadTapeFile(path, number, 1, reason)
        if not line:
            return
        yield line


class _Reading:
    """One pass over a file, and where it stands."""

    def __init__(self, path: Path, lines: Iterable[bytes]) -> None:
        self._path = path
        self._lines = iter(lines)
        self._line = 0
        self._rows: list[StoredEvent] = []
        self._blobs: dict[str, bytes] = {}
        self._fresh: list[str] = []  # blobs since the last event

    def tape(self) -> TapeFile:
        header = self._header()
        while (value := self._value()) is not None:
            match value:
                case {"blob": str(name), "text": str(text)} if len(value) == 2:
                    self._blob(name, text.encode())
                case {"event": _}:
                    self._event(value, header)
                case {"end": _}:
                    self._end(value, header["session"])
                    return self._made(header)
                case _:
                    raise self._bad("this line is neither an event nor a blob nor the end")
        raise self._bad("the file is cut off here: it has no end line")

    def _made(self, header: dict[str, Any]) -> TapeFile:
        redacted = header.get("redacted", False)
        rows = tuple(self._rows)
        return TapeFile(header["session"], header["workflow"], rows, self._blobs, redacted)

    def _bad(self, reason: str) -> BadTapeFile:
        return BadTapeFile(self._path, self._line, len(self._rows) + 1, reason)

    def _value(self) -> Any:
        """Return the next line's value, None after the last one."""
        self._line += 1
        line = next(self._lines, None)
        if line is None:
            return None
        if line.count(b"{") + line.count(b"[") > MOST_VALUES and not _BLOB.fullmatch(line):
            raise self._bad("this line is not as it was written: it has too many lists and objects")
        try:
            text = line.decode()
            value = json.loads(text)
            if value is not None and f"{canonical(value)}\n" == text:
                return value
        except (ValueError, RecursionError):
            pass
        raise self._bad("this line is not as it was written")

    def _header(self) -> dict[str, Any]:
        match header := self._value():
            case {
                "codetape": "tape",
                "format": int(form),
                "encoding": int(encoding),
                "session": str(_),
                "workflow": str(_),
            }:
                if form > FORMAT or encoding > codec.FORMAT:
                    raise self._bad("a newer version of codetape wrote this file")
                return dict(header)
        raise self._bad("this is no tape: its first line is no header")

    def _blob(self, name: str, body: bytes) -> None:
        if len(body) > codec.LARGEST_BLOB:
            raise self._bad(f"blob {name} is larger than {codec.LARGEST_BLOB >> 20} MB")
        if hashlib.sha256(body).hexdigest() != name:
            raise self._bad(f"blob {name} does not fit its hash")
        if name in self._blobs:
            raise self._bad(f"blob {name} is here a second time")
        self._blobs[name] = body
        self._fresh.append(name)

    def _event(self, line: dict[str, Any], header: dict[str, Any]) -> None:
        row = self._row(line, header)
        if row.seq != len(self._rows) + 1:
            raise self._bad(f"event {row.seq} stands in its place")
        previous = self._rows[-1].hash if self._rows else GENESIS
        if chained(previous, row) != row.hash:
            raise self._bad("its hash does not fit its content and the event before it")
        if moment_of(row.at) is None:
            raise self._bad("its time is none in UTC of the years 1970 to 2999")
        self._check_blobs(row)
        if not self._rows:
            self._check_header(row, line["data"], header)
        self._rows.append(row)

    def _row(self, line: dict[str, Any], header: dict[str, Any]) -> StoredEvent:
        """Return the row of an event's line: these fields, of these types, and no others."""
        fields = {name: type(value) for name, value in line.items()}
        writer = fields.pop("session", str)  # of an inherited event another session
        if fields not in _FORMS or writer is not str or line.get("session") == header["session"]:
            raise self._bad("it does not have the fields of an event")
        row = {name: line[name] for name in line.keys() - {"event", "data"}}
        row.setdefault("session", header["session"])
        return StoredEvent(seq=line["event"], data=canonical(line["data"]), **row)

    def _check_blobs(self, row: StoredEvent) -> None:
        """The blobs since the last event are those that this one needs first, in their order."""
        try:
            needed = [name for name, _ in blobs_of(row, self._blobs.__getitem__)]
        except DamagedTape as damage:
            raise self._bad(damage.reason) from damage
        if [name for name in needed if name in self._fresh] != self._fresh:
            raise self._bad("the blobs before it are not those that it needs, in their order")
        self._fresh.clear()

    def _check_header(self, row: StoredEvent, data: Any, header: dict[str, Any]) -> None:
        try:
            fixed = {"encoding": header["encoding"]}
            mark = {"redacted": True} if "redacted" in header else {}
            expected = {**header_of(row, data, header["session"]), **fixed, **mark}
        except DamagedTape as damage:
            raise self._bad(damage.reason) from damage
        if canonical(expected) != canonical(header):
            raise self._bad("the header does not fit the first event")

    def _end(self, line: dict[str, Any], session: str) -> None:
        head = self._rows[-1].hash if self._rows else GENESIS
        end = canonical({"end": len(self._rows), "head": head})
        if self._fresh or canonical(line) != end:
            raise self._bad("the end line does not fit the events")
        if not self._rows:
            raise self._bad("the tape has no event")
        if self._rows[-1].session != session:
            raise self._bad("it ends before the fork has begun")
        if self._value() is not None:
            raise self._bad("there is more after the end line")


_TEXTS = ("at", "dest", "hash", "name", "source")
_FORMS = tuple(
    {**dict.fromkeys(_TEXTS, str), "data": dict, "event": int, "version": int, "request_key": key}
    for key in (str, type(None))
)
"""The types of an event's fields: with a request, and without one."""
