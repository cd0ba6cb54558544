"""Writes the lines of a report."""

from __future__ import annotations

import json
import os

# Taken before anything foreign is imported: replacing them later changes nothing here.
_write, _getpid, _encode = os.write, os.getpid, json.JSONEncoder().encode


class Report:
    """Writes facts, in order, from one process: a child that a test forks stays silent."""

    def __init__(self, descriptor: int, token: str, seq: int) -> None:
        self._descriptor = descriptor
        self._token = token
        self._owner = _getpid()
        self._seq = seq
        self.size = 0  # bytes that were written

    def begin_again(self) -> None:
        """Make it the report of this process, a fork, of which one line is written already."""
        self._owner, self._seq, self.size = _getpid(), 1, 0

    def write(self, kind: str, **facts: object) -> None:
        """Append one line."""
        if _getpid() != self._owner:
            return
        self._seq += 1
        line = {"nonce": self._token, "seq": self._seq, "kind": kind, **facts}
        self.size += write_line(self._descriptor, line)


def write_line(descriptor: int, line: dict[str, object]) -> int:
    """Write one object, whole, on a line of its own; returns its size in bytes."""
    data = _encode(line).encode() + b"\n"
    size = len(data)
    while data:
        data = data[_write(descriptor, data) :]
    return size


def mark(nonce: str) -> str:
    """Return the line between the words of the tests and those of the script.

    A script may read what stands in a pipe: it learns nothing of the nonce from this.
    """
    import hashlib  # in few runs only

    return hashlib.sha256(nonce.encode()).hexdigest() + "\n"
