"""The file with the filter of system calls that podman reads when a container is made."""

from __future__ import annotations

import atexit
import json
import logging
import tempfile
from functools import cache
from pathlib import Path

from codetape.adapters.sandbox.syscalls import profile

DEFAULTS = (
    Path("/etc/containers/seccomp.json"),
    Path("/usr/share/containers/seccomp.json"),
)
"""Where podman's own profile is, the first that exists goes before the others, as podman has it."""

_log = logging.getLogger("codetape.sandbox")


@cache
def profile_file() -> Path | None:
    """Write podman's profile without the calls that no run needs, once for this process.

    None if podman's own profile is not found here: its built-in one stays in force then.
    """
    found = next((made for place in DEFAULTS if (made := profile(place)) is not None), None)
    if found is None:
        _log.warning(
            "podman's profile of system calls is none of %s: its built-in one is used, which may "
            "leave the key store and sockets to the host open",
            ", ".join(map(str, DEFAULTS)),
        )
        return None
    with tempfile.NamedTemporaryFile(
        "w", prefix="codetape-seccomp-", suffix=".json", delete=False
    ) as file:
        json.dump(found, file)
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path
