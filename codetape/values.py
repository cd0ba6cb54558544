"""The public values of the front door."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_SIZE = re.compile(r"^(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>|[KMGT]i?B?|B)$", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the host: an input by its path, or an output where it was put."""

    path: Path

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "path", Path(path))

    def read_text(self) -> str:
        """The content as UTF-8."""
        return self.path.read_text(encoding="utf-8")

    def read_bytes(self) -> bytes:
        """The content as it is."""
        return self.path.read_bytes()

    def __fspath__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Dir:
    """A folder of the host."""

    path: Path

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "path", Path(path))

    def __fspath__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one run may use. `memory` and `disk` as "512Mi", "1Gi", "2GB" or bytes; `cpu` in cores."""

    cpu: float = 1.0
    memory: str | int = "1Gi"
    processes: int = 128
    disk: str | int = "256Mi"


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What images are made of: the base, the Python version, and what is always installed.

    `registry` goes before a `base_image` that names none. `registry_secret` is the name of the
    variable that holds "user:password" for it; its value reaches the registry and nothing else.
    """

    base_image: str = ""
    registry: str = ""
    registry_secret: str | None = None
    python: str | None = None
    system_packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Secret:
    """The name of an environment variable of the host that the sandbox gets too.

    Its value reaches the sandbox and nothing else: no tape, no prompt, no log.
    """

    name: str


def bytes_of(size: str | int) -> int:
    """Return a size in bytes: "512Mi" is 536,870,912. Raises ValueError for what is no size."""
    if isinstance(size, int):
        return size
    match = _SIZE.match(size.strip()) if isinstance(size, str) else None
    if match is None:
        raise ValueError(f"{size!r} is no size; write 512Mi, 1Gi or a number of bytes")
    unit = match["unit"].upper().removesuffix("B")
    factor = _BINARY[unit[0]] if unit.endswith("I") else _UNITS[unit]
    return int(float(match["number"]) * factor)


@dataclass(frozen=True, slots=True)
class CodePlan:
    """The plan as the model gave it."""

    description: str
    approach: str


@dataclass(frozen=True, slots=True)
class CodeSolution:
    """The code of the last attempt."""

    language: str
    code: str
    packages: tuple[str, ...] = field(default=())
    system_packages: tuple[str, ...] = field(default=())
