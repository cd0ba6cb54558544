"""One thing that is done in a container of its own: a run, or a stage of a build. Blocking.

A job has a thread; `cancel` may come from any other one, at any moment.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from typing import Any

from codetape.adapters.sandbox.podman.containers import Containers
from codetape.adapters.sandbox.podman.service import broken
from codetape.adapters.sandbox.podman.telling import Told, read

MARGIN = 5.0  # seconds that process 1 gets to end the run itself and to tell, before it is killed


class Cancelled(Exception):
    """The job was cancelled; its container is being removed."""


class Job:
    """A container from its creation to its removal."""

    def __init__(self, containers: Containers) -> None:
        self.name = f"codetape-{secrets.token_hex(6)}"
        self._containers = containers
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """End what runs. The thread of the job removes the container."""
        self._cancelled.set()
        self._containers.kill(self.name)

    def check(self) -> None:
        """Raise Cancelled if somebody wished so."""
        if self._cancelled.is_set():
            raise Cancelled

    def do(self, spec: dict[str, Any], inputs: Iterator[bytes], seconds: float) -> Told:
        """Create, hand over, start, wait until the end, and listen. `remove` has to follow.

        Raises SandboxBroken, Missing (no image) and Cancelled.
        """
        self.check()
        self._containers.create(self.name, spec)
        self._containers.put(self.name, inputs)
        self.check()
        self._containers.start(self.name)
        if self._cancelled.is_set():  # a kill that came before the start found nothing to kill
            self._containers.kill(self.name)
        status = self._containers.wait(self.name, seconds + MARGIN)
        if status is None:
            self._end()
        self.check()
        told = self._listen(status)
        told.late = status is None
        told.oom = told.end is None and self._containers.killed_for_memory(self.name)
        return told

    def _end(self) -> None:
        """Kill, and see that it is over."""
        self._containers.kill(self.name)
        if self._containers.wait(self.name, MARGIN) is None:
            message = f"container {self.name} cannot be ended"
            raise broken(message)

    def _listen(self, status: int | None) -> Told:
        """Read what process 1 told. What is not complete is asked for once more."""
        told = read(self._containers.said(self.name))
        if told.end is not None and not told.complete:
            time.sleep(0.2)
            told = read(self._containers.said(self.name))
            if not told.complete:
                message = "podman lost a part of what the run printed"
                raise broken(message)
        if told.refused:
            ignored = ", ".join(f"{name} (in force: {is_})" for name, is_ in told.refused.items())
            message = f"podman does not apply these limits here: {ignored}; use cgroup v2"
            raise broken(message, missing=True)
        if told.end is None and status not in (None, 137):
            error = self._containers.said(self.name, stderr=True).decode(errors="replace")
            message = f"process 1 of the container failed ({status}): {error[-500:].strip()}"
            raise broken(message)
        return told

    def remove(self) -> None:
        """Remove the container, if there is one."""
        self._containers.remove(self.name)
