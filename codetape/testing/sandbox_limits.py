"""The part of the sandbox contract that is about limits, streams and the end of a run."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable

import pytest

from codetape.engine.ports import Sandbox
from codetape.states.values import Limits
from codetape.testing.sandbox_runs import Runs, SandboxCase, run_spec, running_with, verdicts

SHORT = Limits(seconds=2.0)
# Starts a process that leaves the session of its parent, and can be found by what is on its
# command line.
DAEMON = """
import subprocess, sys, time
def start(mark):
    command = [sys.executable, "-c", "import time; time.sleep(120)", mark]
    subprocess.Popen(command, start_new_session=True)
"""
# Orphaned twice, and without the variables that it was started with.
ORPHAN = """
import os, sys, time
def start(mark):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            arguments = [sys.executable, "-c", "import time; time.sleep(120)", mark]
            os.execve(sys.executable, arguments, {})
        os._exit(0)
    os.wait()
    time.sleep(0.3)
"""


class LimitContract(SandboxCase):
    """What ends a run, and what is told about it."""

    def test_an_exit_status_is_told(self, make: Runs) -> None:
        outcome = make.script("import sys; sys.exit(7)")
        assert (outcome.exit_status, outcome.signal) == (7, None)
        assert (outcome.timed_out, outcome.report) == (False, None)

    def test_a_signal_is_no_exit_status(self, make: Runs) -> None:
        ended = make.script("import os; os.kill(os.getpid(), 9)")
        assert (ended.exit_status, ended.signal) == (None, 9)
        assert not ended.out_of_memory
        exited = make.script("import os; os._exit(137)")
        assert (exited.exit_status, exited.signal) == (137, None)

    def test_d9_the_streams_are_kept_apart(self, make: Runs) -> None:
        outcome = make.script("import sys; print('out'); print('err', file=sys.stderr)")
        assert (outcome.stdout, outcome.stderr) == ("out\n", "err\n")

    def test_d14_bytes_that_are_no_text_are_shown(self, make: Runs) -> None:
        outcome = make.script(r"import os; os.write(1, b'\xff\xfe ok \x00')")
        assert outcome.stdout == "\\xff\\xfe ok \x00"

    def test_d3_the_last_bytes_are_there(self, make: Runs) -> None:
        code = "import os\nos.write(1, b'x' * 1_000_000)\nos.write(1, b'END')\nos._exit(0)"
        outcome = make.script(code, limits=Limits(output=4 << 20))
        assert len(outcome.stdout) == 1_000_003
        assert outcome.stdout.endswith("END")

    def test_much_output_keeps_head_and_tail(self, make: Runs) -> None:
        code = "print('HEAD'); print('x' * 5_000_000); print('TAIL')"
        outcome = make.script(code, limits=Limits(output=10_000))
        assert outcome.stdout.startswith("HEAD\n")
        assert outcome.stdout.endswith("TAIL\n")
        assert 9_000 < len(outcome.stdout) < 11_000

    @pytest.mark.slow
    def test_d4_a_flood_does_not_outlast_the_limit(self, make: Runs) -> None:
        code = "import os\nwhile True: os.write(1, b'y' * 65536)"
        began = time.monotonic()
        outcome = make.script(code, limits=Limits(seconds=1.0, output=1 << 20))
        assert outcome.timed_out or outcome.too_much_output
        assert len(outcome.stdout) < 2 << 20
        assert time.monotonic() - began < 15

    @pytest.mark.slow
    def test_the_limit_of_time_keeps_what_was_printed(self, make: Runs) -> None:
        code = "import time\nprint('before', flush=True)\ntime.sleep(60)"
        began = time.monotonic()
        outcome = make.script(code, limits=SHORT)
        assert (outcome.timed_out, outcome.stdout) == (True, "before\n")
        assert outcome.exit_status is None
        assert outcome.seconds is not None
        assert 1.9 < outcome.seconds < 10
        assert time.monotonic() - began < 15

    @pytest.mark.slow
    def test_the_limit_of_time_tells_the_test_that_ran(self, make: Runs) -> None:
        tests = (
            "def test_a(): print('in a')\ndef test_b():\n    print('in b')\n    while True: pass\n"
        )
        began = (
            make.tests("def test_a(): pass\n").seconds or 0.0
        )  # how long it takes on this machine
        outcome = make.tests(tests, limits=Limits(seconds=3 * began + 1))
        assert outcome.timed_out
        assert outcome.report is not None
        assert (outcome.report.finished, outcome.report.running) == (False, "test_b")
        assert verdicts(outcome.report) == {"test_a": "passed"}
        assert "in b" in outcome.stdout

    @pytest.mark.slow
    def test_the_limit_of_time_ends_the_whole_tree(self, make: Runs) -> None:
        _ends_with_the_limit(make, DAEMON)

    @pytest.mark.slow
    def test_the_limit_of_time_ends_who_left_no_trace(self, make: Runs) -> None:
        _ends_with_the_limit(make, ORPHAN)

    def test_d2_the_end_follows_the_main_process(self, make: Runs) -> None:
        mark = f"canary-{uuid.uuid4().hex}"
        began = time.monotonic()
        outcome = make.script(f"{DAEMON}\nstart({mark!r})\nprint('done')")
        assert (outcome.exit_status, outcome.stdout, outcome.timed_out) == (0, "done\n", False)
        assert time.monotonic() - began < 15
        assert running_with(mark) == []

    def test_cancelling_ends_the_whole_tree(self, make: Runs) -> None:
        mark = f"canary-{uuid.uuid4().hex}"

        async def cancelled(sandbox: Sandbox) -> None:
            image = await make.image(sandbox)
            code = f"{DAEMON}\nstart({mark!r})\ntime.sleep(60)"
            spec = run_spec(image, purpose="script", solution=code)
            task = asyncio.create_task(sandbox.run(spec))
            assert await asyncio.to_thread(_appears, mark, task.done)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        make.use(cancelled)
        assert running_with(mark) == []

    def test_memory_is_limited(self, make: Runs) -> None:
        code = "x = bytearray(300 << 20)\nprint(len(x))"
        outcome = make.script(code, limits=Limits(memory=100 << 20, seconds=20))
        assert outcome.out_of_memory is True
        assert outcome.stdout == ""

    def test_memory_of_a_child_counts(self, make: Runs) -> None:
        code = """
            import subprocess, sys
            subprocess.run([sys.executable, "-c", "x = bytearray(300 << 20); print(len(x))"])
        """
        outcome = make.script(code, limits=Limits(memory=100 << 20, seconds=20))
        assert outcome.out_of_memory is True
        assert outcome.stdout == ""

    def test_memory_that_ran_out_in_a_child_ends_the_run(self, make: Runs) -> None:
        code = """
            import subprocess, sys, time
            subprocess.run([sys.executable, "-c", "x = bytearray(300 << 20)"])
            time.sleep(60)
        """
        outcome = make.script(code, limits=Limits(memory=100 << 20, seconds=40))
        assert (outcome.out_of_memory, outcome.timed_out) == (True, False)

    def test_a_limit_of_memory_that_is_kept_is_not_told_as_passed(self, make: Runs) -> None:
        code = "print(len(bytearray(20 << 20)))"
        outcome = make.script(code, limits=Limits(memory=200 << 20))
        assert (outcome.stdout, outcome.out_of_memory) == ("20971520\n", False)

    def test_the_peak_of_memory_is_told(self, make: Runs) -> None:
        outcome = make.script("x = bytearray(100 << 20)")
        assert outcome.peak_memory is not None
        assert 100 << 20 < outcome.peak_memory < 250 << 20

    def test_processes_are_limited(self, make: Runs) -> None:
        code = """
            import os, time
            count = 0
            try:
                for _ in range(200):
                    if os.fork() == 0:
                        time.sleep(60)
                        os._exit(0)
                    count += 1
            except OSError:
                pass
            print(count)
        """
        printed = make.printed(code, limits=Limits(processes=40, seconds=20))
        assert 10 < int(printed) < 41

    def test_the_disk_is_limited(self, make: Runs) -> None:
        code = """
            import time
            for name in range(100):
                with open(f"/var/outputs/{name}", "wb") as file:
                    file.write(bytes(1 << 20))
            time.sleep(60)
        """
        outcome = make.script(code, limits=Limits(disk=10 << 20, seconds=40))
        assert (outcome.disk_full, outcome.timed_out) == (True, False)

    def test_one_large_file_fills_the_disk_too(self, make: Runs) -> None:
        code = """
            with open("/var/outputs/large", "wb") as file:
                for _ in range(100):
                    file.write(bytes(1 << 20))
        """
        outcome = make.script(code, limits=Limits(disk=10 << 20, seconds=20))
        assert outcome.disk_full is True
        assert outcome.exit_status != 0

    def test_a_disk_that_is_not_full_is_told_as_that(self, make: Runs) -> None:
        outcome = make.script("open('/var/outputs/x', 'w').write('x')")
        assert (outcome.exit_status, outcome.disk_full) == (0, False)


def _ends_with_the_limit(make: Runs, how: str) -> None:
    mark = f"canary-{uuid.uuid4().hex}"
    code = f"{how}\nstart({mark!r})\nprint('started', flush=True)\ntime.sleep(60)"
    outcome = make.script(code, limits=SHORT)
    assert (outcome.timed_out, outcome.stdout) == (True, "started\n")
    assert running_with(mark) == []


def _appears(mark: str, given_up: Callable[[], bool]) -> bool:
    """Wait until a process with `mark` is there."""
    until = time.monotonic() + 30
    while time.monotonic() < until and not given_up():
        if running_with(mark, patience=0):
            return True
        time.sleep(0.02)
    return False
