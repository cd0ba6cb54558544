"""The tool maker over a real server and in real sandboxes, once for each of its ends."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from codetape import Progress, Tool, ToolMaker
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.engine.tape import read
from codetape.replay.replayer import replay
from codetape.states.events import Answered, Ran
from tests.support import tool_killed
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer
from tests.support.tools import COURSES, DESIGN, HARNESS, QUESTION, TOOL, fenced

ROOT = Path(__file__).parents[2]
SANDBOXES = [
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("podman", marks=[pytest.mark.podman, pytest.mark.slow]),
]


def made(tmp_path: Path, status: str, sandbox: str) -> tuple[Tool, int]:
    """Make the tool of a course, and say how many calls the server answered."""
    course = COURSES[status]
    seen: list[Progress] = []

    def cancel() -> bool:
        return course.cancelled_after is not None and len(seen) + 1 >= course.cancelled_after

    with ChatServer([Reply(answer) for answer in course.answers]) as server:
        maker = ToolMaker(
            model="openai/small",
            project=tmp_path / "log-tools",
            api_base=server.base,
            sandbox=sandbox,
            store=tmp_path / "codetape.db",
            cancel=cancel,
            on_event=seen.append,
        )
        return maker.make(QUESTION), len(server.requests)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("status", COURSES)
def test_every_end_of_the_course(tmp_path: Path, status: str, sandbox: str) -> None:
    tool, calls = made(tmp_path, status, sandbox)
    assert (tool.status, tool.harness_status) == (status, COURSES[status].harness)
    assert calls == len(COURSES[status].answers), "no call is in vain, and none comes after the end"
    assert replay(tool.store, tool.session).identical
    assert tool.report_path is not None
    assert f"- status: {status}" in tool.report_path.read_text()
    if tool.success and tool.path:
        ran = subprocess.run([sys.executable, str(tool.path)], capture_output=True, check=True)
        assert ran.stdout.decode() == "200 2\n404 1\n"


def test_a_function_of_the_tool_is_no_test_whatever_its_name(tmp_path: Path) -> None:
    tool = TOOL.replace(
        "def main(", "def test_line(line: str) -> bool:\n    return True\n\n\ndef main("
    )
    with ChatServer(
        [Reply(answer) for answer in (DESIGN, fenced(tool), fenced(HARNESS))]
    ) as server:
        maker = ToolMaker(
            model="openai/small", project=tmp_path, api_base=server.base, sandbox="process",
            store=tmp_path / "codetape.db",
        )  # fmt: skip
        assert maker.make(QUESTION).status == "passed"


EVENTS = range(1, 13)  # of the course that ends as fixed, but the last


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store for each event after which the making was killed."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.support.tool_killed", str(folder), *map(str, EVENTS)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.mark.parametrize("event", EVENTS)
def test_killed_after_any_event_it_goes_on_to_the_same_tool(killed: Path, event: int) -> None:
    """kill -9, then resume: nothing that is on the tape is asked for again."""
    store, project = killed / f"{event}.db", killed / str(event)
    with closing(SqliteStore(store)) as opened:
        events = [record.event for record in read(opened, opened.sessions()[-1].id)]
    assert len(events) == event
    calls, runs = (sum(isinstance(e, kind) for e in events) for kind in (Answered, Ran))
    tool = tool_killed.maker(str(store), str(project), calls, runs).resume("last")
    assert (tool.status, tool.code) == ("fixed", TOOL)
    assert tool.folded.seq == len(EVENTS) + 2  # with its last, and that somebody went on
    assert tool.folded.totals.calls == len(tool_killed.KINDS)
    assert tool.path is not None
    assert tool.path.read_text() == TOOL


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("format.txt").write_text("method path status", encoding="utf-8")
    Path("models.toml").write_text('model = "openai/small"\n[models]\ncoder = "openai/big"\n')
    replies = [Reply(DESIGN), Reply(fenced(TOOL)), Reply(fenced(HARNESS))]
    words = ["tool", QUESTION, "--models", "models.toml", "--project", "logs"]
    with ChatServer(replies) as server:
        more = ["--context", "format.txt", "--sandbox", "process", "--api-base", server.base]
        code, out, err = run(capsys, *words, *more)
    assert code == 0, err
    assert "Passed: the tool runs, and its harness passed at once." in out
    assert [request.body["model"] for request in server.requests] == ["small", "big", "big"]
    assert "method path status" in str(server.requests[0].body)
    (file,) = Path("logs/implementation").glob("*_tool.py")
    assert str(file) in out
    assert run(capsys, "replay", "last")[0] == 0
    assert "def statuses" in run(capsys, "show", "last", "--code")[1]
    shown = " ".join(run(capsys, "show", "last")[1].split())
    assert "status: passed harness: passed repairs: 0 crashes, 0 of its logic" in shown
    assert "harness_written" in run(capsys, "show", "last", "--events")[1]
    code, out, _ = run(capsys, "resume", "last")
    assert code == 0
    assert "done already" in out


def test_as_json_with_a_budget_that_pauses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ChatServer([Reply(DESIGN), Reply(fenced(TOOL)), Reply(fenced(HARNESS))]) as server:
        words = ["tool", QUESTION, "--model", "openai/small", "--sandbox", "process", "--json"]
        code, out, _ = run(capsys, *words, "--api-base", server.base, "--budget", "calls=2")
        paused = json.loads(out)
        assert (code, paused["status"]) == (1, None)
        assert "budget of 2 calls" in paused["error"]
        code, out, _ = run(capsys, "resume", "last", "--budget", "calls=3")
    assert code == 0
    assert "harness" in out


def test_the_next_step_can_be_typed_as_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replies = [Reply(answer) for answer in (DESIGN, fenced(TOOL), fenced(HARNESS))]
    with ChatServer(replies * 2) as server:
        words = ["tool", QUESTION, "--model", "openai/small", "--sandbox", "process"]
        for project in ("my tools", "-mine"):
            _, out, _ = run(capsys, *words, "--project", project, "--api-base", server.base)
            command = out.partition("run it:")[2].strip().splitlines()[0]
            ran = subprocess.run(command, shell=True, capture_output=True, check=True, text=True)
            assert "Count the statuses" in ran.stdout


def test_one_file_of_models_serves_both_workflows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = 'tool_architect = "openai/big"\nharness = "openai/sharp"\ndiagnosis = "openai/wise"\n'
    Path("models.toml").write_text(f'model = "openai/small"\n[models]\n{kinds}')
    with ChatServer() as server:
        for command in ("tool", "generate"):
            words = [command, "x", "--models", "models.toml", "--sandbox", "process"]
            code, _, err = run(capsys, *words, "--api-base", server.base)
            assert (code, err) == (1, "")
    assert [request.body["model"] for request in server.requests] == ["big", "small"]


WRONG: dict[str, tuple[list[str], str]] = {
    "no model": (["tool", "x"], "Missing option '--model'"),
    "no question": (["tool", "--model", "m"], "Missing argument 'QUESTION'"),
    "empty question": (["tool", " ", "--model", "openai/small"], "prompt: it is empty"),
    "no context": (["tool", "x", "--model", "m", "--context", "nosuch"], "cannot read nosuch"),
    "context that is no text": (
        ["tool", "x", "--context", sys.executable],
        f"cannot read {sys.executable}: it is not UTF-8",
    ),
    "no models": (["tool", "x", "--models", "nosuch.toml"], "nosuch.toml: No such file"),
    "no cycles": (["tool", "x", "--model", "m", "--fix-cycles", "-1"], "-1 is not in the range"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_words_get_one_clear_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, said = WRONG[case]
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
