"""The container of the next run, made and started while nobody waits for it.

At most one waits, and each is used once: a run has a container of its own as ever, it only need not
wait until that has started. A container that is not there, or has come to harm, is no failure: the
run then makes one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from codetape.adapters.sandbox.podman.jobs import Job
from codetape.adapters.sandbox.podman.running import Shape

PAUSE = 0.3  # seconds after a run in which the sandbox may be closed: then nothing was made in vain

_log = logging.getLogger("codetape.sandbox")


@dataclass(slots=True)
class _Next:
    """A container that waits, or is on its way."""

    shape: Shape
    wanted: threading.Event = field(default_factory=threading.Event)
    dropped: bool = False
    made: Future[Job | None] = field(default_factory=Future)


class Shelf:
    """Prepares containers in threads of its own, and removes those that are done with.

    `make` prepares one; it may raise anything, and removes what it has begun. Without `ahead` nothing
    is prepared.
    """

    def __init__(self, make: Callable[[Shape], Job], *, ahead: bool = True) -> None:
        self._make = make
        self._ahead = ahead
        self._lock = threading.Lock()
        self._next: _Next | None = None
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="codetape-podman-next")
        self._closed = False

    def want(self, shape: Shape, pause: float = 0.0) -> None:
        """See to it that one of this shape will wait, beginning in `pause` seconds."""
        with self._lock:
            known = self._next
            if (
                not self._ahead
                or self._closed
                or (known is not None and known.shape == shape and _well(known))
            ):
                return
            self._next = new = _Next(shape)
            self._drop(known)
            new.made = self._threads.submit(self._prepare, new, pause)

    def take(self, shape: Shape) -> Job | None:
        """Return one that waits, or soon will, and is the caller's from here on; None without one."""
        with self._lock:
            found = self._next
            if found is None or found.shape != shape:
                return None
            self._next = None
        found.wanted.set()
        job = found.made.result()
        if job is not None and not job.waiting:
            self.remove(job)
            return None
        return job

    def waits(self, shape: Shape) -> bool:
        """Wait until one of this shape waits; False if there is none, or it did not become one."""
        with self._lock:
            found = self._next
        if found is None or found.shape != shape:
            return False
        found.wanted.set()
        return found.made.result() is not None and _well(found)

    def remove(self, job: Job) -> None:
        """Remove a container while the caller goes on; `close` waits for that."""
        with self._lock:
            if not self._closed:
                self._threads.submit(job.remove)
                return
        job.remove()

    def close(self) -> None:
        """Remove what waits, and wait until all is done. May be called twice."""
        with self._lock:
            self._closed = True
            left, self._next = self._next, None
            self._drop(left)
        self._threads.shutdown(wait=True)

    def _drop(self, unwanted: _Next | None) -> None:
        """Let go of one: its thread, or the next one that is free, removes it."""
        if unwanted is not None:
            unwanted.dropped = True
            unwanted.wanted.set()
            unwanted.made.add_done_callback(_remove)

    def _prepare(self, mine: _Next, pause: float) -> Job | None:
        mine.wanted.wait(pause)
        if mine.dropped:
            return None
        try:
            return self._make(mine.shape)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run will meet it and say so
            _log.info("no container could be prepared: %s", error)
            return None


def _well(known: _Next) -> bool:
    """Say whether one is on its way, or waits unharmed."""
    if not known.made.done():
        return True
    job = known.made.result()
    return job is not None and job.waiting


def _remove(made: Future[Job | None]) -> None:
    if job := made.result():
        job.remove()
