"""Standard output and error of the tests: written through at once, and heard."""

from __future__ import annotations

import io

from codetape.adapters.sandbox.runner.problems import TEXT


class Recorder:
    """Keeps the head and the tail of what was printed, at the same cost however much it was."""

    def __init__(self) -> None:
        self._head, self._tail, self._cut = "", "", 0

    def add(self, text: str) -> None:
        """Append `text`."""
        half = TEXT // 2
        room = half - len(self._head)
        self._head, rest = self._head + text[:room], text[room:]
        tail = self._tail + rest[-half:]
        self._cut += len(rest) - len(rest[-half:]) + max(0, len(tail) - half)
        self._tail = tail[-half:]

    def take(self) -> str:
        """Return what was kept and start anew."""
        middle = f"\n[{self._cut} characters cut]\n" if self._cut else ""
        text = self._head + middle + self._tail
        self._head, self._tail, self._cut = "", "", 0
        return text


class Tee(io.TextIOWrapper):
    """Standard output or error: writes through at once, and lets the recorder hear it."""

    def __init__(self, descriptor: int, recorder: Recorder) -> None:
        raw = io.FileIO(descriptor, "w", closefd=False)
        super().__init__(io.BufferedWriter(raw), "utf-8", "backslashreplace", write_through=True)
        self._recorder = recorder

    def write(self, text: str) -> int:
        """Write `text` to the stream."""
        self._recorder.add(text)
        written = super().write(text)
        self.flush()
        return written


def tees() -> tuple[Tee, Tee, Recorder]:
    """Return streams for descriptors 1 and 2, and what hears them."""
    recorder = Recorder()
    return Tee(1, recorder), Tee(2, recorder), recorder
