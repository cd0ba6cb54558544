"""What the sandboxes without containers share: build an environment, stage, run, collect, delete."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codetape.adapters.sandbox import leftovers, runner, words
from codetape.adapters.sandbox.cgroups import Group, Parents, find_parents
from codetape.adapters.sandbox.environments import Environments
from codetape.adapters.sandbox.files import Collected, collect, free, measure, stage
from codetape.adapters.sandbox.leftovers import Outputs
from codetape.adapters.sandbox.report import Heard, read_report
from codetape.adapters.sandbox.supervise import Cause, Ended, Launch, Threads, Wish, supervise
from codetape.engine.ports import SandboxBroken
from codetape.states.values import (
    BuildFailure,
    ImageRef,
    ImageSpec,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    TextFile,
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run while it is being prepared: the folders exist, the files are in place."""

    spec: RunSpec
    folder: Path  # holds `inputs`, `outputs`, `tmp` and the runner; nobody else's
    environment: Path
    group: Group
    nonce: str
    free: int  # bytes on the disk when it began
    reader: int  # the two ends of what the report goes through
    writer: int
    user: int | None = None  # the number of the user that it runs as; None: the one that we are

    @property
    def inputs(self) -> Path:
        """What appears as /var/inputs."""
        return self.folder / "inputs"

    @property
    def outputs(self) -> Path:
        """What appears as /var/outputs."""
        return self.folder / "outputs"

    def command(
        self,
        base: str,
        environment: str,
        script: str,
        inputs: str,
        places: tuple[str, ...],
        *,
        own_user: bool,
    ) -> tuple[str, ...]:
        """Return what starts the runner, with the paths as they are where it runs.

        `base` is the interpreter behind the environment: no package has a say in how it starts.
        `places` are the folders that can be written to; the run begins in the first.
        `own_user` says that the processes of the run are counted apart from all others.
        """
        limits = self.spec.limits
        chosen = {"core": 0, "fsize": limits.disk}
        if not self.group.has("memory"):
            chosen["as"] = limits.memory
        if not self.group.has("pids") and own_user:
            chosen["nproc"] = limits.processes
        return (
            *(base, *runner.start(script), self.spec.purpose, "--report", f"fd:{self.writer}"),
            *("--python", f"{environment}/bin/python"),
            *("--nonce", "-", "--inputs", inputs, "--cwd", places[0]),
            *runner.then(self.spec, places),
            *(f"--limit={name}={n}" for name, n in chosen.items() if n is not None),
            *("--", *self.spec.arguments),
        )

    def watch(self) -> Cause | None:
        """Say which limit was passed that no descriptor tells of."""
        if self.group.ran_out():
            return "memory"
        return "disk" if self.disk_full() else None

    def disk_full(self) -> bool | None:
        """Say whether the outputs, or the temporary files, have reached the limit."""
        most = self.spec.limits.disk
        if most is None:
            return None
        lost = self.free - free(self.folder)
        return any(measure(self.folder / n, most - 1, lost) is None for n in ("outputs", "tmp"))


