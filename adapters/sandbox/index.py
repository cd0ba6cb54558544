"""What the package index knows of a name, asked of uv: it has the settings that builds have, too."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from codetape.adapters.sandbox.installers import acceptable, installer, settings
from codetape.adapters.sandbox.interpreters import find
from codetape.engine.ports import SandboxBroken

YOUNG = timedelta(days=90)
"""Until then a distribution is young: names that models make up are registered by others."""

LONGEST = 15.0
"""Seconds after which nothing is known of a name."""

_UNKNOWN = re.compile(r"was not found in the package registry")
_FILTERED = re.compile(r"filtered by `exclude-newer`")


@dataclass(frozen=True, slots=True)
class Known:
    """Whether the index has a distribution, and whether all of it is young. None: it did not say."""

    exists: bool | None = None
    young: bool | None = None


class Index(Protocol):
    """Knows distributions."""

    async def look(self, name: str) -> Known:
        """Say what is known of a distribution; never raises."""
        ...


class NoIndex:
    """Knows nothing, and asks no index."""

    async def look(self, name: str) -> Known:  # noqa: ARG002
        """Say that nothing is known."""
        return Known()


class UvIndex:
    """The index that uv is configured for; without uv nothing is known."""

    async def look(self, name: str) -> Known:
        """Ask for the name with and without what is young, at once."""
        if not acceptable(name):
            return Known()
        try:
            made = installer()
        except SandboxBroken:
            return Known()
        python = find(None)
        if python is None:
            return Known()
        before = (datetime.now(UTC) - YOUNG).strftime("%Y-%m-%d")
        base = (made.program, str(python.executable))
        newest, older = await asyncio.gather(
            _resolved(*base, name), _resolved(*base, name, "--exclude-newer", before)
        )
        if _UNKNOWN.search(newest or ""):
            return Known(exists=False)
        if newest != "":
            return Known()
        young = True if _FILTERED.search(older or "") else False if older == "" else None
        return Known(exists=True, young=young)


async def _resolved(program: str, python: str, name: str, *options: str) -> str | None:
    """Return what uv complains of, empty if it found the name, or None if it did not answer.

    Nothing is built: only names and metadata are read. It is asked from the root folder, and for one
    Python: where we stand there may be settings and an environment of anybody.
    """
    process = await asyncio.create_subprocess_exec(
        *(program, "pip", "compile", "--quiet", "--no-deps", "--no-build", "--no-header"),
        *("--no-annotate", "--no-python-downloads", "--python", python, *options, "-"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=settings(),
        cwd="/",  # as the installer: a folder that we stand in may name an index of its own
    )
    try:
        async with asyncio.timeout(LONGEST):
            _, said = await process.communicate(name.encode())
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = re.sub(r"\s+", " ", said.decode(errors="replace"))
    return "" if process.returncode == 0 else text or None
