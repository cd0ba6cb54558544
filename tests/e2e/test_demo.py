"""The demo in real sandboxes: the same path in each, killed at every event, interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from codetape import composition, demo
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, broke
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.engine.tape import Recorded, read
from codetape.states.events import CodeWritten
from codetape.states.values import Answer

PATH = [
    "NeedsCode -> NeedsCode        session_opened",
    "NeedsCode -> NeedsCode        sandbox_ready",
    "NeedsCode -> NeedsCode        planned",
    "NeedsCode -> NeedsTests       code_written",
    "NeedsTests -> NeedsRebuild    tests_written",
    "NeedsRebuild -> Testing       image_built",
    "Testing -> Diagnosing         tests_failed",
    "Diagnosing -> Reclassify      diagnosed",
    "Reclassify -> NeedsCode       reclassified",
    "NeedsCode -> Testing          code_written",
    "Testing -> Done               tests_passed",
]
EVENTS = range(1, len(PATH) + 1)
CODE = demo.script("demo")["code"][1]["code"] + "\n"
ROOT = Path(__file__).parents[2]
SANDBOXES = [
    "process",
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("podman", marks=pytest.mark.podman),
]


def path_in(text: str) -> list[str]:
    """The transitions among the lines of a pipe."""
    return [line[6:53].rstrip() for line in text.splitlines() if " -> " in line[6:24]]


def session_in(store: Path) -> str:
    with closing(SqliteStore(store)) as opened:
        return opened.sessions()[-1].id


def records_of(store: Path) -> list[Recorded]:
    with closing(SqliteStore(store)) as opened:
        return list(read(opened, opened.sessions()[-1].id))


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedLlm]:
    """The models that are made from now on."""
    made: list[ScriptedLlm] = []
    real = composition.make_llm

    def kept(*arguments: object) -> object:
        made.append(real(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(composition, "make_llm", kept)
    return made


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_demo_goes_the_same_way_in_every_sandbox(
    sandbox: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "demo.db")
    assert main(["demo", "--sandbox", sandbox, "--store", store]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("The model of this demo is scripted")
    assert path_in(shown) == PATH
    assert "attempts:  2 of 5" in shown
    assert "total_anomalies:  9" in shown
    assert "boiler-room,56,4,41.36,2" in shown
    assert demo.WRONG in shown, "the diagnosis names what is wrong"
    assert f"codetape replay last --store {store}" in shown

    assert main(["replay", "last", "--store", store]) == 0
    assert "identical: 11 events" in capsys.readouterr().out


def test_demo_shows_each_event_once_and_a_script_is_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--sandbox", "process", "--store", str(tmp_path / "demo.db")]) == 0
    shown = capsys.readouterr().out
    names = [line.split()[-1] for line in PATH]
    pattern = rf"\b({'|'.join({*names})})\b"
    assert re.findall(pattern, shown) == names
    assert "cost:      $0\n" in shown


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which neither podman nor bubblewrap works."""
    for name in ("_podman", "_bubblewrap"):
        monkeypatch.setattr(composition, name, broken)


def broken(*_: object) -> FakeSandbox:
    return FakeSandbox(builds=[broke("not here", missing=True)])


@pytest.mark.usefixtures("no_sandbox")
def test_without_a_sandbox_the_demo_alone_runs_its_own_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ("--store", str(tmp_path / "demo.db"))
    assert main(["demo", *store]) == 0
    shown = capsys.readouterr().out
    assert path_in(shown) == PATH
    (line,) = [line for line in shown.splitlines() if "bare process" in line]
    assert line.startswith("No sandbox works here: the demo's own code runs in a bare process")
    assert records_of(tmp_path / "demo.db")[0].event.job.sandbox == "process"  # type: ignore[attr-defined]
    assert main(["run", "last", "--threshold", "2.5", *store]) == 0


@pytest.mark.usefixtures("no_sandbox")
def test_other_code_in_a_fork_of_the_bare_demo_is_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, canary = ("--store", str(tmp_path / "demo.db")), tmp_path / "canary"
    assert main(["demo", *store]) == 0
    events = [each.event.name for each in records_of(tmp_path / "demo.db")]
    code = f"def mean(values):\n    return 0\n\n\nopen({str(canary)!r}, 'w').close()\n"
    (tmp_path / "answer").write_text(f"```python\n{code}```")
    at = str(events.index("code_written"))
    forked = ["fork", "last", "--at", at, "--outcome", str(tmp_path / "answer"), *store]
    assert main(forked) == 0
    assert main(["resume", "last", *store]) == 2
    assert "sandbox=process" in capsys.readouterr().err
    assert not canary.exists()


