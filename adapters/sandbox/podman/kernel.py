"""What process 1 of a container asks of the kernel: limits, counters, and a filter of system calls.

Handed over into containers (standard library, Python 3.8 and later).
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
MODE_FILTER = 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
NEW_USER = 0x10000000  # the flag of a new user namespace, in which everybody is root
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ABI, FIRST_ARGUMENT = 0, 4, 16  # offsets in the data that a filter sees
OTHER_ABI = 0x40000000  # numbers from here on are those of x32
# Of a machine: its ABI, and the numbers of clone, unshare, socket, socketpair, and of the calls for
# keys, which no namespace tells apart. clone3 and io_uring have the same everywhere.
MACHINES = {
    "x86_64": (0xC000003E, 56, 272, 41, 53, (248, 249, 250)),
    "aarch64": (0xC00000B7, 220, 97, 198, 199, (217, 218, 219)),
}
CLONE3, URING = 435, (425, 426, 427)
FAMILIES = (1, 2, 10, 16)  # of sockets: unix, IPv4, IPv6, and netlink, which tells of devices


def dumpable(flag: int) -> None:
    """Open or close this process to others of the same user: ptrace, and most of /proc."""
    _prctl(PR_SET_DUMPABLE, flag)


def confine() -> None:
    """Take away user namespaces, keys and unusual sockets from this process and all that it starts.

    Podman's own filter lets them pass, and with one all of the kernel is in reach that only root may
    use. clone3 hides its flags from filters: it is said not to exist, and C libraries then use clone.
    io_uring does what filters forbid. Keyrings are shared by all of one user, and a network namespace
    does not hold the sockets of every family.
    On machines that are not in the table only podman's filter holds.
    """
    machine = MACHINES.get(os.uname().machine)
    if machine is not None:
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        program = _program(*machine)
        steps = (_Step * len(program))(*(_Step(*step) for step in program))
        _prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(_Program(len(program), steps)))


def filter_bytes() -> bytes | None:
    """Return the filter as a program of the kernel's; None on machines that are not in the table."""
    machine = MACHINES.get(os.uname().machine)
    return machine and b"".join(struct.pack("HBBI", *step) for step in _program(*machine))


def _program(
    abi: int, clone: int, unshare: int, socket: int, socketpair: int, keys: tuple[int, ...]
) -> list[tuple[int, int, int, int]]:
    """The filter: (operation, steps to skip if so, steps to skip if not, operand)."""
    allow, refuse = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERRNO | EPERM)
    absent = (RETURN, 0, 0, ERRNO | ENOSYS)
    steps = [(LOAD, 0, 0, ABI), (EQUAL, 1, 0, abi), refuse]
    steps += [(LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, OTHER_ABI), refuse]
    for number in (CLONE3, *URING):
        steps += [(EQUAL, 0, 1, number), absent]
    for number in keys:
        steps += [(EQUAL, 0, 1, number), refuse]
    steps += [(EQUAL, 1, 0, clone), (EQUAL, 0, 4, unshare), (LOAD, 0, 0, FIRST_ARGUMENT)]
    steps += [(ANY_BIT, 0, 1, NEW_USER), refuse, allow]
    steps += [(EQUAL, 1, 0, socket), (EQUAL, 0, len(FAMILIES) + 2, socketpair)]
    steps += [(LOAD, 0, 0, FIRST_ARGUMENT)]
    steps += [(EQUAL, len(FAMILIES) - at, 0, family) for at, family in enumerate(FAMILIES)]
    return [*steps, (RETURN, 0, 0, ERRNO | EAFNOSUPPORT), allow]


class _Step(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.POINTER(_Step)))


def _prctl(option: int, value: int, more: Any = None) -> None:
    """Raises OSError where the kernel refuses."""
    library = ctypes.CDLL(None, use_errno=True)
    nothing = ctypes.c_ulong(0)  # prctl takes longs, and ctypes would pass an int
    if library.prctl(option, ctypes.c_ulong(value), more or nothing, nothing, nothing) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def oom_kills(groups: str) -> int | None:
    """Return how often the kernel killed for memory in this container; None: not to be known."""
    lines = _lines(f"{groups}/memory/memory.oom_control") + _lines(f"{groups}/memory.events")
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def peak_memory(groups: str) -> int | None:
    """Return the most memory that the container held at once, in bytes; None: not to be known."""
    lines = _lines(f"{groups}/memory/memory.max_usage_in_bytes") + _lines(f"{groups}/memory.peak")
    return int(lines[0]) if lines else None


def refused_forks(groups: str) -> int | None:
    """Return how many processes and threads the limit has refused; None: not to be known."""
    lines = _lines(f"{groups}/pids/pids.events") + _lines(f"{groups}/pids.events")
    return next((int(line.split()[1]) for line in lines if line.startswith("max ")), None)


def cpu_seconds(groups: str) -> float | None:
    """Return the time that all processes together have computed; None: not to be known."""
    for line in _lines(f"{groups}/cpuacct/cpuacct.usage"):
        return int(line) / 1e9
    lines = _lines(f"{groups}/cpu.stat")
    return next((int(line.split()[1]) / 1e6 for line in lines if line.startswith("usage_")), None)


def unmet(expect: dict[str, Any], groups: str) -> dict[str, Any]:
    """Return the limits that are not in force, with what is. A limit may be accepted and ignored."""
    found = {
        "memory": _number(groups, "memory/memory.limit_in_bytes", "memory.max"),
        "processes": _number(groups, "pids/pids.max", "pids.max"),
        "cpus": _cpus(groups),
    }
    refused = {}
    for name, limit in expect.items():
        is_ = found[name]
        if limit is not None and (is_ is None or is_ > limit * 1.01):  # rounded to pages or ticks
            refused[name] = "unlimited" if is_ == float("inf") else is_
    return refused


def _number(groups: str, *names: str) -> float | None:
    for name in names:
        for line in _lines(f"{groups}/{name}"):
            return float("inf") if line == "max" else float(line)
    return None


def _cpus(groups: str) -> float | None:
    quota = _number(groups, "cpu/cpu.cfs_quota_us")
    period = _number(groups, "cpu/cpu.cfs_period_us")
    if quota is not None and period:
        return quota / period if quota > 0 else float("inf")
    for line in _lines(f"{groups}/cpu.max"):
        share, ticks = line.split()
        return float("inf") if share == "max" else int(share) / int(ticks)
    return None


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []
