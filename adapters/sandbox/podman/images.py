"""Images by content: the same spec is built once, whoever asks, and found by its key.

An image is made in stages, each in a container of its own that is committed when it succeeded: the
tools (a virtual environment, uv), the system packages, the Python packages, and the commands. A stage
has a key of its own, so that a rejected Python package does not cost the system packages again.
Commands come last and get no settings of this machine: no installer runs in what they have changed,
and there are no credentials where they run.
Podman's build endpoint is not used: in podman 4 it goes on with a RUN whose client has gone, so that
neither a limit nor a cancelled task would end it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codetape.adapters.sandbox.credentials import without_passwords
from codetape.adapters.sandbox.installers import acceptable
from codetape.adapters.sandbox.podman import handed
from codetape.adapters.sandbox.podman.containers import OWNER, Containers, image_facts
from codetape.adapters.sandbox.podman.failures import explain
from codetape.adapters.sandbox.podman.jobs import Job
from codetape.adapters.sandbox.podman.service import Missing, Service, broken
from codetape.adapters.sandbox.podman.settings import BASE, MADE, Settings
from codetape.adapters.sandbox.podman.storeroom import REPOSITORY, Uses
from codetape.adapters.sandbox.podman.tars import of_bytes
from codetape.adapters.sandbox.podman.telling import Told
from codetape.engine.ports import SandboxBroken
from codetape.states.packages import is_system_package
from codetape.states.values import BuildFailure, ImageRef, ImageSpec, canonical

BUILDER = 2  # raise it when equal keys shall not mean equal images any more
VENV = "/opt/venv"
LOG = 64 << 10  # bytes kept of each stream of a build
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Stage:
    """One step from image to image. `key` covers all that came before, too."""

    kind: str  # "tools", "system", "packages" or "commands"
    parent: str
    key: str
    names: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        """The name of the image."""
        return f"{REPOSITORY}:{self.key}"


def stages(spec: ImageSpec, base: str) -> list[Stage]:
    """Return the stages of `spec` on the image with the id `base`."""
    found = [_stage("tools", base)]
    if spec.system_packages:
        found.append(_stage("system", found[-1].ref, spec.python, spec.system_packages))
    if spec.requirements:
        found.append(_stage("packages", found[-1].ref, spec.python, spec.requirements))
    if spec.commands:
        found.append(_stage("commands", found[-1].ref, spec.python, (), spec.commands))
    return found


def _stage(
    kind: str,
    parent: str,
    python: str | None = None,
    names: tuple[str, ...] = (),
    commands: tuple[str, ...] = (),
) -> Stage:
    builder = hashlib.sha256(handed.source("stage.py")).hexdigest()
    content = canonical([BUILDER, builder, kind, parent, python, list(names), list(commands)])
    key = hashlib.sha256(content.encode()).hexdigest()[:32]
    return Stage(kind, parent, key, names, commands)


def invalid(spec: ImageSpec) -> BuildFailure | None:
    """Refuse what is no name: nothing else may reach an installer's command line."""
    for name in spec.requirements:
        if not acceptable(name):
            message = f"{name!r} is no package name"
            return BuildFailure(cause="unknown_package", message=message, packages=(name,))
    for name in spec.system_packages:
        if not is_system_package(name):
            message = f"{name!r} is no system package name"
            return BuildFailure(cause="unknown_system_package", message=message, packages=(name,))
    return None


