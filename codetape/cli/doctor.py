"""`codetape doctor`: what works here, and what to do about what does not."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from codetape.cli.exits import INFRASTRUCTURE, PASSED
from codetape.cli.stores import store_option
from codetape.cli.text import counted

if TYPE_CHECKING:
    from codetape.cli.screen import Screen

ISOLATING = ("podman", "bubblewrap")
PATIENCE = 120.0
"""Seconds that a sandbox has to answer; the first podman command after a boot sets up its storage."""

KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "DEEPSEEK_API_KEY",
    "OPENROUTER_API_KEY",
    "AZURE_API_KEY",
    "XAI_API_KEY",
)
LIBRARIES = ("codetape", "litellm", "podman", "pydantic", "pytest", "sqlite-utils", "transitions")


@click.command()
@store_option
def command(store: str | None) -> int:
    """Say which sandboxes work here, whether the store can be used, and which keys are set.

    Of keys only the names are shown. Ends with 0 if a sandbox works, else with 3 and the one command
    that mends it.

    Example: codetape doctor
    """
    from codetape.cli.screen import screen

    shown = screen()
    shown.line("Sandboxes", "title")
    found = {kind: asyncio.run(_tried(kind)) for kind in (*ISOLATING, "process")}
    shown.fields((kind, _verdict(kind, problem)) for kind, problem in found.items())
    shown.line("\nStore", "title")
    shown.fields([_store(store)])
    shown.line("\nKeys", "title")
    shown.fields((name, "set" if os.environ.get(name) else "not set") for name in KEYS)
    shown.line("\nVersions", "title")
    shown.fields([("Python", sys.version.split()[0]), *map(_version, LIBRARIES)])
    return _advice(shown, found)


async def _tried(kind: str) -> str | None:
    """Ask a sandbox for the bare base; None if it works, else why not."""
    from codetape.composition import make_sandbox
    from codetape.engine.ports import SandboxBroken
    from codetape.states.values import BuildFailure, ImageSpec

    sandbox = make_sandbox(kind)
    try:
        async with asyncio.timeout(PATIENCE):
            built = await sandbox.build(ImageSpec(base=""))
        return built.message if isinstance(built, BuildFailure) else None
    except SandboxBroken as broken:
        return str(broken)
    except TimeoutError:
        return f"it gave no answer in {PATIENCE:.0f} s"
    finally:
        await sandbox.close()


def _verdict(kind: str, problem: str | None) -> str:
    if problem is not None:
        return f"does not work: {problem}"
    return "works" if kind in ISOLATING else "works, without isolation: only with --sandbox process"


def _advice(shown: Screen, found: dict[str, str | None]) -> int:
    """Name the command that mends what is missing, and return the exit code."""
    missing = [kind for kind in ISOLATING if found[kind] is not None]
    if missing:
        shown.line(f"\nFor {' and '.join(missing)}: {_remedy(missing)}")
    return PASSED if len(missing) < len(ISOLATING) else INFRASTRUCTURE


def _remedy(missing: list[str]) -> str:
    """Return the one command: the script of the repository, or the packages where there is none."""
    import codetape

    script = Path(codetape.__file__).parent.parent / "scripts" / "install-sandboxes.sh"
    if script.exists():
        return f"sh {script}"
    return f"apt-get install {' '.join(missing)}"


def _store(given: str | None) -> tuple[str, str]:
    from codetape.composition import open_store, store_path
    from codetape.engine.ports import StoreError

    path = Path(store_path(given)).absolute()
    if not path.exists():
        folder = next(parent for parent in path.parents if parent.exists())
        able = os.access(folder, os.W_OK)
        return str(path), f"not there yet; {'it can be made' if able else f'{folder} is read-only'}"
    try:
        opened = open_store(path)
    except StoreError as error:
        return str(path), f"cannot be used: {error}"
    count = len(opened.sessions())
    opened.close()
    return str(path), counted(count, "session")


def _version(library: str) -> tuple[str, str]:
    try:
        return library, metadata.version(library)
    except metadata.PackageNotFoundError:
        return library, "not installed"
