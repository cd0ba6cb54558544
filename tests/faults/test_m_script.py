"""The script itself: a pass includes that it ran as `result.run()` runs it, and left its outputs.

Whole sessions in bubblewrap whose tests pass; the model is scripted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from codetape import AutoCoderAgent
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock, FixedIds
from codetape.engine.ports import Sandbox
from codetape.replay.replayer import replay
from codetape.result import Result
from codetape.states.events import AnswerRejected
from codetape.states.failures import SCRIPT, Failure

pytestmark = pytest.mark.bubblewrap

ADD = "def add(a, b):\n    return a + b\n"
TESTS = "from solution import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
LEFT = """\
import os
from solution import add


def test_add():
    assert add(1, 2) == 3
    for folder in ("/var/outputs", "/tmp"):
        open(f"{folder}/total", "w").write("3")
        os.mkdir(f"{folder}/closed")
        open(f"{folder}/closed/file", "w").close()
        os.chmod(f"{folder}/closed", 0)
"""
DAEMON = """\
import os
import time
from solution import add


def test_add():
    assert add(1, 2) == 3
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                open("/var/outputs/total", "w").write("3")
                time.sleep(0.01)
        os._exit(0)
"""


def main(*lines: str, above: str = "") -> str:
    """A solution with these lines in its main()."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"{ADD}\n{above}\n\ndef main():\n{body}\n\nif __name__ == '__main__':\n    main()\n"


def write(name: str, value: str) -> str:
    return f"open('/var/outputs/{name}', 'w').write({value})"


READS = (
    "import argparse",
    "parser = argparse.ArgumentParser()",
    "parser.add_argument('--numbers', required=True)",
    "numbers = open(parser.parse_args().numbers).read().split()",
    write("total", "str(sum(map(int, numbers)))"),
)
TOTAL = {"outputs": {"total": int}}


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return BubblewrapSandbox()


@pytest.fixture
def numbers(tmp_path: Path) -> dict[str, Path]:
    path = tmp_path / "numbers.txt"
    path.write_text("1 2 3\n")
    return {"numbers": path}


Session = Callable[..., Result]


@pytest.fixture
def session(sandbox: Sandbox) -> Session:
    """Run a session of one attempt, unless it is given more codes than one."""

    def run(*codes: str, tests: str = TESTS, agent: Mapping[str, Any] = {}, **asked: Any) -> Result:
        script: dict[str, list[Any]] = {
            "code": [{"code": code} for code in codes],
            "tests": [{"test_code": tests}],
        }
        maker = AutoCoderAgent(
            model="scripted",
            llm=ScriptedLlm(script),
            sandbox=sandbox,
            store=MemoryStore(),
            clock=FixedClock(),
            ids=FixedIds(),
            plan=False,
            lessons=False,
            max_iterations=len(codes),
            **agent,
        )
        result = maker.generate("Add numbers.", **asked)
        assert replay(result.store, result.session).identical
        return result

    return run


def the_failure(result: Result) -> Failure:
    """The one failure of a session, which is the script's."""
    assert not result.success, "it passed"
    (failure,) = result.failures
    assert failure.test_id == SCRIPT
    return failure


# --- scripts that fail ------------------------------------------------------------------------------


def test_a_main_that_exits_with_an_error_is_no_pass(session: Session) -> None:
    failure = the_failure(session(main("raise SystemExit(3)"), **TOTAL))
    assert failure.problem.type == "exit status 3"
    assert failure.label == "logic"
    assert "total" in failure.because


def test_a_missing_output_is_named(session: Session) -> None:
    failure = the_failure(session(main("print('done')"), outputs={"total": int, "report": "File"}))
    assert failure.problem.type == "OutputMissing"
    assert "total" in failure.problem.message
    assert "report" in failure.problem.message
    assert "done" in failure.captured


def test_functions_alone_leave_no_declared_output(session: Session) -> None:
    assert the_failure(session(ADD, **TOTAL)).problem.type == "OutputMissing"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "'twelve'"),
        ("int", "'1.5'"),
        ("float", "'1,5'"),
        ("bool", "'perhaps'"),
        ("datetime", "'yesterday'"),
        ("timedelta", "'an hour'"),
        ("int", "''"),
    ],
)
def test_a_text_is_no_value_of_another_type(session: Session, kind: str, value: str) -> None:
    failure = the_failure(session(main(write("total", value)), outputs={"total": kind}))
    assert failure.problem.type == "OutputUnfit"
    assert f"total is no {kind}" in failure.problem.message


def test_a_folder_is_no_file_and_a_file_no_folder(session: Session) -> None:
    code = main("import os", "os.mkdir('/var/outputs/a')", write("b", "'x'"))
    failure = the_failure(session(code, outputs={"a": "File", "b": "Dir"}))
    assert "a is a folder" in failure.problem.message
    assert "b is a file" in failure.problem.message


