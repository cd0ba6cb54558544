"""`codetape doctor`: what works here, and what to do about what does not."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from codetape.cli import machine, selftest
from codetape.cli.exits import INFRASTRUCTURE, PASSED
from codetape.cli.out import in_json, put
from codetape.cli.stores import store_option
from codetape.cli.text import counted

if TYPE_CHECKING:
    from codetape.cli.machine import Finding
    from codetape.cli.screen import Screen
    from codetape.cli.selftest import Trial

ISOLATING = ("podman", "bubblewrap")
WIDEST, NARROWEST = 78, 20  # columns of a paragraph

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
@click.option("--quick", is_flag=True, help="Try no test: that may have to download pytest.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as one JSON object.")
def command(store: str | None, quick: bool, as_json: bool) -> int:
    """Say which sandboxes work here, and what mends the others.

    Each sandbox is tried: a program looks around inside, uses up its limits, and a test runs. Then
    come what this machine has for sandboxes, the store, which keys are set (their names only), and
    versions. Ends with 0 if a sandbox that isolates works, else with 3.

    Example: codetape doctor
    """
    from codetape.cli.screen import screen

    shown = screen(sys.stderr if as_json else sys.stdout)
    shown.line("Sandboxes", "title")
    trials = [_tried(kind, quick, shown) for kind in (*ISOLATING, "process")]
    found = machine.findings()
    if as_json:
        put(in_json(_facts(trials, found, _store(store))))
    else:
        _machine(shown, found)
        _rest(shown, _store(store))
        _advice(shown, trials)
    works = any(trial.problem is None for trial in trials if trial.kind in ISOLATING)
    return PASSED if works else INFRASTRUCTURE


def _tried(kind: str, quick: bool, shown: Screen) -> Trial:
    """Try one sandbox and show how it went at once: this may take a while."""
    trial = asyncio.run(selftest.tried(kind, quick=quick))
    _paragraph(shown, f"{kind}: {_verdict(trial)}", "bad" if trial.problem else "good")
    if trial.holds:
        _paragraph(shown, f"  holds: {', '.join(trial.holds)}")
    if trial.lacks:
        _paragraph(shown, f"  does not hold: {', '.join(trial.lacks)}", "bad")
    if trial.tests:
        _paragraph(shown, f"  tests: {trial.tests}")
    if trial.problem and (remedy := machine.mended(trial.problem)):
        meaning, mend = remedy
        if meaning:
            _paragraph(shown, f"  that is: {meaning}")
        shown.line(f"  to mend it: {mend}")
    return trial


def _verdict(trial: Trial) -> str:
    if trial.problem is not None:
        return f"does not work: {trial.problem}"
    if trial.kind in ISOLATING:
        return f"works, by {trial.tool}" if trial.tool else "works"
    return "works, without isolation: only with --sandbox process"


def _paragraph(shown: Screen, text: str, style: Any = "") -> None:
    """Show a text in lines that fit the terminal; words are left whole, so that they can be copied."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    width = max(NARROWEST, min(WIDEST, get_terminal_size().columns - 2))
    lines = wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    for line in lines:
        shown.line(line, style)


def _machine(shown: Screen, found: list[Finding]) -> None:
    shown.line("\nThis machine", "title")
    for finding in found:
        _paragraph(shown, f"{finding.name}: {finding.says}", "bad" if finding.mend else "")
        if finding.mend:
            shown.line(f"  to mend it: {finding.mend}")


def _rest(shown: Screen, store: tuple[str, str]) -> None:
    shown.line("\nStore", "title")
    shown.fields([store])
    shown.line("\nKeys", "title")
    shown.fields((name, "set" if os.environ.get(name) else "not set") for name in KEYS)
    shown.line("\nVersions", "title")
    shown.fields([("Python", sys.version.split()[0]), *map(_version, LIBRARIES)])


def _advice(shown: Screen, trials: list[Trial]) -> None:
    """Name the one command that installs what is missing."""
    missing = [each.kind for each in trials if each.problem and each.kind in ISOLATING]
    if missing:
        shown.line(f"\nFor {' and '.join(missing)}: {_remedy(missing)}")


def _remedy(missing: list[str]) -> str:
    """Return the one command: the script of the repository, or the packages where there is none."""
    import codetape

    script = Path(codetape.__file__).parent.parent / "scripts" / "install-sandboxes.sh"
    if script.exists():
        return f"sh {script}"
    return f"apt-get install {' '.join(missing)}"


def _facts(trials: list[Trial], found: list[Finding], store: tuple[str, str]) -> dict[str, Any]:
    return {
        "sandboxes": [{**asdict(trial), "works": trial.problem is None} for trial in trials],
        "machine": [asdict(finding) for finding in found],
        "store": {"path": store[0], "says": store[1]},
        "keys": {name: bool(os.environ.get(name)) for name in KEYS},
        "versions": dict([("python", sys.version.split()[0]), *map(_version, LIBRARIES)]),
    }


def _store(given: str | None) -> tuple[str, str]:
    from codetape.adapters.store.files import others_can_list
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
    seen = "; others can list its folder, not read the store" if others_can_list(path) else ""
    return str(path), counted(count, "session") + seen


def _version(library: str) -> tuple[str, str]:
    try:
        return library, metadata.version(library)
    except metadata.PackageNotFoundError:
        return library, "not installed"
