"""The processes below the one that keeps the report: waits for them, ends them, and clears away.

No code of a package runs in the process that does this.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36


class Ended:
    """How a child ended: by itself with `status` or `signal`, or `late`, at its limit of time."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.signal: int | None = None
        self.late = False
        self.peak_memory: int | None = None  # bytes
        self.seconds = 0.0

    def facts(self) -> dict[str, object]:
        """Return what the report says of it."""
        facts: dict[str, object] = {"status": self.status, "signal": self.signal}
        facts.update(peak_memory=self.peak_memory, late=self.late)
        facts.update(milliseconds=int(self.seconds * 1000))
        return facts


def adopt() -> None:
    """Have what children leave behind become children of this process, which then can end them."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait(child: int, seconds: float | None) -> Ended:
    """Wait until a child has ended, for `seconds` at most; what it leaves behind is passed over."""
    ended = Ended()

    def end(*_: object) -> None:
        ended.late = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds or 0)
    began = time.monotonic()
    pid = 0
    while pid != child:
        pid, status, usage = os.wait4(-1, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    ended.seconds = time.monotonic() - began
    ended.peak_memory = usage.ru_maxrss * 1024
    if not ended.late:
        ended.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        ended.status = os.WEXITSTATUS(status) if ended.signal is None else None
    return ended


def end_all(but: int | None = None) -> None:
    """End every process below this one, `but` one: the children of one that has ended are ours."""
    with contextlib.suppress(ChildProcessError):
        while left := [child for child in _ours() if child != but]:
            for child in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            os.wait4(left[0], 0)


def _ours() -> list[int]:
    """Return the children of this process."""
    me, found = str(os.getpid()), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            if file.read().rpartition(b")")[2].split()[1].decode() == me:
                found.append(int(name))
    return found


def emptied(folder: str) -> bool:
    """Remove all that is in a folder, if there is one; False if something is left."""
    if not os.path.isdir(folder):
        return True
    with contextlib.suppress(OSError, RecursionError):
        for name in os.listdir(folder):
            _remove(os.path.join(folder, name))
    return not os.listdir(folder)


def _remove(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    os.chmod(path, 0o700)
    for name in os.listdir(path):
        _remove(os.path.join(path, name))
    os.rmdir(path)