def test_a_link_in_the_place_of_an_output_is_refused(session: Session) -> None:
    code = main("import os", "os.symlink('/etc/passwd', '/var/outputs/total')")
    failure = the_failure(session(code, outputs={"total": "File"}))
    assert "a link" in failure.problem.message


def test_outputs_that_are_written_elsewhere_are_missing(session: Session) -> None:
    for place in ("/tmp/total", "total", "/var/outputs/total.txt", "/var/outputs/out/total"):
        code = main("import os", "os.mkdir('/var/outputs/out')", f"open('{place}', 'w').write('3')")
        assert the_failure(session(code, **TOTAL)).problem.type == "OutputMissing"


def test_a_script_that_works_only_when_imported_is_no_pass(session: Session) -> None:
    failure = the_failure(session(f"{ADD}\nif __name__ == '__main__':\n    start()\n"))
    assert failure.headline == "NameError: name 'start' is not defined"


def test_a_relative_import_fails_as_a_script(session: Session) -> None:
    failure = the_failure(session(f"{ADD}\nif __name__ == '__main__':\n    from . import other\n"))
    assert "ImportError" in failure.headline


def test_arguments_that_are_read_wrongly_are_no_pass(
    session: Session, numbers: Mapping[str, Path]
) -> None:
    code = main("import sys", "numbers = open(sys.argv[1]).read()", write("total", "'3'"))
    failure = the_failure(session(code, samples=numbers, **TOTAL))
    assert "FileNotFoundError" in failure.problem.message
    other = main(*(line.replace("--numbers", "--number-file") for line in READS))
    failure = the_failure(session(other, samples=numbers, **TOTAL))
    assert failure.problem.type == "exit status 2"


def test_a_script_that_waits_for_input_is_no_pass(session: Session) -> None:
    failure = the_failure(session(main("input('How many? ')")))
    assert "EOFError" in failure.problem.message


@pytest.mark.parametrize("line", ["while True: pass", "import time; time.sleep(99)"])
def test_a_script_that_never_ends_is_ended(session: Session, line: str) -> None:
    failure = the_failure(session(main("print('begun', flush=True)", line), agent={"timeout": 2.0}))
    assert failure.label == "resource"
    assert failure.problem.type == "TimeLimit"
    assert "begun" in failure.captured


@pytest.mark.slow
def test_a_script_has_the_whole_limit_of_time_for_itself(session: Session) -> None:
    slow = TESTS.replace("    assert", "    import time; time.sleep(7)\n    assert")
    code = main("import time", "time.sleep(7)")
    assert session(code, tests=slow, agent={"timeout": 12.0}).success


def test_tests_have_their_limit_of_time_beside_a_script(session: Session) -> None:
    slow = TESTS.replace("    assert", "    import time; time.sleep(99)\n    assert")
    result = session(ADD, tests=slow, agent={"timeout": 2.0})
    assert [(f.test_id, f.problem.type) for f in result.failures] == [("test_add", "TimeLimit")]


def test_a_script_that_fills_the_disk_is_no_pass(session: Session) -> None:
    code = main(
        "with open('/var/outputs/total', 'wb') as file:", "    file.write(b'1' * (300 << 20))"
    )
    assert the_failure(session(code, **TOTAL)).test_id == SCRIPT


def test_a_script_that_prints_without_end_is_ended(session: Session) -> None:
    failure = the_failure(session(main("while True: print('x' * 10_000)"), agent={"timeout": 60.0}))
    assert failure.label == "resource"


def test_a_script_that_is_killed_is_no_pass(session: Session) -> None:
    failure = the_failure(session(main("import os", "os.kill(os.getpid(), 9)")))
    assert failure.problem.type == "signal 9"


def test_a_secret_that_is_not_allowed_is_not_there(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "hunter2hunter2")
    code = main("import os", "os.environ['DB_PASSWORD']")
    assert "KeyError: 'DB_PASSWORD'" in the_failure(session(code)).problem.message
    assert session(code, agent={"secrets": ["DB_PASSWORD"]}).success


def test_a_network_that_is_not_allowed_is_not_there(session: Session) -> None:
    code = main("import socket", "socket.create_connection(('192.0.2.1', 80), timeout=5)")
    assert "OSError" in the_failure(session(code)).problem.message


@pytest.mark.parametrize(
    "line",
    [
        "import test_solution",
        "__import__('test_solution')",
        "open('/var/inputs/test_solution.py').read()",
        "import pytest; pytest.main(['test_solution.py'])",
    ],
)
def test_a_script_that_needs_its_tests_is_no_pass(session: Session, line: str) -> None:
    """They lie beside it while it is tested, and not when a caller runs it."""
    result = session(main(line), main("print('alone')"))
    assert result.success
    (rejected,) = [r.event for r in result.records if isinstance(r.event, AnswerRejected)]
    assert "test_solution" in rejected.detail
    assert result.run() is None


def test_a_script_may_speak_of_its_tests(session: Session) -> None:
    doc = '"""Tested by test_solution.py."""'
    assert session(main(doc, "print('alone')  # not test_solution")).success


