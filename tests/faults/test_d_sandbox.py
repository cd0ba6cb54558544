"""Faults of running in a sandbox.

What every sandbox must do stands in codetape/testing, what podman must do (D6) in tests/unit/adapters.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.files import collect
from codetape.adapters.sandbox.supervise import Launch, Wish, kill_group, supervise
from codetape.adapters.store.sqlite import SqliteStore
from codetape.states import events as e
from codetape.states.values import Limits
from tests.support.judging import Judge, judge
from tests.support.sessions import HAPPY, JOB, engine

CANARY = "canary-0451-of-the-host"
PRINTING = f"""
import os
print(dict(os.environ))
assert {CANARY[:11]!r} not in str(dict(os.environ))
def add(a, b):
    return a + b
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Judge]:
    with judge() as made:
        yield made


def listened(script: str, seconds: float = 30.0, keep: int = 1 << 20) -> tuple[str, str, float]:
    """Run a shell script; returns why it ended, its standard output, and how long it took."""
    wish = Wish()
    launch = Launch(("/bin/sh", "-c", script), os.environ, seconds, kill_group, keep=keep)
    began = time.monotonic()
    try:
        ended = supervise(launch, wish)
    finally:
        wish.close()
    return ended.cause, ended.stdout.text(), time.monotonic() - began


def test_d2_who_holds_the_pipe_open_is_not_waited_for() -> None:
    cause, _, took = listened("(sleep 60 &) ; exit 0", seconds=30.0)
    assert cause == "exit"
    assert took < 15.0


def test_d2_nor_after_the_limit() -> None:
    cause, _, took = listened("sleep 60 & sleep 60", seconds=0.3)
    assert cause == "timeout"
    assert took < 15.0


def test_d3_what_is_written_just_before_the_end_is_there() -> None:
    writes = (
        f"exec {sys.executable} -c \"import os; os.write(1, b'x' * 65536); os.write(1, b'END')\""
    )
    cause, out, _ = listened(writes)
    assert (cause, len(out), out[-3:]) == ("exit", 65_539, "END")


def test_d4_a_flood_cannot_hold_up_the_limit() -> None:
    cause, out, took = listened("yes", seconds=0.5, keep=1 << 20)
    assert cause in ("timeout", "output")
    assert len(out) < 2 << 20
    assert took < 15.0


@pytest.mark.bubblewrap
def test_d8_half_a_megabyte_and_then_the_marker_arrive(bench: Judge) -> None:
    tests = (
        "import os\ndef test_a():\n    os.write(1, b'x' * 500_000)\n    os.write(1, b'MARKER')\n"
    )
    judged = bench.tests(tests, limits=Limits(output=2 << 20))
    assert judged.report.finished
    assert len(judged.run.stdout) == 500_006
    assert (judged.run.stdout[-6:], judged.run.stdout_cut) == ("MARKER", 0)


@pytest.mark.bubblewrap
def test_d9_each_stream_has_its_own_line(bench: Judge) -> None:
    tests = "import os\ndef test_a():\n    os.write(1, b'out\\n')\n    os.write(2, b'err\\n')\n"
    judged = bench.tests(tests)
    assert (judged.run.stdout, judged.run.stderr) == ("out\n", "err\n")


@pytest.mark.bubblewrap
def test_d12_a_secret_of_the_host_is_in_no_run_and_on_no_tape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("CANARY_LOGIN", "AWS_PROFILE_X", "MY_SERVICE", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, CANARY)
    file = tmp_path / "tape.db"
    store = SqliteStore(file)
    llm = ScriptedLlm({**HAPPY, "code": [{"code": PRINTING}]})
    sandbox = BubblewrapSandbox()

    async def session() -> str:
        try:
            opened = await engine(store, llm, sandbox).start("d12", JOB)
            return opened.state.value
        finally:
            await sandbox.close()

    state = asyncio.run(session())
    rows = "".join(str(event) for event in store.read("d12"))
    store.close()
    with sqlite3.connect(file) as raw:
        hashes = [row[0] for row in raw.execute("select hash from blobs")]
    again = SqliteStore(file)
    bodies = b"".join(again.get_blob(each) for each in hashes)
    again.close()
    assert state == "Done"
    assert "TMPDIR" in rows + bodies.decode(errors="replace"), (
        "what the code printed is on the tape"
    )
    assert CANARY not in rows
    assert CANARY.encode() not in bodies
    assert CANARY not in "".join(capfd.readouterr())


def test_d13_what_comes_out_is_plain_files_within_bounds(tmp_path: Path) -> None:
    source, target = tmp_path / "outputs", tmp_path / "collected"
    source.mkdir()
    (tmp_path / "secret").write_text("of the host")
    (source / "link").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(source / "pipe")
    with (source / "sparse").open("wb") as sparse:
        sparse.truncate(10 << 30)
    (source / "good").write_text("good")
    names = ("link/secret", "../secret", str(tmp_path / "secret"), "pipe", "sparse", "good")
    found = collect(source, names, target, 1 << 20)
    assert [file.name for file in found.outputs] == ["good"]
    assert [text.partition(":")[0] for text in found.refused] == [*names[:-1]]
    assert [path.name for path in target.rglob("*") if path.is_file()] == ["good"]


@pytest.mark.bubblewrap
def test_d14_bytes_that_are_no_text_lose_no_result(bench: Judge) -> None:
    tests = "import os\ndef test_a(): os.write(1, b'\\xff\\xfe ok')\n"
    judged = bench.tests(tests)
    assert isinstance(judged.event, e.TestsPassed)
    assert judged.run.stdout == "\\xff\\xfe ok"


@pytest.mark.bubblewrap
def test_d15_waiting_for_input_is_a_fault_of_the_code(bench: Judge) -> None:
    solution = "def add(a, b):\n    return int(input('a? ')) + b\n"
    judged = bench.tests("from solution import add\ndef test_a(): add(1, 2)\n", solution)
    assert judged.labels == {"test_a": "logic"}
    assert not judged.run.timed_out


@pytest.mark.bubblewrap
@pytest.mark.slow  # it downloads matplotlib
@pytest.mark.timeout(600)
def test_d15_a_window_does_not_wait_for_anybody(bench: Judge) -> None:
    solution = "import matplotlib.pyplot as plt\ndef shown():\n    plt.plot([1])\n    plt.show()\n"
    tests = "from solution import shown\ndef test_a():\n    assert shown() is None\n"
    judged = bench.tests(tests, solution, requires=("matplotlib",))
    assert isinstance(judged.event, e.TestsPassed)


@pytest.mark.bubblewrap
def test_d20_who_removes_the_outputs_keeps_the_verdict(bench: Judge) -> None:
    tests = """
        import os, shutil
        def test_a():
            shutil.rmtree("/var/outputs", ignore_errors=True)
            os.makedirs("/var/outputs", exist_ok=True)
            open("/var/outputs/new", "w").write("new")
        def test_b():
            for folder in ("/var/inputs", "/opt/codetape"):
                shutil.rmtree(folder, ignore_errors=True)
            assert os.path.exists("/var/inputs/test_solution.py")
    """
    judged = bench.tests(tests, outputs=("new",))
    assert isinstance(judged.event, e.TestsPassed)
    assert [file.text for file in judged.run.outputs] == ["new"]
