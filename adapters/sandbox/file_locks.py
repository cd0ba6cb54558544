"""Locks of files: a process that was killed has none any more."""

from __future__ import annotations

import fcntl


def locked(descriptor: int) -> bool:
    """Take the lock of an open file for as long as it is open; False if another one has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
