"""Which worker runs which tests: a file stays whole, and all that need a sandbox are in one worker.

Tests of sandboxes try limits of time and what a whole machine has: two at once disturb each other.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
SIGNS = ("mark.podman", "mark.bubblewrap", "SandboxContract", "ProcessSandbox(")
TOGETHER = "sandboxes"


class OneWorkerForSandboxes(LoadFileScheduling):  # type: ignore[misc]
    """Gives each file to one worker, and the files with sandboxes to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


@cache
def scope_of(nodeid: str) -> str:
    """Return the name of what is kept together with a test."""
    file = nodeid.partition("::")[0]
    place = ROOT / file
    text = place.read_text(encoding="utf-8") if place.suffix == ".py" else ""
    return TOGETHER if any(sign in text for sign in SIGNS) else file
