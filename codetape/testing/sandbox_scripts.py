"""The part of the sandbox contract that is about the script that follows its tests."""

from __future__ import annotations

from typing import Any

import pytest

from codetape.states.values import Declared, Limits, RunOutcome, TextFile
from codetape.testing.sandbox_runs import SOLUTION, Runs, SandboxCase

ONE = "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
TOTAL = (Declared(name="total", type="int"),)
WRITES = "open('/var/outputs/total', 'w').write('3')"
LEFT = """\
import os
from solution import add

def test_add():
    assert add(1, 2) == 3
    for folder in ("/var/outputs", os.environ["TMPDIR"]):
        open(f"{folder}/total", "w").write("3")
        os.makedirs(f"{folder}/closed/deep")
        os.chmod(f"{folder}/closed", 0)
        os.symlink("/etc", f"{folder}/link")
"""
STAYING = """\
import os, time
from solution import add

def test_add():
    assert add(1, 2) == 3
    for group in (os.setsid, os.getpid):
        if os.fork() == 0:
            group()
            if os.fork() == 0:
                while True:
                    open("/var/outputs/total", "w").write("3")
                    time.sleep(0.01)
            os._exit(0)
"""
FORGING = """\
import os
from solution import add

def test_add():
    assert add(1, 2) == 3
    for descriptor in range(3, 64):
        for kind in ("exit", "script", "script end"):
            line = '\\n{"nonce": "%s", "kind": "%s", "status": 0, "signal": null}\\n' % ("0" * 32, kind)
            try:
                os.write(descriptor, line.encode())
            except OSError:
                pass
"""


def started(*lines: str) -> str:
    """Return a solution that does this when it is started as a script."""
    body = "".join(f"    {line}\n" for line in lines)
    return f'{SOLUTION}\nif __name__ == "__main__":\n{body}'


class ScriptContract(SandboxCase):
    """Where a script follows its tests, it runs as if they had never been there."""

    def followed(
        self, make: Runs, solution: str, tests: str = ONE, **parts: Any
    ) -> tuple[RunOutcome, list[str]]:
        """Run tests and then the script; return the outcome, and the names of the outputs."""
        parts = {"declared": TOTAL, "outputs": ("total",), **parts}
        outcome = make.outcome(
            purpose="tests", solution=solution, tests=tests, script=True, **parts
        )
        return outcome, [file.name for file in outcome.outputs]

    def test_a_script_follows_tests_that_pass(self, make: Runs) -> None:
        outcome, outputs = self.followed(make, started(WRITES, "print('done')"))
        assert outcome.exit_status == 0
        assert outcome.script is not None
        assert (outcome.script.exit_status, outcome.script.signal) == (0, None)
        assert outcome.script.stdout == "done\n"
        assert outcome.script.seconds is not None
        assert [file.text for file in outcome.outputs] == ["3"]
        assert outputs == ["total"]

    def test_no_script_follows_tests_that_fail(self, make: Runs) -> None:
        wrong = ONE.replace("3", "4")
        outcome, outputs = self.followed(make, started(WRITES), wrong)
        assert outcome.script is None
        assert outputs == []

    def test_a_script_has_its_arguments_and_inputs(self, make: Runs) -> None:
        code = started("import sys", "print(sys.argv[1:], open(sys.argv[2]).read())")
        outcome, _ = self.followed(
            make,
            code,
            arguments=("--numbers", "/var/inputs/numbers.txt"),
            files=(TextFile(name="numbers.txt", text="1 2"),),
        )
        assert outcome.script is not None
        assert outcome.script.stdout == "['--numbers', '/var/inputs/numbers.txt'] 1 2\n"

    @pytest.mark.parametrize(
        ("line", "status", "signal"),
        [
            ("raise SystemExit(3)", 3, None),
            ("1 / 0", 1, None),
            ("input()", 1, None),
            ("import os; os._exit(7)", 7, None),
            ("import os; os.kill(os.getpid(), 9)", None, 9),
        ],
    )
    def test_how_a_script_ended_is_told(
        self, make: Runs, line: str, status: int | None, signal: int | None
    ) -> None:
        outcome, _ = self.followed(make, started(line))
        assert outcome.exit_status == 0, "of the tests"
        assert outcome.script is not None
        assert (outcome.script.exit_status, outcome.script.signal) == (status, signal)
        assert not outcome.script.timed_out

    def test_words_of_tests_and_script_are_apart(self, make: Runs) -> None:
        noisy = f"{ONE}    import sys; print('by test'); print('also', file=sys.stderr)\n"
        code = started("import sys", "print('by script')", "print('too', file=sys.stderr)")
        outcome, _ = self.followed(make, code, noisy)
        assert outcome.script is not None
        assert (outcome.script.stdout, outcome.script.stderr) == ("by script\n", "too\n")
        assert "by test" in outcome.stdout
        assert "by script" not in outcome.stdout
        assert "too" not in outcome.stderr

    def test_a_flood_of_tests_leaves_the_last_words_of_the_script(self, make: Runs) -> None:
        loud = f"{ONE}    print('test ' * 100_000)\n"
        code = started("print('script ' * 100_000)", "print('the end')")
        limits = Limits(seconds=20.0, output=10_000)
        outcome, _ = self.followed(make, code, loud, limits=limits)
        assert outcome.script is not None
        assert outcome.script.stdout.endswith("the end\n")
        assert "test" not in outcome.script.stdout

    def test_a_script_that_does_not_end_is_ended(self, make: Runs) -> None:
        limits = Limits(seconds=3.0)
        code = started("print('begun', flush=True)", "while True: pass")
        outcome, _ = self.followed(make, code, limits=limits)
        assert not outcome.timed_out, "the tests were in time"
        assert outcome.script is not None
        assert outcome.script.timed_out
        assert (outcome.script.exit_status, outcome.script.signal) == (None, None)
        assert outcome.script.stdout == "begun\n"

    def test_tests_before_a_script_are_ended_too(self, make: Runs) -> None:
        slow = f"{ONE}    import time; time.sleep(99)\n"
        outcome, _ = self.followed(make, started(WRITES), slow, limits=Limits(seconds=3.0))
        assert outcome.timed_out
        assert (outcome.exit_status, outcome.signal) == (None, None)
        assert outcome.script is None
        assert outcome.report is not None
        assert outcome.report.running == "test_add"

    def test_files_that_tests_left_are_gone(self, make: Runs) -> None:
        code = started(
            "import os",
            "print(os.listdir('/var/outputs'), os.listdir(os.environ['TMPDIR']))",
            "print(os.path.exists('/etc/passwd'))",
        )
        outcome, outputs = self.followed(make, code, LEFT)
        assert outcome.script is not None
        assert outcome.script.stdout == "[] []\nTrue\n"
        assert outputs == []

    def test_processes_that_tests_left_are_gone(self, make: Runs) -> None:
        outcome, outputs = self.followed(make, started("import time; time.sleep(0.3)"), STAYING)
        assert outcome.script is not None
        assert outcome.script.exit_status == 0
        assert outputs == []

    def test_tests_cannot_forge_the_run_of_a_script(self, make: Runs) -> None:
        outcome, _ = self.followed(make, started("raise SystemExit(3)"), FORGING)
        assert outcome.script is None or outcome.script.exit_status == 3
