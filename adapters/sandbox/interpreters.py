"""Python interpreters of this machine that an environment can be built on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# Asked of each candidate: a shim or an environment's link leads to the interpreter behind it.
QUESTION = """
import json, os, sys, sysconfig
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps([os.path.realpath(base), os.path.realpath(sys.base_prefix),
                  "%d.%d" % sys.version_info[:2], sys.version, sysconfig.get_platform()]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter: the file itself, its installation, and "3.11"."""

    executable: Path
    prefix: Path
    version: str
    identity: str  # changes when another build of Python takes the same place


def find(
    version: str | None, usable: Callable[[Interpreter], bool] = lambda _: True
) -> Interpreter | None:
    """Return the first usable interpreter, of `version` ("3.11") if given: our own comes first.

    A version is a number: it comes from a tape, and a candidate is a program that is started here.
    """
    if version is not None and not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){1,2}", version):
        return None
    for candidate in _candidates(version):
        interpreter = _ask(candidate)
        fits = interpreter is not None and version in (None, interpreter.version)
        if interpreter is not None and fits and usable(interpreter):
            return interpreter
    return None


def _candidates(version: str | None) -> Iterator[str]:
    yield str(Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}"))
    for name in ([f"python{version}"] if version else []) + ["python3"]:
        for folder in ("/usr/bin", "/usr/local/bin"):
            yield f"{folder}/{name}"
        if found := find_program(name):
            yield found


def find_program(name: str) -> str | None:
    """Find a program on the path, but for folders that depend on where one stands."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, folders)))


@cache
def _ask(executable: str) -> Interpreter | None:
    """Ask an interpreter what it is; None if it does not answer."""
    if not os.access(executable, os.X_OK):
        return None
    command = [executable, "-I", "-c", QUESTION]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, timeout=20)
        real, prefix, version, identity, platform = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Interpreter(Path(real), Path(prefix), version, f"{real} {identity} {platform}")


def reachable(path: Path) -> bool:
    """Say whether every user of this machine may go to `path`."""
    try:
        return all(step.stat().st_mode & 0o001 for step in (path, *path.parents))
    except OSError:
        return False