@pytest.mark.usefixtures("no_sandbox")
@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--sandbox", "bubblewrap"],
        ["demo", "--sandbox", "podman"],
        ["generate", "Add.", "--model", demo.MODEL],
        ["tool", "Add.", "--model", demo.MODEL],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_without_a_sandbox_nothing_else_runs(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--store", str(tmp_path / "none.db")]) == 3
    shown = capsys.readouterr()
    assert "bare process" not in shown.out + shown.err
    assert main(["resume", "last", "--store", str(tmp_path / "none.db")]) != 0
    names = [each.event.name for each in records_of(tmp_path / "none.db")]
    assert "sandbox_ready" not in names


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store for each event after which the demo was killed."""
    folder = tmp_path_factory.mktemp("killed")
    run_killed(folder, "process", *EVENTS)
    return folder


def run_killed(folder: Path, sandbox: str, *events: int) -> None:
    module = [sys.executable, "-m", "tests.support.demo_killed"]
    command = [*module, str(folder), sandbox, *map(str, events)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=100)


@pytest.mark.parametrize("event", EVENTS)
def test_g4_killed_at_any_event_it_ends_the_same(
    event: int, killed: Path, models: list[ScriptedLlm], capsys: pytest.CaptureFixture[str]
) -> None:
    check_resumed(killed / f"{event}.db", event, models)
    path = path_in(capsys.readouterr().out)
    assert path[1:] == PATH[event:]
    assert path[:1] == [line for line in path if line.endswith(" resumed")]


@pytest.mark.bubblewrap
def test_killed_while_the_image_is_built_in_bubblewrap(
    tmp_path: Path, models: list[ScriptedLlm]
) -> None:
    run_killed(tmp_path, "bubblewrap", 5)
    check_resumed(tmp_path / "5.db", 5, models)


def check_resumed(store: Path, event: int, models: list[ScriptedLlm]) -> None:
    """Resume a killed session; what was on the tape stays there and is not asked for again."""
    before = records_of(store)
    assert len(before) == event
    assert main(["resume", "last", "--store", str(store)]) == 0
    after = records_of(store)
    assert after[:event] == before
    assert code_of(after) == CODE
    answered = [r for r in before if isinstance(r.event.outcome, Answer)]
    assert sum(len(model.calls) for model in models) == 5 - len(answered)


def code_of(records: list[Recorded]) -> str:
    return [r.event.source for r in records if isinstance(r.event, CodeWritten)][-1]


class Demo(subprocess.Popen[str]):
    """The demo as a process of its own, with its output in a pipe."""

    def __init__(self, store: Path) -> None:
        command = [sys.executable, "-m", "codetape", "demo", "--sandbox", "process"]
        super().__init__(
            [*command, "--store", str(store)],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def until(self, words: str) -> None:
        """Read until a line has `words` in it."""
        assert self.stdout is not None
        assert any(words in line for line in self.stdout), f"there was no line with {words!r}"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Demo]:
    with Demo(tmp_path / "demo.db") as process:
        yield process
        process.kill()


@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGTERM"])
def test_interruption_leaves_a_session_that_goes_on(
    signal_name: str, running: Demo, tmp_path: Path, models: list[ScriptedLlm]
) -> None:
    running.until("image_built")
    os.kill(running.pid, signal.Signals[signal_name])
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    store = tmp_path / "demo.db"
    records = records_of(store)
    assert records[-1].event.name == "paused"
    assert "; session " in said
    assert f" is kept. Go on: codetape resume {session_in(store)[:8]} --store {store}\n" in said
    check_resumed(store, len(records), models)


def test_reader_that_goes_away_does_not_end_the_session(running: Demo, tmp_path: Path) -> None:
    running.until("planned")
    assert running.stdout is not None
    running.stdout.close()
    assert running.wait(timeout=60) == 1
    assert running.stderr is not None
    assert running.stderr.read() == ""
    assert [r.event.name for r in records_of(tmp_path / "demo.db")][-1] == "tests_passed"
