"""One thing that is done in a container of its own: a run, or a stage of a build. Blocking.

Either all at once (`do`), or in two halves: `prepare` before it is known what is to be done, then
`go`. A job has one thread at a time; `cancel` may come from any other one, at any moment.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codetape.adapters.sandbox.podman.attached import Attached
from codetape.adapters.sandbox.podman.containers import Containers
from codetape.adapters.sandbox.podman.service import broken
from codetape.adapters.sandbox.podman.telling import Told, read
from codetape.adapters.sandbox.run_users import own_user

MARGIN = 5.0  # seconds that process 1 gets to end the run itself and to tell, before it is killed


class Cancelled(Exception):
    """The job was cancelled; its container is being removed."""


class Job:
    """A container from its creation to its removal.

    With `as_own_user` root's podman runs it as a user that no other run and no account has.
    """

    def __init__(self, containers: Containers, *, as_own_user: bool = False) -> None:
        self.name = f"codetape-{secrets.token_hex(6)}"
        self._containers = containers
        self._cancelled = threading.Event()
        self._line: Attached | None = None
        self._held = contextlib.ExitStack()  # the number of its user, for as long as it lives
        self._user: int | None = None
        if as_own_user and os.geteuid() == 0:
            self._user = self._held.enter_context(own_user())
        self.place: Path | None = None  # of a prepared one: what is put there appears as its inputs

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
        self._start(spec, inputs)
        return self._follow(seconds)

    def prepare(self, spec: dict[str, Any], files: Iterator[bytes], inputs: str) -> None:
        """Create, hand over what is ours, and start: process 1 waits. `go` or `remove` has to follow.

        `inputs` is the place of the volume for the inputs. Raises SandboxBroken, also where it lies
        on another machine or belongs to somebody else; Missing and Cancelled.
        """
        self._start(spec, files)
        place = self._containers.place(self.name, inputs)
        if place is None:
            message = "the volumes of podman cannot be written from here"
            raise broken(message)
        self.place = place
        self._line = self._containers.attach(self.name)
        self.check()

    @property
    def waiting(self) -> bool:
        """Whether it is prepared, and has not come to harm since."""
        return self._line is not None and self._line.open and not self._cancelled.is_set()

    def go(self, rest: Mapping[str, Any], seconds: float, *, stopped: bool) -> Told:
        """Hand over the rest of the job, once the inputs are in `place`, and listen until its end.

        `stopped` says that the container has to have ended, too. `remove` has to follow. Raises
        SandboxBroken and Cancelled.
        """
        until = time.monotonic() + seconds + MARGIN
        told = Told()
        self.check()
        if self._line is not None:
            try:
                self._line.send(json.dumps(rest).encode() + b"\n", seconds + MARGIN)
            except OSError as error:
                self.check()
                message = f"the container that was prepared is gone: {error}"
                raise broken(message) from error
            told = read(self._line.heard(until - time.monotonic()))
        self.check()
        if told.complete and not stopped:
            return told
        return self._follow(max(0.0, until - time.monotonic() - MARGIN))

    def _start(self, spec: dict[str, Any], inputs: Iterator[bytes]) -> None:
        self.check()
        if self._user is not None:
            spec = {**spec, "user": f"{self._user}:{self._user}"}
        self._containers.create(self.name, spec)
        self._containers.put(self.name, inputs)
        self.check()
        self._containers.start(self.name)
        if self._cancelled.is_set():  # a kill that came before the start found nothing to kill
            self._containers.kill(self.name)

    def _follow(self, seconds: float) -> Told:
        """Wait until the container has ended, and read what it told."""
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
        if self._line is not None:
            self._line.close()
        self._containers.remove(self.name)
        self._held.close()
