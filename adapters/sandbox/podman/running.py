"""One run in a container: what it may do, and what it did."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetape.adapters.sandbox import files, leftovers, report, runner, words
from codetape.adapters.sandbox.podman import handed, tars
from codetape.adapters.sandbox.podman.containers import Containers
from codetape.adapters.sandbox.podman.images import VENV
from codetape.adapters.sandbox.podman.jobs import Job
from codetape.adapters.sandbox.podman.service import Missing, broken
from codetape.adapters.sandbox.podman.telling import Told
from codetape.states.values import Limits, RunOutcome, RunSpec

INPUTS, OUTPUTS = "/var/inputs", "/var/outputs"
TMP = "/tmp"  # noqa: S108 - of the container, where it is private
PLACES = (OUTPUTS, TMP, "/dev/shm")  # noqa: S108 - of the container: what can be written there
NOBODY = "65534:65534"
OURS = 2  # processes of ours inside: process 1, and the parent of the runner
PERIOD = 100_000  # microseconds in which the share of the CPU is counted
SCRATCH = "256m"  # of /tmp; it counts as memory of the run
ENVIRONMENT = {
    "HOME": TMP,
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",  # a window would wait for somebody to close it
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",  # what was printed is kept when the run is ended
    "TMPDIR": TMP,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a container has to know before it starts; the rest of a run may come later."""

    image: str
    python: str  # the Python of the system in it, which no package can change
    environment: str  # the virtual environment for the code, or nothing
    network: bool
    memory: int | None
    cpus: float | None
    processes: int | None

    @classmethod
    def of(cls, image: str, python: str | None, limits: Limits, *, network: bool) -> Shape:
        """`python` is the system's Python in an image of ours, None for other images."""
        place = (python, VENV) if python else ("python3", "")
        return cls(image, *place, network, limits.memory, limits.cpus, limits.processes)

    def container(self, job: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
        """Return what podman is told: all that holds the code, whenever its files come."""
        return {
            "image": self.image,
            "entrypoint": handed.command(self.python, {**job, "expect": self._expected()}),
            "env": dict(variables),
            "user": NOBODY,
            "work_dir": "/",
            "read_only_filesystem": True,
            "read_write_tmpfs": False,
            "cap_drop": ["all"],
            "no_new_privileges": True,
            "resource_limits": self._resources(),
            "mounts": [_tmpfs(TMP, SCRATCH)],
            "volumes": [{"Dest": OUTPUTS, "Options": ["nosuid", "nodev"]}],
            **({} if self.network else {"netns": {"nsmode": "none"}}),
        }

    def prepared(self) -> dict[str, Any]:
        """Return what podman is told of a container that waits: its inputs come on a volume."""
        spec = self.container({"waits": True}, ENVIRONMENT)
        inputs = {"Dest": INPUTS, "Options": ["ro", "nosuid", "nodev"]}
        return {**spec, "stdin": True, "volumes": [*spec["volumes"], inputs]}

    def _expected(self) -> dict[str, Any]:
        """The limits that process 1 has to find in force."""
        processes = None if self.processes is None else self.processes + OURS
        return {"memory": self.memory, "processes": processes, "cpus": self.cpus}

    def _resources(self) -> dict[str, Any]:
        """Podman's form of the limits. `nano_cpus` would be ignored: quota and period are not."""
        found: dict[str, Any] = {}
        if self.memory is not None:
            found["memory"] = {"limit": self.memory, "swap": self.memory}
        if self.cpus is not None:
            found["cpu"] = {"quota": int(self.cpus * PERIOD), "period": PERIOD}
        if self.processes is not None:
            found["pids"] = {"limit": self.processes + OURS}
        return found


class Run:
    """One run, from its spec to its outcome, in the container of `job`. Blocking."""

    def __init__(
        self, spec: RunSpec, shape: Shape, containers: Containers, job: Job, outputs: Path
    ) -> None:
        self._spec = spec
        self._shape = shape
        self._containers = containers
        self._job = job
        self._outputs = outputs
        self._nonce = secrets.token_hex(16)

    def do(self, environment: Mapping[str, str]) -> RunOutcome:
        """Run. `environment` is the host's: secrets are looked up there by their names.

        The container is left for the caller to remove. Raises SandboxBroken and Cancelled.
        """
        collected = files.Collected()
        names = [name for name in self._spec.outputs if _plain(name, collected.refused)]
        variables = self._variables(environment)
        try:
            if self._job.place is None:
                told = self._fresh(variables, names)
            else:
                told = self._handed(self._job.place, variables, names)
            heard = report.read_report(told.report, self._nonce)
            if heard.has_outputs(self._spec):
                self._collect((told.end or {}).get("outputs", {}), collected)
        except Missing as error:
            if "image" not in str(error):  # the container, which somebody removed
                raise
            message = f"the image {self._spec.image.ref} is gone: build it again ({error})"
            raise broken(message) from error
        return self._outcome(told, heard, collected)

    def _fresh(self, variables: dict[str, str], names: list[str]) -> Told:
        """Everything is known before the container is made."""
        variables = {**ENVIRONMENT, **variables, "CODETAPE_NONCE": self._nonce}
        container = self._shape.container(self._work(names), variables)
        spec = self._spec
        inputs = tars.of_inputs(INPUTS[1:], spec.files, spec.host_files, ours())
        return self._job.do(container, inputs, runner.longest(spec))

    def _handed(self, place: Path, variables: dict[str, str], names: list[str]) -> Told:
        """The container waits for its files and its job."""
        spec = self._spec
        files.stage(place, spec.files, spec.host_files)
        rest = {**self._work(names), "environment": variables, "nonce": self._nonce}
        return self._job.go(rest, runner.longest(spec), stopped=bool(names))

    def _work(self, names: list[str]) -> dict[str, Any]:
        """The job of process 1, and with it the command line of the runner."""
        limits, python = self._spec.limits, self._shape.python
        where = f"{handed.FOLDER}/{runner.FILE}"
        command = [python, *runner.start(where), self._spec.purpose]
        if self._shape.environment:
            command += ["--python", f"{self._shape.environment}/bin/python"]
        command += ["--report", "fd:3", "--nonce", "-", "--inputs", INPUTS, "--cwd", OUTPUTS]
        command += runner.then(self._spec, PLACES)
        return {
            "command": [*command, "--", *self._spec.arguments],
            "seconds": runner.longest(self._spec),
            "output": limits.output,
            "disk": limits.disk,
            "outputs": OUTPUTS,
            "collect": names,
            "confine": True,
        }

    def _variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """What was asked for, and the secrets that there are. Raises SandboxBroken."""
        known = {name: environment[name] for name in self._spec.secrets if name in environment}
        variables = {**self._spec.environment, **known}
        words.check(self._spec.arguments, variables)
        return variables

    def _collect(self, found: dict[str, Any], collected: files.Collected) -> None:
        """Fetch the outputs that are there, then take from them what may be taken."""
        present = [name for name, kind in found.items() if kind is not None]
        if not present:
            return
        with leftovers.scratch(self._job.name) as folder:
            scratch = folder / "outputs"
            room = self._spec.limits.disk
            for name in present:
                kind, size = found[name]
                if kind not in ("file", "folder"):
                    collected.refused.append(f"{name}: {kind}, not a file or folder")
                elif room is not None and size > room:
                    collected.refused.append(f"{name}: too large ({size} bytes)")
                else:
                    collected.refused += self._fetch(name, scratch, room)
            got = files.collect(scratch, present, self._outputs, room)
        collected.refused += got.refused
        collected.outputs += got.outputs

    def _fetch(self, name: str, scratch: Path, room: int | None) -> list[str]:
        """Unpack one output into `scratch`; returns what was left out, with reasons."""
        parent = (scratch / name).parent
        parent.mkdir(parents=True, exist_ok=True)
        try:
            tar = self._containers.archive(self._job.name, f"{OUTPUTS}/{name}")
            refused = tars.unpack(tar, parent, room, files.MOST_FILES)
        except Missing as error:
            if "no such file" not in str(error):
                raise
            return [f"{name}: podman cannot fetch a file of this name"]  # *, for one: a pattern
        except ValueError as error:
            files.remove(scratch / name)
            return [files.printable(f"{name}: {error}")]
        above = name.rpartition("/")[0]
        return [f"{above}/{each}" if above else each for each in refused]

    def _outcome(self, told: Told, heard: report.Heard, collected: files.Collected) -> RunOutcome:
        # Without an end, process 1 was killed: by us for being late, or by the kernel or an operator.
        end = told.end or {
            "timed_out": told.late,
            "signal": 9,
            "oom_kills": 1 if told.oom else None,
        }
        ended = heard.exit or report.Exit(end.get("status"), end.get("signal"), None)
        kills = end.get("oom_kills")
        finished = heard.report is not None and heard.report.finished
        late = end["timed_out"] or ended.late
        return RunOutcome(
            exit_status=ended.status,
            signal=ended.signal,
            timed_out=late,
            out_of_memory=None if kills is None else kills > 0,
            disk_full=end.get("disk_full"),
            too_much_output=end.get("too_much_output", False),
            forks_refused=end.get("forks_refused"),
            did_not_exit=finished and late and heard.script is None,
            stdout_cut=told.cut("out"),
            stderr_cut=told.cut("err"),
            seconds=end.get("seconds"),
            cpu_seconds=end.get("cpu_seconds"),
            peak_memory=end.get("peak_memory") or ended.peak_memory,
            report=heard.report if self._spec.purpose == "tests" else None,
            outputs=tuple(collected.outputs),
            refused_outputs=tuple(collected.refused),
            **heard.words(told.stdout, told.stderr, self._nonce),
        )


def ours() -> dict[str, bytes]:
    """Return the files of ours that every run needs, by their paths in a tar."""
    return handed.files() | {handed.path(runner.FILE): runner.archive()}


def _plain(name: str, refused: list[str]) -> bool:
    """Say whether `name` is one below the outputs; the reason goes to `refused`."""
    try:
        files.checked(name)
    except ValueError as error:
        refused.append(f"{name}: {error}")
        return False
    return True


def _tmpfs(place: str, size: str) -> dict[str, Any]:
    options = [f"size={size}", "mode=1777", "nosuid", "nodev"]
    return {"type": "tmpfs", "source": "tmpfs", "destination": place, "options": options}