class Images:
    """Finds and builds the images of one sandbox. Blocking; any thread."""

    def __init__(self, service: Service, containers: Containers, settings: Settings) -> None:
        self._service = service
        self._containers = containers
        self._settings = settings
        self._uses = Uses()
        self._labels: dict[str, dict[str, str]] = {}  # by image of ours: its content never changes

    def build(self, spec: ImageSpec, track: Callable[[Job], None]) -> ImageRef | BuildFailure:
        """Make the image of `spec`, or find it. `track` is told of each job that is started.

        Raises SandboxBroken and Cancelled.
        """
        if refused := invalid(spec):
            return refused
        base = spec.base or self._settings.base or self._default()
        facts = self._base(base)
        if spec == ImageSpec(base=spec.base):
            return ImageRef(ref=base, spec_key=spec.key, cached=True)
        return self._image(spec, stages(spec, facts["Id"]), facts, track)

    def _image(
        self,
        spec: ImageSpec,
        found: list[Stage],
        base: dict[str, Any],
        track: Callable[[Job], None],
    ) -> ImageRef | BuildFailure:
        """Make the stages that are not there; none has to be where the last one is."""
        cached = True
        until = time.monotonic() + self._settings.build_seconds
        for stage in found if image_facts(self._service, found[-1].ref) is None else found[-1:]:
            made = self._make(stage, base, until, track)
            if isinstance(made, BuildFailure):
                return made
            if other := self._other_python(spec, stage):
                return other
            cached = cached and not made
        self._uses.note(stage.key for stage in found)
        last = found[-1].ref
        return ImageRef(ref=last, spec_key=spec.key, python=self.python(last), cached=cached)

    def _other_python(self, spec: ImageSpec, stage: Stage) -> BuildFailure | None:
        """Refuse an image whose Python is not the one that was asked for."""
        python = self.python(stage.ref) or ""
        if spec.python is None or spec.python == python or spec.python.startswith(f"{python}."):
            return None
        message = f"the base image has Python {python}, and {spec.python} was asked for"
        return BuildFailure(cause="other", message=message)

    def python(self, ref: str) -> str | None:
        """Return the version of the Python in an image of ours, None for other images."""
        return self._label(ref, "codetape.python")

    def interpreter(self, ref: str) -> str | None:
        """Return the system's Python in an image of ours: packages are installed beside it."""
        return self._label(ref, "codetape.executable")

    def _label(self, ref: str, name: str) -> str | None:
        labels = self._labels.get(ref)
        if labels is None:
            labels = (image_facts(self._service, ref) or {}).get("Labels") or {}
            if name in labels:
                self._labels[ref] = labels
        return labels.get(name)

    def _default(self) -> str:
        return BASE if image_facts(self._service, MADE) is None else MADE

    def _base(self, name: str) -> dict[str, Any]:
        """Return the facts of the base image; pulls it if it is not here. Raises SandboxBroken."""
        facts = image_facts(self._service, name)
        if facts is not None:
            return facts
        why = "a local image is not pulled" if name.startswith("localhost/") else self._pull(name)
        facts = None if why else image_facts(self._service, name)
        if facts is None:
            message = (
                f"podman has no image {name} ({why}); to get it: podman pull {shlex.quote(name)}"
            )
            raise broken(message, missing=True)
        return facts

    def _pull(self, name: str) -> str:
        """Pull an image; returns what went wrong, or nothing."""
        try:
            response = self._service.post(
                "/images/pull",
                params={"reference": name, "policy": "missing", "quiet": "true"},
                headers=_login(self._settings.login),
                timeout=self._settings.pull_seconds,
            )
        except (SandboxBroken, TimeoutError, Missing) as error:
            return str(error)
        said = [json.loads(line) for line in response.content.splitlines() if line.strip()]
        return "; ".join(str(line["error"]) for line in said if line.get("error"))

    def _make(
        self, stage: Stage, base: dict[str, Any], until: float, track: Callable[[Job], None]
    ) -> bool | BuildFailure:
        """Build one stage unless it is there; says whether it had to. One at a time for each key."""
        job = Job(self._containers)
        track(job)

        def wait() -> None:
            job.check()
            time.sleep(0.1)

        with self._uses.alone(stage.key, wait):
            if image_facts(self._service, stage.ref) is not None:
                return False
            return self._build(stage, base, until, job) or True

    def _build(
        self, stage: Stage, base: dict[str, Any], until: float, job: Job
    ) -> BuildFailure | None:
        seconds = max(1.0, until - time.monotonic())
        try:
            told = job.do(self._container(stage, seconds), self._inputs(stage), seconds)
            if failure := _failure(stage, told, self._settings):
                return failure
            job.check()
            changes = _changes(stage, base, told)
            self._containers.commit(job.name, REPOSITORY, stage.key, changes)
        except SandboxBroken as error:
            if "python3" in error.failure.message and "not found" in error.failure.message:
                return BuildFailure(cause="other", message="the base image has no python3")
            raise
        finally:
            job.remove()
        return None

    def _container(self, stage: Stage, seconds: float) -> dict[str, Any]:
        """A container for a stage: root inside, since it installs; with a network, unlike a run."""
        python = self.interpreter(stage.parent) or "python3"
        work = {
            "command": [python, "-I", "-S", f"{handed.FOLDER}/stage.py", handed.FOLDER],
            "seconds": seconds,
            "output": LOG,
        }
        network = self._settings.network
        return {
            "image": stage.parent,
            "entrypoint": handed.command(python, work),
            "user": "0:0",
            "work_dir": "/",
            "no_new_privileges": True,
            **({"netns": {"nsmode": network}} if network else {}),
        }

    def _inputs(self, stage: Stage) -> Iterator[bytes]:
        """What a stage gets. It lies in the container's own layer and is removed before the commit."""
        job = {
            "stage": stage.kind,
            "names": stage.names,
            "commands": stage.commands,
            "settings": self._settings.needed_by(stage.kind),
        }
        files = {"stage.py": handed.source("stage.py"), "stage.json": json.dumps(job).encode()}
        if self._settings.certificates is not None:
            files["ca.pem"] = self._settings.certificates.read_bytes()
        return of_bytes({handed.path(name): body for name, body in files.items()} | handed.files())