class LocalSandbox(ABC):
    """A sandbox on this machine's own kernel and files.

    `environments` is the folder of the environments, `outputs` that of collected outputs (None: a
    temporary one, which `close` removes). `secret` gives the value of a named secret, or None.
    `session` is written to each folder of a run.
    """

    def __init__(
        self,
        environments: Environments,
        outputs: Path | None,
        secret: Callable[[str], str | None],
        session: str,
    ) -> None:
        self._environments = environments
        self._session = session
        self._outputs = Outputs(outputs, session)
        self._secret = secret
        self._sweeping = threading.Lock()
        self._swept = False
        self._threads = Threads()

    @abstractmethod
    def _check(self) -> None:
        """Make sure that the sandbox works; cheap when it did before. Raises SandboxBroken."""

    @abstractmethod
    def _launch(self, run: Run) -> Launch:
        """Return what starts the runner, and how it is ended. Raises SandboxBroken."""

    def _tool(self) -> str | None:
        """Return the program that isolates, with its version; None where there is none."""
        return None

    def _user(self) -> contextlib.AbstractContextManager[int | None]:
        """Hold the user that one run is of; None is the one that we are."""
        return contextlib.nullcontext()

    def _text(self, run: Run, file: TextFile) -> str:  # noqa: ARG002 - for those that translate
        """Return what is written for a text file."""
        return file.text

    def _outward(self, run: Run, text: str) -> str:  # noqa: ARG002 - for those that translate
        """Translate a text that comes out."""
        return text

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Make or find the environment of `spec`. Raises SandboxBroken."""
        return await self._threads.run(lambda wish: self._build(spec, wish))

    def _build(self, spec: ImageSpec, wish: Wish) -> ImageRef | BuildFailure:
        try:
            self._check()
            self._sweep()
            built = self._environments.build(spec, wish)
        except OSError as error:
            message = f"the sandbox cannot build here: {error}"
            raise SandboxBroken(SandboxFailure(message=message)) from error
        if isinstance(built, ImageRef):
            return built.model_copy(update={"tool": self._tool()})
        return built

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Run once: stop, collect, delete, in this order. Raises SandboxBroken."""
        return await self._threads.run(lambda wish: self._run(spec, wish))

    async def close(self) -> None:
        """Stop what is running, then remove the temporary folders."""
        await self._threads.close()
        self._outputs.close()

    def _sweep(self) -> None:
        """Once: remove what dead processes left, of runs and of builds."""
        with self._sweeping:
            if not self._swept:
                leftovers.sweep()
                self._environments.sweep()
            self._swept = True

    @cached_property
    def _parents(self) -> Parents:
        return find_parents()

    def _run(self, spec: RunSpec, wish: Wish) -> RunOutcome:
        try:
            self._check()
            self._sweep()
            return self._ran(spec, wish)
        except OSError as error:  # a full disk, a folder that cannot be written
            message = f"the sandbox cannot run code here: {error}"
            raise SandboxBroken(SandboxFailure(message=message)) from error

    def _ran(self, spec: RunSpec, wish: Wish) -> RunOutcome:
        with (
            self._environments.held(spec.image) as environment,
            self._user() as user,
            self._workspace(user) as folder,
            self._group(spec) as group,
        ):
            leftovers.note(folder, self._session, group.folders.values())
            (folder / runner.FILE).write_bytes(runner.archive())
            reader, writer = socket.socketpair()  # its writer could read a pipe back
            run = Run(
                spec,
                folder,
                environment,
                group,
                secrets.token_hex(16),
                free(folder),
                reader.detach(),
                writer.detach(),
                user,
            )
            try:
                stage(run.inputs, spec.files, spec.host_files, lambda file: self._text(run, file))
                launch = self._launch(run)
            except BaseException:
                os.close(run.reader)
                os.close(run.writer)
                raise
            ended = supervise(launch, wish)
            if ended.cause == "cancelled":
                raise SandboxBroken(SandboxFailure(message="the sandbox was closed during a run"))
            return self._outcome(run, ended)

    @contextlib.contextmanager
    def _workspace(self, user: int | None) -> Iterator[Path]:
        """Make the private folder of a run, and remove it when the run is over."""
        with leftovers.scratch(self._session) as folder:
            for name in ("inputs", "outputs", "tmp"):
                (folder / name).mkdir()
                _hand_over(folder / name, user, writable=name != "inputs")
            _hand_over(folder, user, writable=False)
            yield folder

    @contextlib.contextmanager
    def _group(self, spec: RunSpec) -> Iterator[Group]:
        group = self._parents.group(spec.limits)
        try:
            yield group
        finally:
            group.kill()
            group.remove()

    def _outcome(self, run: Run, ended: Ended) -> RunOutcome:
        """Say what happened, from evidence."""
        heard = read_report(self._outward(run, ended.report.text()).encode(), run.nonce)
        if ended.cause == "exit" and heard.report is None:
            raise SandboxBroken(SandboxFailure(message=_not_started(ended)))
        status, signal, peak = _exit(ended, heard)
        group_peak = run.group.peak()
        collected = self._collect(run) if heard.has_outputs(run.spec) else Collected()
        out, err = (self._outward(run, stream.text()) for stream in (ended.stdout, ended.stderr))
        return RunOutcome(
            exit_status=status,
            signal=signal,
            timed_out=ended.cause == "timeout" or (heard.exit is not None and heard.exit.late),
            out_of_memory=run.group.ran_out(),
            disk_full=ended.cause == "disk" or run.disk_full(),
            too_much_output=ended.cause == "output",
            forks_refused=run.group.refused_forks(),
            stdout_cut=ended.stdout.cut,
            stderr_cut=ended.stderr.cut,
            seconds=ended.seconds,
            cpu_seconds=run.group.cpu_seconds(),
            peak_memory=peak if group_peak is None else group_peak,
            report=heard.report if run.spec.purpose == "tests" else None,
            outputs=tuple(collected.outputs),
            refused_outputs=tuple(collected.refused),
            **heard.words(out, err, run.nonce),
        )

    def _collect(self, run: Run) -> Collected:
        if not run.spec.outputs:
            return Collected()
        target = self._outputs.place(uuid.uuid4().hex)
        return collect(run.outputs, run.spec.outputs, target, run.spec.limits.disk)

    def _variables(self, run: Run) -> dict[str, str]:
        """Return the variables that the caller asked for. Raises SandboxBroken."""
        variables = dict(run.spec.environment)
        for name in run.spec.secrets:
            value = self._secret(name)
            if value is None:
                message = f"the secret {name} has no value: set the variable {name}"
                raise SandboxBroken(SandboxFailure(message=message, missing=True))
            variables[name] = value
        words.check(run.spec.arguments, variables)
        return variables


def _hand_over(folder: Path, user: int | None, *, writable: bool) -> None:
    """Let the user that code runs as enter `folder`, or write to it, and nobody else."""
    if user is None:
        return
    os.chown(folder, user if writable else 0, user)
    folder.chmod(0o700 if writable else 0o750)


def base_variables(environment: str, temporary: str) -> dict[str, str]:
    """Return the variables that every run has: an allow-list, nothing of the host's."""
    return {
        "PATH": f"{environment}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": temporary,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",  # plt.show() returns
        "NO_COLOR": "1",
        # More threads than processors only cost memory, and each counts as a process.
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }


def _exit(ended: Ended, heard: Heard) -> tuple[int | None, int | None, int | None]:
    """Return status, signal and peak memory; what a limit has ended did not end by itself."""
    if ended.cause != "exit":
        return None, None, None
    if heard.exit is not None:
        return heard.exit.status, heard.exit.signal, heard.exit.peak_memory
    return None, -ended.status if ended.status < 0 else None, None


def _not_started(ended: Ended) -> str:
    words = ended.stderr.text().strip()[-500:] or "it said nothing"
    return f"the sandbox did not start (status {ended.status}): {words}"
