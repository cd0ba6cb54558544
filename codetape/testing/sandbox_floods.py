"""The part of the sandbox contract that is about code without measure, and how that is told."""

from __future__ import annotations

import uuid

import pytest

from codetape.states.values import Limits
from codetape.testing.sandbox_runs import Runs, SandboxCase, running_with

ENDLESS = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)", sys.argv[1]])
os.write(1, b"HEAD\\n")
while True:
    os.write({stream}, b"y" * 65536)
"""
# Writes where nobody who only looks finds it: a path that is too long to be named, a closed folder.
HIDDEN = {
    "deep": """
        import os, time
        os.chdir("/var/outputs")
        for _ in range(20):
            os.mkdir("d" * 250)
            os.chdir("d" * 250)
    """,
    "closed": """
        import os, time
        os.mkdir("/var/outputs/closed")
        os.chmod("/var/outputs/closed", 0o300)
        os.chdir("/var/outputs/closed")
    """,
}
FILL = """
        for name in range(20):
            with open(str(name), "wb") as file:
                file.write(bytes(2 << 20))
        time.sleep(60)
"""


class FloodContract(SandboxCase):
    """Output, files, processes and computing without end: each is a cause of its own."""

    def test_endless_output_ends_as_that(self, make: Runs) -> None:
        mark = f"canary-{uuid.uuid4().hex}"
        limits = Limits(seconds=60.0, output=10_000)
        outcome = make.script(ENDLESS.format(stream=1), arguments=(mark,), limits=limits)
        assert (outcome.too_much_output, outcome.timed_out) == (True, False)
        assert outcome.exit_status is None
        assert outcome.stdout.startswith("HEAD\n")
        assert outcome.stdout.endswith("yyy")
        assert outcome.stdout_cut is not None
        assert outcome.stdout_cut > 9_000_000
        assert running_with(mark) == []

    def test_endless_errors_end_as_that_too(self, make: Runs) -> None:
        limits = Limits(seconds=60.0, output=10_000)
        outcome = make.script(ENDLESS.format(stream=2), arguments=("",), limits=limits)
        assert outcome.too_much_output
        assert outcome.stdout == "HEAD\n"

    @pytest.mark.slow
    def test_a_report_without_end_ends_as_that_too(self, make: Runs) -> None:
        tests = """
            import os
            def test_a():
                while True:
                    for descriptor in range(3, 64):
                        try:
                            os.write(descriptor, b"x" * 65536)
                        except OSError:
                            pass
        """
        outcome = make.tests(tests, limits=Limits(seconds=60.0))
        assert (outcome.too_much_output, outcome.timed_out) == (True, False)
        assert outcome.report is not None
        assert not outcome.report.finished

    def test_what_was_cut_is_counted(self, make: Runs) -> None:
        code = "import sys\nprint('x' * 999_999)\nsys.stderr.write('little')"
        outcome = make.script(code, limits=Limits(output=10_000))
        assert (outcome.stdout_cut, outcome.stderr_cut) == (990_000, 0)
        assert "\n[990000 bytes cut]\n" in outcome.stdout
        assert not outcome.too_much_output

    @pytest.mark.slow
    def test_files_without_end_fill_the_disk(self, make: Runs) -> None:
        code = """
            n = 0
            while True:
                open(f"/var/outputs/{n}", "w").close()
                n += 1
        """
        outcome = make.script(code, limits=Limits(disk=4 << 20, seconds=60.0))
        assert (outcome.disk_full, outcome.timed_out) == (True, False)

    @pytest.mark.parametrize("how", HIDDEN)
    def test_hidden_files_fill_the_disk_too(self, make: Runs, how: str) -> None:
        outcome = make.script(HIDDEN[how] + FILL, limits=Limits(disk=10 << 20, seconds=20.0))
        assert (outcome.disk_full, outcome.timed_out) == (True, False)

    @pytest.mark.slow
    def test_temporary_files_are_limited(self, make: Runs) -> None:
        code = """
            import tempfile
            files = [tempfile.NamedTemporaryFile() for _ in range(60)]
            for file in files:
                file.write(bytes(10 << 20))
                file.flush()
            print("600 MB")
        """
        outcome = make.script(code, limits=Limits(memory=400 << 20, disk=32 << 20, seconds=60.0))
        assert outcome.stdout == ""
        assert (outcome.exit_status, outcome.timed_out) != (0, False)

    def test_refused_processes_are_counted(self, make: Runs) -> None:
        code = """
            import os, time
            refused = 0
            for _ in range(60):
                try:
                    if os.fork() == 0:
                        time.sleep(30)
                        os._exit(0)
                except OSError:
                    refused += 1
            print(refused)
        """
        outcome = make.script(code, limits=Limits(processes=30, seconds=20.0))
        assert int(outcome.stdout) > 0
        assert outcome.forks_refused == int(outcome.stdout)

    def test_without_a_refusal_there_is_none(self, make: Runs) -> None:
        outcome = make.script("import os\nif os.fork() == 0: os._exit(0)\nos.wait()")
        assert outcome.forks_refused == 0

    @pytest.mark.slow
    def test_computing_is_told_from_waiting(self, make: Runs) -> None:
        busy = "import time\nwhile time.process_time() < 0.6: pass"
        outcome = make.script(busy)
        assert outcome.cpu_seconds is not None
        assert outcome.cpu_seconds > 0.6
        idle = make.script("import time\ntime.sleep(60)", limits=Limits(seconds=1.5))
        assert idle.timed_out
        assert idle.cpu_seconds is not None
        assert idle.cpu_seconds < 1.0

    @pytest.mark.slow
    def test_the_share_of_the_processor_is_limited(self, make: Runs) -> None:
        code = """
            import time
            start = time.monotonic()
            while time.monotonic() < start + 1.5: pass
            print(time.process_time())
        """
        assert float(make.printed(code, limits=Limits(cpus=0.1))) < 0.4
