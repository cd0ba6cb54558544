"""Runs one process under a time limit and listens to it, in a thread of its own.

One loop waits for everything at once: output, the end of the main process, the limit, and a wish to
cancel. Each chunk costs the same however much came before, and is at most 64 KiB, so a flood cannot
keep the limit from being noticed. The run is over when the main process is gone; then the rest of
its tree is ended, and only then is read what the pipes still hold, with a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Literal, TypeVar

from codetape.adapters.sandbox.report import MOST
from codetape.engine.ports import SandboxBroken
from codetape.states.values import SandboxFailure

CHUNK = 1 << 16  # bytes of one read; also what a pipe holds
TICK = 0.2  # seconds between two looks at what has no descriptor to wait for (disk, memory)
GRACE = 0.5  # seconds to read what the pipes hold when the tree is gone
ENDING = 10.0  # seconds in which a killed process must be gone

FLOOD = 1000  # times what is kept of a stream: who prints more is ended

Cause = Literal["exit", "timeout", "cancelled", "disk", "memory", "output"]
Result = TypeVar("Result")


class Kept:
    """Head and tail of a stream of bytes, each up to half of `most`."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._size = 0  # of the tail
        self.total = 0  # bytes that came

    def add(self, data: bytes) -> None:
        """Append a chunk: constant cost, however much came before."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if rest:
            self._tail.append(rest)
            self._size += len(rest)
        while self._tail and self._size - len(self._tail[0]) >= self._half:
            self._size -= len(self._tail.popleft())

    def bytes(self) -> bytes:
        """Return what was kept, with the count of what was cut between head and tail."""
        tail = b"".join(self._tail)
        surplus = max(0, len(tail) - self._half)
        note = f"\n[{self.cut} bytes cut]\n".encode() if self.cut else b""
        return bytes(self._head) + note + tail[surplus:]

    @property
    def cut(self) -> int:
        """How many bytes are left out between head and tail."""
        return self.total - len(self._head) - min(self._size, self._half)

    def text(self) -> str:
        """Return it as text; bytes that are no UTF-8 appear as \\xNN."""
        return self.bytes().decode("utf-8", "backslashreplace")


class Prefix(Kept):
    """The beginning of a stream: a report that is too long is cut, and so it is unfinished."""

    def __init__(self, most: int = MOST) -> None:
        super().__init__(2 * most)

    def add(self, data: bytes) -> None:
        """Append a chunk as long as there is room."""
        self.total += len(data)
        self._head += data[: self._half - len(self._head)]

    def bytes(self) -> bytes:
        """Return what was kept, without a word about the rest."""
        return bytes(self._head)


class Wish:
    """A wish to cancel that a waiting thread can see. Safe to use from any thread."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self.made = False

    def fileno(self) -> int:
        """The descriptor that becomes readable."""
        return self._read

    def make(self) -> None:
        """Say that the work is to end."""
        self.made = True
        os.write(self._write, b"x")

    def close(self) -> None:
        """Free the descriptors."""
        os.close(self._read)
        os.close(self._write)


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, and how to end it.

    `kill` ends the whole tree and returns when it is gone; it is called exactly once, also when the
    main process has ended by itself. `watch` is asked every TICK seconds whether some limit was
    passed. `stdin` is what the process reads before its standard input ends; it fits into a pipe.
    `report` is the reading end of a socket whose writing end is among `inherited`; those are
    closed here as soon as the process has them, and the reading end at the end.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    seconds: float
    kill: Callable[[subprocess.Popen[bytes]], None]
    watch: Callable[[], Cause | None] = lambda: None
    cwd: str = "/"
    stdin: bytes = b""
    keep: int = 1 << 20
    inherited: tuple[int, ...] = ()
    report: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended. `status` is that of the main process as Popen gives it: -n for signal n."""

    cause: Cause
    status: int
    seconds: float
    stdout: Kept
    stderr: Kept
    report: Kept


def supervise(launch: Launch, wish: Wish) -> Ended:
    """Start, wait, end the tree, read the rest. Raises OSError if it cannot start."""
    began = time.monotonic()
    process = _start(launch)
    with contextlib.ExitStack() as stack:
        listener = _Listener(launch, process, wish, stack)
        try:
            cause = listener.wait(began + launch.seconds)
        finally:
            launch.kill(process)
        status = _reap(process)
        seconds = time.monotonic() - began
        listener.drain(time.monotonic() + GRACE)
    out, err, report = listener.streams
    return Ended(cause, status, seconds, out, err, report)


def _start(launch: Launch) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(
            launch.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(launch.environment),
            cwd=launch.cwd,
            pass_fds=launch.inherited,
            start_new_session=True,
            umask=0o022,
            bufsize=0,
        )
    except OSError:
        if launch.report is not None:
            os.close(launch.report)
        raise
    finally:
        for descriptor in launch.inherited:
            os.close(descriptor)
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError), process.stdin:  # it may have ended already
            process.stdin.write(launch.stdin)
    return process


def _reap(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(ENDING)
    except subprocess.TimeoutExpired as error:
        message = f"process {process.pid} is still there {ENDING:.0f} s after it was killed"
        raise SandboxBroken(SandboxFailure(message=message)) from error


class _Listener:
    """Everything that one loop waits for."""

    def __init__(
        self,
        launch: Launch,
        process: subprocess.Popen[bytes],
        wish: Wish,
        stack: contextlib.ExitStack,
    ) -> None:
        self.streams = (Kept(launch.keep), Kept(launch.keep), Prefix())
        self._process = process
        self._wish = wish
        self._watch = launch.watch
        self._most = (FLOOD * launch.keep, FLOOD * launch.keep, MOST)
        self._selector = stack.enter_context(selectors.DefaultSelector())
        self._selector.register(wish, selectors.EVENT_READ)
        self._ending = _pidfd(process)
        if self._ending is not None:
            stack.callback(os.close, self._ending)
            self._selector.register(self._ending, selectors.EVENT_READ)
        self._pipes: dict[int, Kept] = {}
        ends = (_detached(process.stdout), _detached(process.stderr), launch.report)
        for descriptor, stream in zip(ends, self.streams, strict=True):
            if descriptor is not None:
                stack.callback(os.close, descriptor)
                os.set_blocking(descriptor, False)
                self._pipes[descriptor] = stream
                self._selector.register(descriptor, selectors.EVENT_READ)

    def wait(self, deadline: float) -> Cause:
        """Read until the main process has ended or must be ended."""
        look = time.monotonic() + TICK
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "timeout"
            if now >= look:
                look = now + TICK
                if passed := self._watch():
                    return passed
            ready = [key.fd for key, _ in self._selector.select(min(deadline, look) - now)]
            self._read(ready)
            if self._wish.made:
                return "cancelled"
            if self._has_ended(ready):
                return "exit"
            if any(s.total > most for s, most in zip(self.streams, self._most, strict=True)):
                return "output"

    def _has_ended(self, ready: list[int]) -> bool:
        if self._ending is None:
            return self._process.poll() is not None
        return self._ending in ready

    def drain(self, deadline: float) -> None:
        """Read what the pipes still hold. Whoever holds them open is not waited for."""
        while self._pipes and time.monotonic() < deadline:
            ready = [key.fd for key, _ in self._selector.select(0) if key.fd in self._pipes]
            if not ready:
                return
            self._read(ready)

    def _read(self, ready: list[int]) -> None:
        """Read one chunk from each pipe that has one; forget those that have come to their end."""
        for descriptor in ready:
            if descriptor in self._pipes:
                with contextlib.suppress(BlockingIOError):
                    chunk = os.read(descriptor, CHUNK)
                    self._pipes[descriptor].add(chunk)
                    if not chunk:
                        self._selector.unregister(descriptor)
                        del self._pipes[descriptor]


def _detached(pipe: IO[bytes] | None) -> int | None:
    """Return a descriptor of our own for `pipe`, which is closed."""
    if pipe is None:
        return None
    with pipe:
        return os.dup(pipe.fileno())


def _pidfd(process: subprocess.Popen[bytes]) -> int | None:
    """Return a descriptor that becomes readable when the process ends; None where there is none."""
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return None


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and its group: enough for programs of our own choice."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class Threads:
    """Runs blocking work in threads; cancelling the task that waits makes a wish, and waits on."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(64, "codetape-sandbox")
        self._wishes: set[Wish] = set()
        self._closed = False

    async def run(self, work: Callable[[Wish], Result]) -> Result:
        """Run `work` with a wish that it has to watch. Raises SandboxBroken once closed."""
        if self._closed:
            raise SandboxBroken(SandboxFailure(message="the sandbox is closed"))
        wish = Wish()
        self._wishes.add(wish)
        try:
            return await self._patiently(work, wish)
        finally:
            self._wishes.discard(wish)
            wish.close()

    async def _patiently(self, work: Callable[[Wish], Result], wish: Wish) -> Result:
        """Await the thread, however often the task is cancelled: only then all is cleaned up."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, wish)
        cancelled = None
        while not future.done():
            try:
                await asyncio.wait({future})
            except asyncio.CancelledError as error:
                cancelled = error
                wish.make()
        if cancelled is not None:
            future.exception()  # looked at, so that asyncio does not complain
            raise cancelled
        return future.result()

    async def close(self) -> None:
        """Make all wishes, and wait until the threads are gone."""
        self._closed = True
        for wish in tuple(self._wishes):
            wish.make()
        await asyncio.to_thread(self._pool.shutdown)
