"""One run in a container: what it may do, and what it did."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codetape.adapters.sandbox import files, report, runner
from codetape.adapters.sandbox.podman import handed, tars
from codetape.adapters.sandbox.podman.containers import Containers
from codetape.adapters.sandbox.podman.images import VENV
from codetape.adapters.sandbox.podman.jobs import Job
from codetape.adapters.sandbox.podman.service import Missing, broken
from codetape.adapters.sandbox.podman.telling import Told
from codetape.states.values import Limits, RunOutcome, RunSpec

INPUTS, OUTPUTS = "/var/inputs", "/var/outputs"
TMP = "/tmp"  # noqa: S108 - of the container, where it is private
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


class Run:
    """One run, from its spec to its outcome. Blocking."""

    def __init__(
        self, spec: RunSpec, containers: Containers, job: Job, outputs: Path, python: str | None
    ) -> None:
        self._spec = spec
        self._containers = containers
        self._job = job
        self._outputs = outputs
        self._python = f"{VENV}/bin/python" if python else "python3"
        self._nonce = secrets.token_hex(16)

    def do(self, environment: Mapping[str, str]) -> RunOutcome:
        """Run. `environment` is the host's: secrets are looked up there by their names.

        Raises SandboxBroken and Cancelled.
        """
        collected = files.Collected()
        names = [name for name in self._spec.outputs if _plain(name, collected.refused)]
        try:
            container = self._container(self._variables(environment), names)
            told = self._job.do(container, self._inputs(), self._spec.limits.seconds)
            self._collect((told.end or {}).get("outputs", {}), collected)
        except Missing as error:
            message = f"the image {self._spec.image.ref} is gone: build it again ({error})"
            raise broken(message) from error
        finally:
            self._job.remove()
        return self._outcome(told, collected)

    def _container(self, variables: dict[str, str], names: list[str]) -> dict[str, Any]:
        return {
            "image": self._spec.image.ref,
            "entrypoint": handed.command(self._python, self._work(names)),
            "env": variables,
            "user": NOBODY,
            "work_dir": "/",
            "read_only_filesystem": True,
            "read_write_tmpfs": False,
            "cap_drop": ["all"],
            "no_new_privileges": True,
            "resource_limits": _resources(self._spec.limits),
            "mounts": [_tmpfs(TMP, SCRATCH)],
            "volumes": [{"Dest": OUTPUTS, "Options": ["nosuid", "nodev"]}],
            **({} if self._spec.network else {"netns": {"nsmode": "none"}}),
        }

    def _work(self, names: list[str]) -> dict[str, Any]:
        """The job of process 1, and with it the command line of the runner."""
        limits = self._spec.limits
        where = f"{handed.FOLDER}/{runner.FILE}"
        command = [self._python, *runner.start(where), self._spec.purpose]
        command += ["--report", "fd:3", "--nonce", "-", "--inputs", INPUTS, "--cwd", OUTPUTS]
        processes = None if limits.processes is None else limits.processes + OURS
        return {
            "command": [*command, "--", *self._spec.arguments],
            "seconds": limits.seconds,
            "output": limits.output,
            "disk": limits.disk,
            "outputs": OUTPUTS,
            "collect": names,
            "expect": {"memory": limits.memory, "processes": processes, "cpus": limits.cpus},
            "confine": True,
        }

    def _variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of the run: ours, what was asked for, and the secrets that there are."""
        known = {name: environment[name] for name in self._spec.secrets if name in environment}
        return {**ENVIRONMENT, **self._spec.environment, **known, "CODETAPE_NONCE": self._nonce}

    def _inputs(self) -> Iterator[bytes]:
        ours = handed.files() | {handed.path(runner.FILE): runner.archive()}
        return tars.of_inputs(INPUTS[1:], self._spec.files, self._spec.host_files, ours)

    def _collect(self, found: dict[str, Any], collected: files.Collected) -> None:
        """Fetch the outputs that are there, then take from them what may be taken."""
        present = [name for name, kind in found.items() if kind is not None]
        if not present:
            return
        with tempfile.TemporaryDirectory(prefix="codetape-outputs-") as scratch:
            room = self._spec.limits.disk
            for name in present:
                kind, size = found[name]
                if kind not in ("file", "folder"):
                    collected.refused.append(f"{name}: {kind}, not a file or folder")
                elif room is not None and size > room:
                    collected.refused.append(f"{name}: too large ({size} bytes)")
                else:
                    collected.refused += self._fetch(name, Path(scratch), room)
            got = files.collect(Path(scratch), present, self._outputs, room)
        collected.refused += got.refused
        collected.outputs += got.outputs

    def _fetch(self, name: str, scratch: Path, room: int | None) -> list[str]:
        """Unpack one output into `scratch`; returns what was left out, with reasons."""
        parent = (scratch / name).parent
        parent.mkdir(parents=True, exist_ok=True)
        tar = self._containers.archive(self._job.name, f"{OUTPUTS}/{name}")
        try:
            refused = tars.unpack(tar, parent, room, files.MOST_FILES)
        except ValueError as error:
            files.remove(scratch / name)
            return [f"{name}: {error}"]
        above = name.rpartition("/")[0]
        return [f"{above}/{each}" if above else each for each in refused]

    def _outcome(self, told: Told, collected: files.Collected) -> RunOutcome:
        # Without an end, process 1 was killed: by us for being late, or by the kernel or an operator.
        end = told.end or {
            "timed_out": told.late,
            "signal": 9,
            "oom_kills": 1 if told.oom else None,
        }
        heard = report.read_report(told.report, self._nonce)
        ended = heard.exit or report.Exit(end.get("status"), end.get("signal"), None)
        kills = end.get("oom_kills")
        finished = heard.report is not None and heard.report.finished
        return RunOutcome(
            exit_status=ended.status,
            signal=ended.signal,
            timed_out=end["timed_out"],
            out_of_memory=None if kills is None else kills > 0,
            disk_full=end.get("disk_full"),
            too_much_output=end.get("too_much_output", False),
            forks_refused=end.get("forks_refused"),
            did_not_exit=finished and end["timed_out"],
            stdout=told.stdout,
            stderr=told.stderr,
            stdout_cut=told.cut("out"),
            stderr_cut=told.cut("err"),
            seconds=end.get("seconds"),
            cpu_seconds=end.get("cpu_seconds"),
            peak_memory=end.get("peak_memory") or ended.peak_memory,
            report=heard.report if self._spec.purpose == "tests" else None,
            outputs=tuple(collected.outputs),
            refused_outputs=tuple(collected.refused),
        )


def _plain(name: str, refused: list[str]) -> bool:
    """Say whether `name` is one below the outputs; the reason goes to `refused`."""
    try:
        files.checked(name)
    except ValueError as error:
        refused.append(f"{name}: {error}")
        return False
    return True


def _resources(limits: Limits) -> dict[str, Any]:
    """Podman's form of the limits. `nano_cpus` would be ignored: quota and period are not."""
    found: dict[str, Any] = {}
    if limits.memory is not None:
        found["memory"] = {"limit": limits.memory, "swap": limits.memory}
    if limits.cpus is not None:
        found["cpu"] = {"quota": int(limits.cpus * PERIOD), "period": PERIOD}
    if limits.processes is not None:
        found["pids"] = {"limit": limits.processes + OURS}
    return found


def _tmpfs(place: str, size: str) -> dict[str, Any]:
    options = [f"size={size}", "mode=1777", "nosuid", "nodev"]
    return {"type": "tmpfs", "source": "tmpfs", "destination": place, "options": options}