def _failure(stage: Stage, told: Told, settings: Settings) -> BuildFailure | None:
    """Say why a stage failed, None if it did not."""
    log = without_passwords(f"{told.stdout}\n{told.stderr}".strip(), settings.environment)
    limit = settings.build_seconds
    if told.end is None or told.end["timed_out"]:
        message = f"the build took longer than {limit:g} seconds"
        return BuildFailure(cause="timeout", message=message, log=log)
    if told.end["status"] == 0:
        return None
    step, index = _step(told.report)
    asked = stage.commands[index : index + 1] if step == "command" else stage.names
    return explain(step, log, log, asked)


def _step(report: bytes) -> tuple[str, int]:
    """Return the step that failed and its number. A package that is built could forge this line."""
    try:
        said = json.loads(report.splitlines()[-1])
        return str(said["step"]), int(said["index"])
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return "unknown", 0


def _changes(stage: Stage, base: dict[str, Any], told: Told) -> list[str]:
    """The settings of the image. Labels of the container come along: the owner's is emptied."""
    variables = dict(v.partition("=")[::2] for v in base["Config"].get("Env") or ())
    path = variables.get("PATH") or PATH
    facts = {
        OWNER: "",
        "codetape.base": base["Id"],
        "codetape.builder": str(BUILDER),
        "codetape.commands": json.dumps(stage.commands),
        "codetape.executable": (told.end or {})["executable"],
        "codetape.key": stage.key,
        "codetape.names": " ".join(stage.names),
        "codetape.python": (told.end or {})["python"],
        "codetape.stage": stage.kind,
    }
    labels = [f"LABEL {json.dumps(name)}={json.dumps(value)}" for name, value in facts.items()]
    return [f"ENV PATH={VENV}/bin:{path}", "ENTRYPOINT []", 'CMD ["python3"]', *labels]


def _login(login: Mapping[str, str]) -> dict[str, str]:
    """Return the header that tells a registry who pulls."""
    if not login:
        return {}
    return {"X-Registry-Auth": base64.urlsafe_b64encode(canonical(dict(login)).encode()).decode()}
