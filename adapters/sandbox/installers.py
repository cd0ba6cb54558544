"""How packages are installed by uv, and what complaints of installers mean.

Only wheels are installed: building from source would run foreign code outside of any sandbox.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from codetape.adapters.sandbox.interpreters import find_program
from codetape.engine.ports import SandboxBroken
from codetape.states.values import SandboxFailure

# What may reach a build from the environment of the host: where packages come from, no more.
SETTINGS = re.compile(
    r"HOME|PATH|XDG_CACHE_HOME|XDG_CONFIG_HOME|(?:HTTPS?|ALL|NO|https?|all|no)_(?:PROXY|proxy)"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NETRC"
    r"|UV_(?:DEFAULT_INDEX|INDEX\w*|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CACHE_DIR|CONFIG_FILE"
    r"|SYSTEM_CERTS|NATIVE_TLS|OFFLINE|HTTP_TIMEOUT|HTTP_RETRIES|INSECURE_HOST|KEYRING_PROVIDER)"
    r"|PIP_(?:INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CERT|PROXY|TRUSTED_HOST|CONFIG_FILE"
    r"|DEFAULT_TIMEOUT|CACHE_DIR)"
)
# uv does not read the variables of pip: whoever has configured only pip means both.
SAME = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_CERT": "SSL_CERT_FILE",
}
# A name, extras, version specifiers: no option, address, marker or white space gets through.
GRAMMAR = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(?:\[[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)*\])?"
    r"(?:(?:[<>~!=]=|[<>]|===)[A-Za-z0-9.*+!_-]+(?:,(?:[<>~!=]=|[<>])[A-Za-z0-9.*+!_-]+)*)?"
)

BuildCause = Literal["unknown_package", "conflict", "download", "disk", "other"]


def acceptable(requirement: str) -> bool:
    """Say whether `requirement` is a plain name with optional extras and versions."""
    if len(requirement) > 300 or not GRAMMAR.fullmatch(requirement):
        return False
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return False
    return parsed.url is None and parsed.marker is None


def settings(host: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a build gets."""
    chosen = {name: value for name, value in host.items() if SETTINGS.fullmatch(name)}
    for pip, uv in SAME.items():
        if pip in chosen and uv not in chosen:
            chosen[uv] = chosen[pip].replace(" ", ",") if uv == "UV_FIND_LINKS" else chosen[pip]
    return {**chosen, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Uv:
    """The installer. It starts the Python of an environment only while that is empty.

    A package can put code where each start of a Python runs it (a .pth file, sitecustomize, bin/python
    itself). So nothing is compiled or asked through an environment that has packages.
    """

    program: str

    def create(self, python: Path, folder: Path) -> tuple[str, ...]:
        """The command that makes an environment."""
        return (
            *(self.program, "venv", "--quiet", "--relocatable", "--no-python-downloads"),
            *("--no-project", "--python", str(python), str(folder)),
        )

    def install(self, folder: Path, requirements: tuple[str, ...]) -> tuple[str, ...]:
        """The command that installs all requirements in one step into an empty environment.

        One resolver sees them all, so what it installs fits together.
        """
        return (
            *(self.program, "pip", "install", "--python", str(folder / "bin/python")),
            *("--only-binary", ":all:", "--no-compile-bytecode", "--no-progress", "--"),
            *requirements,
        )


def compiling(python: Path, folder: Path) -> tuple[str, ...]:
    """The command that compiles the modules below `folder`: it reads them and runs none of them.

    `python` is the interpreter behind the environment; it knows nothing of what lies in there.
    """
    return (str(python), "-I", "-S", "-m", "compileall", "-q", "-j", "2", str(folder / "lib"))


def installer() -> Uv:
    """Return uv, as a package or from the path. Raises SandboxBroken."""
    program = _packaged_uv() or find_program("uv")
    if program is None:
        message = "uv is not installed, which installs packages; install it: pip install uv"
        raise SandboxBroken(SandboxFailure(message=message, missing=True))
    return Uv(program)


def _packaged_uv() -> str | None:
    try:
        from uv import find_uv_bin  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    try:
        return str(find_uv_bin())
    except FileNotFoundError:
        return None


NAME = r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\S*"
UNKNOWN = (
    rf"{NAME} was not found in the (?:package registry|provided package locations)",
    rf"there (?:is|are) no versions? of {NAME}",
    rf"{NAME} (?:has|have) no (?:usable )?wheels",
    rf"only {NAME} (?:is|are) available and you require (?P=name)\b",
    rf"only the following versions of {NAME} are available",
    rf"No matching distribution found for {NAME}",
)
DISK = r"(?i)no space left on device|disk quota exceeded"
DOWNLOAD = (
    r"(?i)failed to (?:fetch|download)|error sending request|dns error|max retries exceeded"
    r"|NewConnectionError|temporary failure in name resolution|name or service not known"
    r"|network (?:was|is) disabled|network connectivity is disabled|network is unreachable"
    r"|certificate[ _]verify[ _]failed|invalid peer certificate|could not fetch url"
    r"|connection (?:refused|reset|aborted)|(?:read|operation|connect\w*) timed out|ReadTimeoutError"
    r"|HTTP status (?:client|server) error|HTTP error \d|IncompleteRead|ProxyError"
    r"|hash mismatch for|do not match the hashes"
)
CONFLICT = (
    r"(?i)no solution found|ResolutionImpossible|conflicting dependencies|requirements? .*conflict"
    r"|\brequires .*(?:which is not installed|but .* is installed)|has requirement .*but you.* have"
)


def diagnose(log: str) -> tuple[BuildCause, tuple[str, ...]]:
    """Return what a log of uv or pip complains of, and the packages that it names for it."""
    text = re.sub(r"\s+", " ", log)  # uv wraps its sentences
    if re.search(DISK, text):
        return "disk", ()
    if re.search(DOWNLOAD, text):
        return "download", ()
    names = {
        canonicalize_name(found["name"]) for one in UNKNOWN for found in re.finditer(one, text)
    }
    if names:
        return "unknown_package", tuple(sorted(names))
    return ("conflict" if re.search(CONFLICT, text) else "other"), ()
