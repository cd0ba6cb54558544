"""The files of ours that run inside a container, and how process 1 is started there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

FOLDER = "/var/codetape"  # where they lie
PACKAGE = __name__.rpartition(".")[0]
MODULES = (f"{PACKAGE}.inside", f"{PACKAGE.rpartition('.')[0]}.kernel")
START = f"import sys; sys.path.insert(0, {FOLDER!r}); from {PACKAGE}.inside import main; main()"


def command(python: str, job: Mapping[str, Any]) -> list[str]:
    """Return the command line of process 1 for a job; inside.py says what is in one."""
    return [python, "-I", "-S", "-c", START, json.dumps(job)]


def files() -> dict[str, bytes]:
    """Return the modules of process 1 by their paths in a container, under their own names."""
    way = PACKAGE.split(".")
    packages = ["/".join(way[:end]) for end in range(1, len(way) + 1)]
    found = {path(f"{package}/__init__.py"): b"" for package in packages}
    for module in MODULES:
        package, _, name = module.rpartition(".")
        found[path(f"{module.replace('.', '/')}.py")] = source(f"{name}.py", package)
    return found


def path(name: str) -> str:
    """Return where a file of ours lies, as a tar has it."""
    return f"{FOLDER[1:]}/{name}"


def source(name: str, package: str = PACKAGE) -> bytes:
    """Return a file of a package of ours."""
    return resources.files(package).joinpath(name).read_bytes()
