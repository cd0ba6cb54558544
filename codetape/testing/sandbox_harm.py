"""Attacks that harm the machine if nothing holds them: only for sandboxes that isolate.

class TestMySandbox(HarmContract, SandboxContract): ...
"""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from codetape.states.values import Limits
from codetape.testing.sandbox_runs import Runs, SandboxCase, running_with, verdicts

BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
MEMORY_OF_ALL = """
for number in range(100):
    with open(f"/dev/shm/{number}", "wb") as file:
        file.write(bytes(10 << 20))
print("1 GB")
"""
SYSTEM = """
import ctypes, os
library = ctypes.CDLL(None, use_errno=True)
library.reboot(0x01234567)
library.swapoff(b"/swapfile")
library.sethostname(b"owned", 5)
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/sys/power/state"):
    try:
        with open(path, "w") as file:
            file.write("")
        print(path)
    except OSError:
        pass
print("tried", os.uname().nodename == "owned")
"""
# Tries to make a file in every folder; programs and the kernel's own folders are only entered.
WRITABLE = """
import os
for folder, inner, _ in os.walk("/"):
    if folder in ("/usr", "/proc", "/sys"):
        inner.clear()
    try:
        open(folder + "/new", "w").close()
        print(folder)
    except OSError:
        pass
"""


class HarmContract(SandboxCase):
    """What must not reach the machine."""

    @pytest.fixture
    def bystander(self) -> subprocess.Popen[bytes]:
        """A process of the same machine; it ends by itself."""
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"])

    @pytest.mark.slow
    def test_killing_everybody_ends_only_the_run(
        self, make: Runs, bystander: subprocess.Popen[bytes]
    ) -> None:
        code = "import os, time\nos.kill(-1, 9)\ntime.sleep(60)"
        outcome = make.script(code, limits=Limits(seconds=4.0))
        alive = bystander.poll() is None
        bystander.kill()
        bystander.wait()
        assert alive
        assert outcome.exit_status != 0

    def test_a_test_that_kills_everybody_does_not_pass(self, make: Runs) -> None:
        tests = "import os, time\ndef test_a():\n    os.kill(-1, 9)\n    time.sleep(60)\n"
        report = make.report(tests, limits=Limits(seconds=6.0))
        assert (report.finished, verdicts(report)) == (False, {})

    @pytest.mark.slow
    def test_a_bomb_of_processes_goes_with_the_run(self, make: Runs) -> None:
        mark = f"canary-{uuid.uuid4().hex}"
        limits = Limits(processes=30, seconds=3.0)
        outcome = make.script(BOMB, arguments=(mark,), limits=limits)
        assert outcome.timed_out
        assert outcome.forks_refused is None or outcome.forks_refused > 0
        assert running_with(mark) == []

    def test_shared_memory_is_limited(self, make: Runs) -> None:
        outcome = make.script(MEMORY_OF_ALL, limits=Limits(memory=300 << 20, seconds=20.0))
        assert outcome.stdout == ""

    def test_only_outputs_and_memory_of_the_run_can_be_written(self, make: Runs) -> None:
        allowed = {"/var/outputs", "/tmp", "/dev/shm", "/dev/mqueue"}  # noqa: S108 - inside
        assert {*make.printed(WRITABLE).splitlines()} <= allowed

    def test_the_system_cannot_be_changed(self, make: Runs) -> None:
        assert make.printed(SYSTEM) == "tried False"
