"""Who is alive, who is not, and who cannot be judged."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from codetape.adapters.owner import alive, current_owner, readable

OTHER = "from codetape.adapters.owner import *; print(current_owner(), flush=True); input()"


def test_an_owner_is_one_process_of_one_machine() -> None:
    host, pid, start, boot, namespace = current_owner().split(":")
    assert (host, int(pid)) == (socket.gethostname(), os.getpid())
    if sys.platform == "linux":
        assert start.isdecimal()
        assert namespace.isdecimal()
        assert len(boot) == 8


def test_owners_are_readable() -> None:
    assert readable(current_owner()) == f"process {os.getpid()} on {socket.gethostname()}"
    assert readable("alice") == "alice"
    assert readable("") == ""


def test_a_process_is_alive_until_it_ends() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    owner = child.stdout.readline().strip()
    assert alive(owner) is True
    child.kill()
    while child.stdout.read():  # ends when the process has ended; nobody has waited for it yet
        pass
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert alive(owner) is False
    child.communicate()
    assert alive(owner) is False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process began")
def test_a_process_id_that_was_used_again_is_another_process() -> None:
    host, _, start, boot, namespace = current_owner().split(":")
    parent = os.getppid()
    assert alive(f"{host}:{parent}:{int(start) + 1}:{boot}:{namespace}") is False
    assert alive(f"{host}:{os.getpid()}:{int(start) + 1}:{boot}:{namespace}") is False


def test_what_cannot_be_seen_from_here_is_not_judged() -> None:
    host, pid, start, boot, namespace = current_owner().split(":")
    dead = 2**22 + 1  # above every process id
    assert alive(f"{host}:{dead}:{start}:{boot}:{namespace}") is False
    assert alive(f"{host}:{dead}:{start}:{boot}x:{namespace}") is None
    assert alive(f"{host}:{dead}:{start}:{boot}:{namespace}1") is None
    assert alive(f"{host}:{10**30}:{start}:{boot}:{namespace}") is False
    assert alive(f"{host}:{pid}:{start}:{boot}:{namespace}") is None  # this very process
    for other in ("", "alice", "a:b:c:d:e", "::::", f"{host}:-1:{start}:{boot}:{namespace}"):
        assert alive(other) is None