# --- what tests leave is no work of the script -----------------------------------------------------


def test_files_that_tests_left_are_no_outputs(session: Session) -> None:
    failure = the_failure(session(ADD, tests=LEFT, **TOTAL))
    assert failure.problem.type == "OutputMissing"
    code = main("import os", "assert os.listdir('/tmp') == []", "os.mkdir('/var/outputs/closed')")
    assert session(code, tests=LEFT).success


def test_processes_that_tests_left_write_no_outputs(session: Session) -> None:
    code = main("import time", "time.sleep(0.3)")
    assert the_failure(session(code, tests=DAEMON, **TOTAL)).problem.type == "OutputMissing"


def test_words_of_tests_are_no_words_of_the_script(session: Session) -> None:
    noisy = f"{TESTS}    print('of the tests')\n"
    failure = the_failure(session(main("print('of the script')"), tests=noisy, **TOTAL))
    assert failure.captured.strip() == "of the script"


# --- honest ones -------------------------------------------------------------------------------------


def test_functions_without_a_main_part_pass(session: Session) -> None:
    result = session(ADD)
    assert result.success
    assert result.folded.run
    assert result.folded.run.script
    assert result.folded.run.script.exit_status == 0


def test_a_script_runs_on_the_samples(session: Session, numbers: Mapping[str, Path]) -> None:
    result = session(main(*READS), samples=numbers, **TOTAL)
    assert result.success
    assert result.run() == 6


def test_every_type_of_output_is_taken(session: Session) -> None:
    values = {
        "a": ("int", "' 7\\n'"),
        "b": ("float", "'1e3'"),
        "c": ("bool", "'True'"),
        "d": ("datetime", "'2025-01-03T10:00:00'"),
        "e": ("timedelta", "'90.5'"),
        "f": ("str", "'x' * 9000"),
        "g": ("File", "'a,b'"),
    }
    lines = [write(name, value) for name, (_, value) in values.items()]
    code = main("import os", "os.mkdir('/var/outputs/h')", *lines)
    result = session(code, outputs={**{n: kind for n, (kind, _) in values.items()}, "h": "Dir"})
    assert result.success
    assert result.run().a == 7


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("int", b"\xef\xbb\xbf12\r\n", 12),
        ("bool", b"\xef\xbb\xbfTrue", True),
        ("str", b"\xef\xbb\xbfa\r\nb\n", "a\r\nb\n"),
        ("str", b"a\rb", "a\rb"),
    ],
)
def test_an_output_is_read_as_it_was_written(
    session: Session, kind: str, written: bytes, value: object
) -> None:
    """A mark of the byte order belongs to the encoding, line ends to the text."""
    line = f"open('/var/outputs/total', 'wb').write({written!r})"
    result = session(main(line), outputs={"total": kind})
    assert result.success
    assert result.run() == value


def test_an_input_without_a_value_is_told(session: Session, numbers: Mapping[str, Path]) -> None:
    result = session(main(*READS), samples=numbers, inputs={"limit": int, "name": str}, **TOTAL)
    assert result.success
    assert result.folded.ending
    assert "not run: no value for limit, name" in result.folded.ending.reason
    assert result.folded.run
    assert result.folded.run.script is None


def test_a_failing_script_is_repaired_as_code(session: Session) -> None:
    """No model is asked who is at fault."""
    result = session(main("raise SystemExit(3)"), main(write("total", "'3'")), **TOTAL)
    assert result.success
    assert result.attempts == 2
    kinds = [r.event.name for r in result.records]
    assert kinds[kinds.index("script_failed") :] == [
        *("script_failed", "diagnosed", "reclassified", "code_written", "script_failed")[:4],
        "tests_passed",
    ]
    assert "exit status 3" in result.conversation_history[-2]["content"]


def test_a_script_that_stays_broken_ends_the_session(session: Session) -> None:
    broken = main("raise SystemExit(3)")
    result = session(broken, f"{broken}# once more\n", f"{broken}# and again\n", **TOTAL)
    assert not result.success
    assert SCRIPT in (result.error or "")


def test_a_session_without_tests_runs_no_script(session: Session) -> None:
    assert session(main("raise SystemExit(3)"), agent={"skip_tests": True}).success


# --- reports that are forged -------------------------------------------------------------------------

FORGING = """
import os

def add(a, b):
    for descriptor in range(3, 64):
        try:
            data = b'\\n{"nonce": "0", "kind": "script", "began": true, "status": 0, "signal": null}\\n'
            os.write(descriptor, data)
        except OSError:
            pass
    print('{"kind": "script", "status": 0}', flush=True)
    return a + b

if __name__ == "__main__":
    add(1, 2)
    raise SystemExit(3)
"""


def test_a_solution_cannot_forge_its_run(session: Session) -> None:
    assert the_failure(session(FORGING)).problem.type == "exit status 3"


def test_a_killed_runner_is_no_pass(session: Session) -> None:
    tests = f"{TESTS}    import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)\n"
    assert not session(ADD, tests=tests).success
