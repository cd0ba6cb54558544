"""What kept an image from being built: from the step that failed and the words of its tool.

What a package prints while it is built may imitate the words of uv, pip and apt; so a name is taken
from them only if it is one of those that were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from codetape.adapters.sandbox.installers import diagnose
from codetape.states.values import BuildFailure

DISK = re.compile(
    r"no space left on device|disk quota exceeded|os error 28\b|don't have enough free space",
    re.IGNORECASE,
)
DOWNLOAD = re.compile(
    r"failed to fetch|could not connect|connection (?:refused|reset|failed)|unable to connect"
    r"|temporary failure resolving|could not resolve|name or service not known"
    r"|network is unreachable|certificate verif|timed out|some index files failed to download"
    r"|no longer has a release file|does not have a release file|hash sum mismatch"
    r"|is not signed|clearsigned file isn't valid|release file .* is (?:not valid yet|expired)",
    re.IGNORECASE,
)
UNKNOWN_SYSTEM = (
    r"unable to locate package (\S+)",
    r"package '?([^\s']+)'? has no installation candidate",
    r"package '?([^\s']+)'? is not available",
    r"couldn't find any package by (?:glob|regex) '([^']+)'",
    r"version '[^']*' for '([^']+)' was not found",
    r"package (\S+) is a virtual package provided by",
)
CONFLICT_SYSTEM = re.compile(
    r"unmet dependencies|held broken packages|unable to correct problems", re.IGNORECASE
)
QUOTE = 600  # characters of a tool's words that go into the message


def explain(step: str, text: str, log: str, asked: Iterable[str]) -> BuildFailure:
    """Say why a build failed. `text` is what the failed step printed, `log` what is kept of all.

    `asked` are the names or commands that the stage was about.
    """
    names = tuple(asked)
    if DISK.search(text):
        return _failure("disk", f"the disk is full: {_end(text)}", log, ())
    if step == "command":
        return _failure("command", f"a command failed: {names[0]}: {_end(text)}", log, names)
    if step in ("system", "index"):
        return _system(text, log, names)
    return _packages(step, text, log, names)


def _packages(step: str, text: str, log: str, names: tuple[str, ...]) -> BuildFailure:
    """Make a failure of what uv or pip complains of."""
    cause, said = diagnose(text)
    if step == "check":
        return _failure("conflict", f"the packages do not fit together: {_end(text)}", log, ())
    unknown = tuple(name for name in map(_bare, names) if name in said)
    if unknown:
        message = f"no such package, or no such version: {', '.join(unknown)}: {_end(text)}"
        return _failure("unknown_package", message, log, unknown)
    if cause in ("unknown_package", "conflict"):  # what is unknown is not one that was asked for
        return _failure("conflict", f"the packages cannot be had together: {_end(text)}", log, ())
    if cause == "download":
        return _failure(cause, f"a package could not be downloaded: {_end(text)}", log, ())
    return _failure(cause, f"installing the packages failed: {_end(text)}", log, ())


def _bare(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def _system(text: str, log: str, names: tuple[str, ...]) -> BuildFailure:
    """Tell the wordings of apt apart."""
    found = {name for words in UNKNOWN_SYSTEM for name in re.findall(words, text, re.IGNORECASE)}
    unknown = tuple(name for name in names if name in found)
    if unknown:
        message = f"there is no system package {', '.join(unknown)}"
        return _failure("unknown_system_package", message, log, unknown)
    if DOWNLOAD.search(text):
        message = f"a system package could not be downloaded: {_end(text)}"
        return _failure("download", message, log, ())
    if CONFLICT_SYSTEM.search(text):
        message = f"the system packages cannot be had together: {_end(text)}"
        return _failure("conflict", message, log, ())
    return _failure("other", f"installing system packages failed: {_end(text)}", log, ())


def _failure(cause: str, message: str, log: str, packages: tuple[str, ...]) -> BuildFailure:
    return BuildFailure.model_validate(
        {"cause": cause, "message": message, "packages": packages, "log": log}
    )


def _end(text: str) -> str:
    """Return the end of what a tool said: that is where it says why."""
    said = text.strip()
    return said if len(said) <= QUOTE else f"…{said[-QUOTE:]}"
