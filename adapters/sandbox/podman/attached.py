"""A line to process 1 of a container while it runs: a job goes in, and what it tells comes out.

Faster than waiting for the end of the container, and never the only witness: where a line breaks or
is not complete, the container's log has the same words.
"""

from __future__ import annotations

import contextlib
import socket
import time

FRAME = 8  # bytes of podman's header: one for the stream, and the last four for the size
PIECE = 1 << 18
STDOUT = 1


class Attached:
    """Owns a connected socket. `send` and `heard` are for one thread; `close` is for any."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = bytearray()  # what came and is no whole frame so far
        self._told = bytearray()  # what process 1 wrote to its standard output
        self._at = 0  # where its last line began when it was looked at

    @property
    def open(self) -> bool:
        """Whether the other end is there and silent, as it is before it has a job."""
        self._connection.settimeout(0.0)
        try:
            self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # it has ended, or says something before it was asked

    def send(self, line: bytes, seconds: float) -> None:
        """Hand a line over. Raises OSError."""
        self._connection.settimeout(seconds)
        self._connection.sendall(line)

    def heard(self, seconds: float) -> bytes:
        """Listen until the line `end`, for `seconds` at most; return all that was told so far."""
        until = time.monotonic() + seconds
        while not self._ended() and (left := until - time.monotonic()) > 0:
            self._connection.settimeout(left)
            try:
                piece = self._connection.recv(PIECE)
            except OSError:  # the time is up, or the line is broken: the log tells the rest
                break
            if not piece:
                break
            self._take(piece)
        return bytes(self._told)

    def _take(self, piece: bytes) -> None:
        """Take the frames apart that are whole."""
        self._rest += piece
        while len(self._rest) >= FRAME:
            end = FRAME + int.from_bytes(self._rest[4:FRAME], "big")
            if len(self._rest) < end:
                return
            if self._rest[0] == STDOUT:
                self._told += self._rest[FRAME:end]
            del self._rest[:end]

    def _ended(self) -> bool:
        """Say whether the last whole line is `end`; each byte is looked at about once."""
        last = self._told.rfind(b"\n", self._at)
        if last < 0:
            return False
        begin = max(self._told.rfind(b"\n", self._at, last) + 1, self._at)
        self._at = last + 1
        return self._told.startswith(b"end ", begin)

    def close(self) -> None:
        """Free the socket."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
