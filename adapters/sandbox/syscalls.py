"""System calls that no run needs: a filter for bubblewrap, and one on top of podman's own.

Both refuse the kernel's key store, which has no namespace, io_uring, which makes calls around a
filter, and sockets of every family but local ones, IP and netlink: AF_VSOCK leads to the machine's
host, and others to drivers of the kernel.
"""

from __future__ import annotations

import json
import platform
import socket
import struct
from dataclasses import dataclass
from errno import EAFNOSUPPORT, EPERM
from pathlib import Path
from typing import Any

REFUSED = (
    *("add_key", "request_key", "keyctl"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
)
OPENING = ("socket", "socketpair")
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
"""Families of sockets that stay: without a network there is nothing behind IP but loopback."""

_FAMILY_COUNT = 64  # the kernel knows fewer than fifty


@dataclass(frozen=True, slots=True)
class Machine:
    """An architecture as the kernel names it to a filter, and the numbers of its calls."""

    audit: int
    calls: dict[str, int]
    x32: bool = False  # a second way to make the same calls, by other numbers


_IO_URING = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}
MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        {"socket": 41, "socketpair": 53, "add_key": 248, "request_key": 249, "keyctl": 250}
        | _IO_URING,
        x32=True,
    ),
    "aarch64": Machine(
        0xC00000B7,
        {"socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219}
        | _IO_URING,
    ),
}
"""Numbers from the kernel's headers, linux/audit.h and asm/unistd.h."""

# Instructions of the classic BPF, from linux/bpf_common.h, and answers, from linux/seccomp.h.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_CALL, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000


def program(machine: str = platform.machine()) -> bytes | None:
    """Return the filter for a machine as struct sock_filter; None for one that is not known.

    A call of another architecture, which a process may make by an instruction of its own, is refused.
    """
    known = MACHINES.get(machine)
    if known is None:
        return None
    refuse, allow = _answer(_ERRNO | EPERM), _answer(_ALLOW)
    steps = [_load(_ARCHITECTURE), _jump(_EQUAL, known.audit, 1, 0), refuse, _load(_CALL)]
    if known.x32:
        steps += [_jump(_AT_LEAST, _X32, 0, 1), refuse]
    for name in REFUSED:
        steps += [_jump(_EQUAL, known.calls[name], 0, 1), refuse]
    opening = [known.calls[name] for name in OPENING]
    steps += [_jump(_EQUAL, opening[0], 2, 0), _jump(_EQUAL, opening[1], 1, 0), allow]
    steps.append(_load(_FIRST_ARGUMENT))  # the low half: the kernel takes no more of it
    for family in FAMILIES:
        steps += [_jump(_EQUAL, family, 0, 1), allow]
    return b"".join([*steps, _answer(_ERRNO | EAFNOSUPPORT)])


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _jump(comparison: int, value: int, if_true: int, if_false: int) -> bytes:
    return _instruction(comparison, value, if_true, if_false)


def _answer(value: int) -> bytes:
    return _instruction(_RETURN, value)


def profile(default: Path) -> dict[str, Any] | None:
    """Return podman's default profile without the refused calls; None where there is none to read."""
    try:
        found: dict[str, Any] = json.loads(default.read_text())
        kept = [_without(rule, {*REFUSED, *OPENING}) for rule in found["syscalls"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    rules = [rule for rule in kept if rule["names"]]
    return {**found, "syscalls": [*rules, *map(_opening, FAMILIES), *_refusals()]}


def _without(rule: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {**rule, "names": [name for name in rule["names"] if name not in names]}


def _opening(family: int) -> dict[str, Any]:
    argument = {"index": 0, "value": int(family), "valueTwo": 0, "op": "SCMP_CMP_EQ"}
    return {"names": [*OPENING], "action": "SCMP_ACT_ALLOW", "args": [argument]}


def _refusals() -> list[dict[str, Any]]:
    """What is refused has a rule of its own, for the profile's default is an unknown call."""
    refused = {"names": [*REFUSED], "action": "SCMP_ACT_ERRNO", "args": [], "errnoRet": EPERM}
    others = (family for family in range(_FAMILY_COUNT) if family not in FAMILIES)
    arguments = (
        {"index": 0, "value": family, "valueTwo": 0, "op": "SCMP_CMP_EQ"} for family in others
    )
    rule = {"names": [*OPENING], "action": "SCMP_ACT_ERRNO", "errnoRet": EAFNOSUPPORT}
    return [refused, *({**rule, "args": [argument]} for argument in arguments)]
