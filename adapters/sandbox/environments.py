"""Environments: what stands for an image where there are no containers.

An environment lies in a cache folder under a key of its content, is built once however many ask for
it at the same time, and appears under its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codetape.adapters.sandbox.credentials import without_passwords
from codetape.adapters.sandbox.files import remove
from codetape.adapters.sandbox.installers import (
    acceptable,
    compiling,
    diagnose,
    installer,
    settings,
)
from codetape.adapters.sandbox.interpreters import Interpreter, find, reachable
from codetape.adapters.sandbox.supervise import Ended, Launch, Wish, kill_group, supervise
from codetape.engine.ports import SandboxBroken
from codetape.states.values import BuildFailure, ImageRef, ImageSpec, SandboxFailure

BUILDER = "2"  # part of every key: raise it when the same requirements lead to something else
LOG = 64 << 10  # bytes kept of each stream of a build
HALF = "."  # how the names of environments begin that are being built
MARK = "codetape.json"  # says what an environment holds; touched by each use


def default_folder() -> Path:
    """Return where environments are kept: XDG_CACHE_HOME, ~/.cache, or for root /var/cache.

    Root's home is closed to others, and the user that code runs as is another one.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if os.geteuid() == 0 and not reachable(base if base.exists() else base.parent):
        base = Path("/var/cache")
    return base / "codetape" / "environments"


@dataclass(frozen=True, slots=True)
class Environments:
    """The environments below `folder`.

    `usable` says which interpreters can be used; `seconds` limits a build as a whole, with the time
    that it waits for another one of the same key. `confined` puts a command that reads packages into
    a sandbox: it gets the command, the one folder that can be written, and the interpreter.
    """

    folder: Path
    usable: Callable[[Interpreter], bool] = lambda _: True
    seconds: float = 900.0
    confined: Callable[[tuple[str, ...], Path, Interpreter], tuple[str, ...]] = (
        lambda command, _folder, _interpreter: command
    )

    def build(self, spec: ImageSpec, wish: Wish) -> ImageRef | BuildFailure:
        """Make the environment of `spec`, or find it. Raises SandboxBroken."""
        if impossible := _impossible(spec):
            return impossible
        interpreter = find(spec.python, self.usable)
        if interpreter is None:
            return _no_python(spec.python)
        key = _key(spec, interpreter)
        found, folder = True, self.folder / key
        try:
            if not _stands(folder):  # who runs code in it holds the lock, too
                with self._locked(key, wish) as (lock, until):
                    found = _stands(folder)
                    steps = _Steps(interpreter, lock, wish, until)
                    if not found and (failure := self._make(key, spec, steps)):
                        return failure
            with contextlib.suppress(PermissionError):  # somebody else's, shared with us
                os.utime(folder / MARK)
        except OSError as error:
            return BuildFailure(cause="disk", message=f"cannot write environments: {error}")
        return ImageRef(ref=key, spec_key=spec.key, python=interpreter.version, cached=found)

    def path(self, image: ImageRef) -> Path:
        """Return the folder of an environment that was built. Raises SandboxBroken."""
        folder = self.folder / image.ref
        if "/" in image.ref or not _stands(folder):
            message = f"there is no environment {image.ref!r} here: build it again"
            raise SandboxBroken(SandboxFailure(message=message))
        return folder

    @contextlib.contextmanager
    def held(self, image: ImageRef) -> Iterator[Path]:
        """Yield the folder of an environment, which is not removed meanwhile. Raises SandboxBroken."""
        self.path(image)
        place = self.folder / f"{image.ref}.lock"
        # Others may have made it, for all to share: to write is more than a lock needs.
        with place.open("r" if place.exists() else "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield self.path(image)

    def prefix(self, environment: Path) -> Path:
        """Return the installation of the interpreter that `environment` stands on."""
        return _prefix(environment)

    def python(self, environment: Path) -> str:
        """Return the interpreter that `environment` stands on: no package can change it."""
        return str(_mark(environment)["executable"])

    @contextlib.contextmanager
    def _locked(self, key: str, wish: Wish) -> Iterator[tuple[int, float]]:
        """Hold the right to build `key`; yields the lock, and the moment at which the time is up."""
        until = time.monotonic() + self.seconds
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{key}.lock").open("w") as lock:
            while not locked(lock.fileno()):
                if wish.made or time.monotonic() > until:
                    break
                time.sleep(0.05)
            yield lock.fileno(), until

    def sweep(self) -> None:
        """Remove the halves of environments whose builders are gone, and nobody else's.

        Whoever builds holds a lock, and so does each program that it has started: as long as one of
        them lives, the lock is not to be had.
        """
        for half in self.folder.glob(f"{HALF}*"):
            key = half.name.removeprefix(HALF).partition(".")[0]
            with contextlib.suppress(OSError), (self.folder / f"{key}.lock").open("w") as lock:
                if locked(lock.fileno()):
                    shutil.rmtree(half, ignore_errors=True)

    def _make(self, key: str, spec: ImageSpec, steps: _Steps) -> BuildFailure | None:
        """Build aside, then move: nobody ever sees half an environment."""
        interpreter = steps.interpreter
        aside = self.folder / f"{HALF}{key}.{uuid.uuid4().hex[:8]}"
        try:
            failure = _install(aside, spec.requirements, steps)
            if failure is None:
                self._compile(aside, steps)
                _write_mark(aside, spec, interpreter)
                remove(self.folder / key)
                aside.rename(self.folder / key)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return failure

    def _compile(self, folder: Path, steps: _Steps) -> None:
        """Compile what can be compiled: without that, only imports take longer."""
        executable = steps.interpreter.executable
        command = compiling(executable, folder)
        steps.run(self.confined(command, folder, steps.interpreter))


def _write_mark(folder: Path, spec: ImageSpec, interpreter: Interpreter) -> None:
    """Write the mark anew: a package may have put a file, or a folder, of that name there."""
    mark = {
        "requirements": spec.requirements,
        "prefix": str(interpreter.prefix),
        "executable": str(interpreter.executable),
        "python": interpreter.version,
    }
    remove(folder / MARK)
    (folder / MARK).write_text(json.dumps(mark))


def _mark(environment: Path) -> dict[str, object]:
    mark: dict[str, object] = json.loads((environment / MARK).read_text())
    return mark


def _prefix(environment: Path) -> Path:
    return Path(str(_mark(environment)["prefix"]))


def _stands(environment: Path) -> bool:
    """Say whether an environment is whole, and what it stands on is still there.

    A machine that fell may have left an empty mark; a Python may have been removed since.
    """
    try:
        return _prefix(environment).is_dir() and (environment / "bin/python").exists()
    except (OSError, ValueError, TypeError, KeyError):
        return False


def locked(descriptor: int) -> bool:
    """Take the lock of an open file for as long as it is open; False if somebody else has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _key(spec: ImageSpec, interpreter: Interpreter) -> str:
    """Return the name of the environment: equal names, equal content."""
    content = json.dumps([BUILDER, interpreter.identity, sorted(spec.requirements)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _impossible(spec: ImageSpec) -> BuildFailure | None:
    """Return why `spec` is nothing for an environment."""
    here = "this sandbox cannot {}: it has no image of its own. Use the podman sandbox"
    if spec.system_packages:
        message = here.format(f"install system packages ({', '.join(spec.system_packages)})")
        packages = spec.system_packages
        return BuildFailure(cause="unknown_system_package", message=message, packages=packages)
    if spec.commands:
        message = here.format("run commands in a build")
        return BuildFailure(cause="command", message=message, packages=spec.commands)
    refused = tuple(name for name in spec.requirements if not acceptable(name))
    if refused:
        message = f"not the name of a package with an optional version: {', '.join(refused)}"
        return BuildFailure(cause="unknown_package", message=message, packages=refused)
    return None


def _no_python(version: str | None) -> BuildFailure:
    wanted = f"Python {version}" if version else "Python"
    message = f"there is no {wanted} on this machine that the sandbox can use"
    return BuildFailure(cause="other", message=message)


@dataclass(frozen=True, slots=True)
class _Steps:
    """What the commands of one build share."""

    interpreter: Interpreter
    lock: int  # the descriptor that holds the right to build
    wish: Wish
    until: float

    def run(self, command: tuple[str, ...]) -> Ended:
        """Run one. It holds the lock, too, in case that it outlives us."""
        seconds, lock = self.until - time.monotonic(), os.dup(self.lock)
        launch = Launch(command, settings(), seconds, kill_group, keep=LOG, inherited=(lock,))
        return supervise(launch, self.wish)


def _install(folder: Path, requirements: tuple[str, ...], steps: _Steps) -> BuildFailure | None:
    """Make an environment in `folder`; one command after the other, until one fails."""
    tool = installer()
    commands = [tool.create(steps.interpreter.executable, folder)]
    if requirements:
        commands.append(tool.install(folder, requirements))
    log = ""
    for command in commands:
        ended = steps.run(command)
        log += (ended.stdout.text() + ended.stderr.text()).replace(str(folder), "ENVIRONMENT")
        if ended.cause != "exit" or ended.status != 0:
            return _failure(ended, without_passwords(log, settings()))
    return None


def _failure(ended: Ended, log: str) -> BuildFailure:
    if ended.cause == "timeout":
        return BuildFailure(cause="timeout", message="the build took too long", log=log)
    cause: Literal["unknown_package", "conflict", "download", "disk", "other"]
    cause, packages = diagnose(log)
    words = {
        "unknown_package": f"no such package (or version, or wheel for it): {', '.join(packages)}",
        "conflict": "the requirements cannot be installed together",
        "download": "the package index could not be reached",
        "disk": "the disk is full",
        "other": "the packages could not be installed",
    }
    last = log.strip().splitlines()[-3:] if cause in ("conflict", "other") else []
    message = ": ".join(
        [words[cause], " ".join(" ".join(last).split())[:500]] if last else [words[cause]]
    )
    return BuildFailure(cause=cause, message=message, packages=packages, log=log)
