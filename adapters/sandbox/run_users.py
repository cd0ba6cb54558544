"""A user of its own for each run that root starts: it shares its number with nothing on the machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

FIRST, COUNT = 1_879_100_000, 4096
"""Numbers above those that accounts and containers are given."""

LOCKS = Path("/run/codetape-users")
SUBORDINATE = Path("/etc/subuid"), Path("/etc/subgid")


@contextlib.contextmanager
def own_user(locks: Path = LOCKS) -> Iterator[int]:
    """Yield a number for the user and group of one run, which no other run has meanwhile.

    A file's lock holds it, so that the number of a killed process is free again. Raises OSError.
    """
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in _free_numbers():
        descriptor = os.open(locks / str(number), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if _locked(descriptor):
                yield number
                return
        finally:
            os.close(descriptor)
    raise OSError("no user is left for a run: too many runs at once")


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _free_numbers() -> Iterator[int]:
    """Yield the numbers that no account has and that no range of subordinate ones holds."""
    ranges = [*_subordinate()]
    for number in range(FIRST, FIRST + COUNT):
        if not any(number in taken for taken in ranges) and not _account(number):
            yield number


def _account(number: int) -> bool:
    try:
        pwd.getpwuid(number)
    except KeyError:
        return False
    return True


def _subordinate() -> Iterator[range]:
    for file in SUBORDINATE:
        with contextlib.suppress(OSError):
            for line in file.read_text(errors="replace").splitlines():
                first, _, count = line.partition(":")[2].partition(":")
                if first.isdecimal() and count.isdecimal():
                    yield range(int(first), int(first) + int(count))
