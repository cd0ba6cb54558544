"""Who holds a lease, and whether that process is still there.

An owner is named `host:pid:start:boot:namespace`. A process id alone proves nothing: it is used
again by later processes, on other machines and in other containers. Start time, boot and pid
namespace make it one process of one machine.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

_GONE = {"Z", "X", "x"}  # process states: ended, and only waiting for the parent to notice


def current_owner() -> str:
    """Return the name of this process."""
    pid = os.getpid()
    boot, namespace = _machine()
    facts = _facts(pid)
    start = facts[1] if facts else ""
    return f"{socket.gethostname()}:{pid}:{start}:{boot}:{namespace}"


def alive(owner: str) -> bool | None:
    """Say whether the process named `owner` runs; None: that cannot be told from here.

    None too for this very process: it runs, but what held the lease in it may be gone, and whatever
    still holds one in it renews it.
    """
    parts = owner.split(":")
    if len(parts) != 5 or not parts[1].isdecimal() or owner == current_owner():
        return None
    host, pid, start, boot, namespace = parts
    if (boot, namespace) != _machine() or (not boot and host != socket.gethostname()):
        return None
    return _runs(int(pid), start)


def readable(owner: str) -> str:
    """Return `owner` as a reader wants it: "process 4242 on host"; other texts as they are."""
    parts = owner.split(":")
    return f"process {parts[1]} on {parts[0]}" if len(parts) == 5 else owner


def _runs(pid: int, start: str) -> bool | None:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it is there, and somebody else's
    facts = _facts(pid)
    if facts is None or not start:
        return None  # no /proc, or one that hides it: perhaps the same process, perhaps not
    state, started = facts
    return started == start and state not in _GONE


def _facts(pid: int) -> tuple[str, str] | None:
    """Return state and start time (ticks since the boot) of a process as /proc has them."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The second field is the program's name in brackets; it may hold blanks and brackets.
    fields = line.rpartition(")")[2].split()
    return fields[0], fields[19]


@cache
def _machine() -> tuple[str, str]:
    """Return the boot (shortened) and the pid namespace; empty where the system has none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return "", ""
    return boot, "".join(filter(str.isdigit, namespace))
