"""Which sandboxes work on this machine; the one place where the tests find out.

A check runs the tool once, because a tool on PATH says little: user namespaces
may be off, podman may have no runtime, the base image may not be there.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache

from codetape.adapters.sandbox.bubblewrap_program import programs
from codetape.adapters.sandbox.podman.settings import BASE, MADE

INSTALL = "sh scripts/install-sandboxes.sh"
BASE_IMAGES = (MADE, BASE)
_PATIENCE = 60.0  # seconds; the first podman command after a boot sets up its storage


def required() -> bool:
    """Whether a missing sandbox is a failure, as it is in CI."""
    return os.environ.get("CODETAPE_REQUIRE_SANDBOXES") == "1"


@cache
def base_image() -> str | None:
    """The base image that podman tests build on: the one asked for, else one that is here."""
    asked = os.environ.get("CODETAPE_BASE_IMAGE")
    candidates = (asked,) if asked else BASE_IMAGES
    present = (name for name in candidates if _refusal("podman", "image", "exists", name) is None)
    return next(present, None)


@cache
def missing(kind: str) -> str | None:
    """Why tests that need this sandbox can't run here, or None if they can."""
    reason = _CHECKS[kind]()
    return None if reason is None else f"{reason}; to install it: {INSTALL}"


def _podman() -> str | None:
    refusal = _refusal("podman", "info")
    if refusal is None and base_image() is None:
        asked = os.environ.get("CODETAPE_BASE_IMAGE")
        return f"podman has no base image ({asked or ' or '.join(BASE_IMAGES)})"
    return refusal


def _bubblewrap() -> str | None:
    """The first that works counts, as in the adapter: the system's, else the bundled one."""
    found = [each for each in programs() if not each.problem]
    refusals = [_refusal(each.path, "--ro-bind", "/", "/", "true") for each in found]
    if not found:
        return "no bwrap runs here: none is on PATH, and none came with the packages"
    return None if None in refusals else refusals[0]


def _refusal(tool: str, *arguments: str) -> str | None:
    """Run a trial command; None if it worked, else what to tell the reader."""
    if shutil.which(tool) is None:
        return f"{tool} is not on PATH"
    try:
        trial = subprocess.run(
            [tool, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{tool} gave no answer in {_PATIENCE:.0f} s"
    if trial.returncode == 0:
        return None
    said = trial.stderr.strip().splitlines() or [f"exit status {trial.returncode}"]
    return f"{tool} does not work ({said[-1]})"


_CHECKS: dict[str, Callable[[], str | None]] = {"podman": _podman, "bubblewrap": _bubblewrap}
KINDS = tuple(_CHECKS)
