"""What process 1 of a container tells the host: the lines of inside.py, read back."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

STREAMS = ("out", "out-tail", "err", "err-tail", "report")


@dataclass(slots=True)
class Told:
    """The facts of a run. `end` is None if process 1 was ended from outside before it could tell.

    `refused` names limits that are not in force, with what is; nothing was run then. `late` says that
    the host had to end process 1, which had not kept its own limit; `oom` that podman says it was
    killed for memory.
    """

    end: dict[str, Any] | None = None
    refused: dict[str, Any] = field(default_factory=dict)
    late: bool = False
    oom: bool = False
    streams: dict[str, bytes] = field(default_factory=dict)

    @property
    def stdout(self) -> str:
        """Standard output of the program: head, what was cut, tail."""
        return self._text("out")

    @property
    def stderr(self) -> str:
        """Standard error of the program: head, what was cut, tail."""
        return self._text("err")

    @property
    def report(self) -> bytes:
        """What the program wrote to descriptor 3."""
        return self.streams.get("report", b"")

    @property
    def complete(self) -> bool:
        """Whether all that process 1 read of the head of each stream has arrived here."""
        if self.end is None:
            return False
        kept = {name: self.end["kept"].get(name, 0) for name in STREAMS}
        return all(len(self.streams.get(name, b"")) == size for name, size in kept.items())

    def cut(self, name: str) -> int | None:
        """How many bytes of "out" or "err" are left out between head and tail."""
        if self.end is None:
            return None
        kept = (self.streams.get(part, b"") for part in (name, f"{name}-tail"))
        return int(self.end["bytes"][name]) - sum(map(len, kept))

    def _text(self, name: str) -> str:
        head, tail = self.streams.get(name, b""), self.streams.get(f"{name}-tail", b"")
        cut = self.cut(name)
        note = f"\n[{cut} bytes cut]\n".encode() if cut else b""
        return (head + note + tail).decode("utf-8", "backslashreplace")


def read(log: bytes) -> Told:
    """Read the lines; those that are damaged are passed over."""
    told = Told()
    pieces: dict[str, list[bytes]] = {name: [] for name in STREAMS}
    for line in log.split(b"\n"):
        word, _, value = line.partition(b" ")
        name = word.decode("ascii", "replace")
        try:
            if name in pieces:
                pieces[name].append(base64.b64decode(value, validate=True))
            elif name == "end":
                told.end = json.loads(value)
            elif name == "refused":
                told.refused = json.loads(value)
        except (ValueError, RecursionError):
            continue
    told.streams = {name: b"".join(parts) for name, parts in pieces.items()}
    return told
