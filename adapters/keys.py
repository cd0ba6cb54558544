"""The key of the user, which marks the sessions that this user opened here."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from pathlib import Path

VARIABLE = "CODETAPE_KEY_FILE"
"""Names another file of the key, for services."""

LENGTH = 32
"""Bytes of a key."""


def key_file() -> Path:
    """Return where the key is. Raises OSError where there is no home."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    given = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        folder = Path(given) if os.path.isabs(given) else Path.home() / ".config"
    except RuntimeError as error:
        raise OSError(str(error)) from error
    return folder / "codetape" / "key"


def user_key() -> bytes:
    """Return the key, made if there is none; of processes at once one makes it, and all take it.

    Raises OSError where it cannot be made or read, and for one that others can read.
    """
    path = key_file()
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(path)
        return _read(path)


def _make(path: Path) -> None:
    """Put a whole key in its place, unless one is there."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(LENGTH))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)


def _read(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(handle)
        key = os.read(handle, LENGTH + 1) if stat.S_ISREG(facts.st_mode) else b""
    finally:
        os.close(handle)
    if len(key) != LENGTH:
        raise OSError(f"{path} is no key: it does not have {LENGTH} bytes")
    if facts.st_mode & 0o077:
        raise OSError(f"others can read {path}: make it private with chmod 600, or delete it")
    return key
