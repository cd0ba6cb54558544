"""The sandbox that runs everything in containers of podman."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from codetape.adapters.owner import alive, current_owner, readable
from codetape.adapters.sandbox import leftovers
from codetape.adapters.sandbox.leftovers import Outputs
from codetape.adapters.sandbox.podman.containers import OWNER, Containers
from codetape.adapters.sandbox.podman.images import Images
from codetape.adapters.sandbox.podman.jobs import Cancelled, Job
from codetape.adapters.sandbox.podman.prepared import PAUSE, Shelf
from codetape.adapters.sandbox.podman.running import INPUTS, Run, Shape, ours
from codetape.adapters.sandbox.podman.service import Missing, Service, broken
from codetape.adapters.sandbox.podman.settings import Settings
from codetape.adapters.sandbox.podman.tars import of_bytes
from codetape.states.values import BuildFailure, ImageRef, ImageSpec, Limits, RunOutcome, RunSpec

T = TypeVar("T")
_log = logging.getLogger("codetape.sandbox")
# podman-py blocks: each run and each build in flight holds one, and a cancel needs one.
THREADS = 64
ENDING = 30.0  # seconds that a cancelled job gets to remove its container before we stop waiting


class PodmanSandbox:
    """Runs code that nobody has read in podman containers; implements engine.ports.Sandbox.

    `base` is the image that others are built on, for specs that name none; it has to have Python 3.
    `session` is written to each container's labels. `registry_secret` is the name of the variable
    with "user:password" for the registry of the base image. `outputs` is the folder in which each run
    gets a folder of its own for what it left (default: temporary, gone with `close`). `environment` is
    where addresses, settings and the values of secrets are looked up (this process's own by default).
    With `ahead` the container of the next run is started before it is asked for. Nothing is connected
    or started before the first use.
    """

    def __init__(
        self,
        *,
        base: str | None = None,
        session: str = "",
        registry_secret: str | None = None,
        outputs: Path | None = None,
        settings: Settings | None = None,
        environment: Mapping[str, str] | None = None,
        ahead: bool = True,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._settings = settings or Settings.read(self._environment)
        if base:
            self._settings = self._settings.on(base)
        if registry_secret:
            self._settings = self._settings.known_as(self._environment.get(registry_secret, ""))
        started = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        labels = {OWNER: current_owner(), "codetape.session": session, "codetape.started": started}
        self._service = Service(self._environment, self._settings.patience)
        self._containers = Containers(self._service, labels)
        self._images = Images(self._service, self._containers, self._settings)
        self._shelf = Shelf(self._prepare, ahead=ahead)
        self._limits, self._network = Limits(), False  # of the last run: the next is like it
        self._outputs = Outputs(outputs, session)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="codetape-podman")
        self._lock = threading.Lock()
        self._swept = False
        self._closed = False
        self._jobs: set[Job] = set()

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Make the image of `spec`, or find it; see engine.ports.Sandbox."""
        mine: list[Job] = []

        def work() -> ImageRef | BuildFailure:
            self._sweep()
            built = self._images.build(spec, lambda job: self._track(job, mine))
            if isinstance(built, ImageRef) and spec != ImageSpec(base=spec.base):
                self._shelf.want(self._shape(built.ref, self._limits, network=self._network))
            return built

        return await self._do(work, mine)

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Run once in a fresh container; see engine.ports.Sandbox."""
        mine: list[Job] = []

        def work() -> RunOutcome:
            self._sweep()
            self._limits, self._network = spec.limits, spec.network
            shape = self._shape(spec.image.ref, spec.limits, network=spec.network)
            job = self._shelf.take(shape) or Job(self._containers, as_own_user=True)
            try:
                self._track(job, mine)
                run = Run(spec, shape, self._containers, job, self._outputs.place(job.name))
                outcome = run.do(self._environment)
            except BaseException:
                job.remove()
                raise
            self._shelf.remove(job)
            self._shelf.want(shape, PAUSE)
            return outcome

        return await self._do(work, mine)

    def _shape(self, image: str, limits: Limits, *, network: bool) -> Shape:
        return Shape.of(image, self._images.interpreter(image), limits, network=network)

    def _prepare(self, shape: Shape) -> Job:
        """Make the container of a later run; see Shelf."""
        job = Job(self._containers, as_own_user=True)
        try:
            self._track(job, [])
            job.prepare(shape.prepared(), of_bytes(ours()), INPUTS)
        except BaseException:
            job.remove()
            raise
        finally:
            with self._lock:
                self._jobs.discard(job)
        return job

    async def close(self) -> None:
        """Stop what runs, wait until it has been collected and removed, then end our own service."""
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.cancel()
        self._threads.shutdown(wait=True)
        self._shelf.close()
        for name in self._containers.left():
            self._containers.remove(name)
        self._service.close()
        self._outputs.close()

    async def _do(self, work: Callable[[], T], jobs: list[Job]) -> T:
        """Do blocking work in a thread; cancelling the task ends its jobs and waits for their end."""
        if self._closed:
            message = "the sandbox is closed"
            raise broken(message)
        done = asyncio.wrap_future(self._threads.submit(self._tracked, work, jobs))
        try:
            return await asyncio.shield(done)
        except Cancelled as error:
            message = "the sandbox was closed during the run"
            raise broken(message) from error
        except asyncio.CancelledError:
            await asyncio.shield(self._end(jobs, done))
            raise

    async def _end(self, jobs: list[Job], done: asyncio.Future[T]) -> None:
        """End the jobs; those that a build would start next see that they are not wanted."""
        loop = asyncio.get_running_loop()
        done.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # seen
        until = loop.time() + ENDING
        while not done.done() and loop.time() < until:
            for job in list(jobs):
                await asyncio.to_thread(job.cancel)
            await asyncio.wait([done], timeout=0.2)

    def _tracked(self, work: Callable[[], T], jobs: list[Job]) -> T:
        try:
            return work()
        except Missing as error:
            message = f"what belongs to the sandbox was removed by somebody else: {error}"
            raise broken(message) from error
        except TimeoutError as error:
            message = f"podman gave no answer in {self._settings.patience:g} seconds"
            raise broken(message) from error
        except OSError as error:  # a full disk, a folder that cannot be written
            message = f"the sandbox cannot work here: {error}"
            raise broken(message) from error
        finally:
            with self._lock:
                self._jobs.difference_update(jobs)

    def _track(self, job: Job, mine: list[Job]) -> None:
        """Remember a job, so that it can be cancelled; raises Cancelled if it is too late for it."""
        with self._lock:
            mine.append(job)
            self._jobs.add(job)
        if self._closed:
            raise Cancelled

    def _sweep(self) -> None:
        """Once: remove the containers of processes that are gone. Unknown ones are left alone."""
        with self._lock:
            if self._swept:
                return
            leftovers.sweep()
            for name, owner in self._containers.ours():
                living = alive(owner)
                if living is False:
                    with contextlib.suppress(Exception):
                        self._containers.remove(name)
                elif living is None and owner not in ("", current_owner()):
                    whose = readable(owner)
                    _log.warning(
                        "container %s is of %s and is kept: podman rm -f -v %s", name, whose, name
                    )
            self._swept = True
