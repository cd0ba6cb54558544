"""Hostile text in every field of a tape leaves each command escaped, on a terminal and on a pipe."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.cli.out import in_json
from codetape.replay.export import export_tape
from codetape.states.job import Job
from codetape.states.values import Declared
from tests.support.sessions import HAPPY, ID, LOGIC, RIGHT, TESTS, WRONG, play
from tests.unit.replay.sessions import fails

EVIL = "\x1b[31m\x1b]8;;http://x\x07\x9b2J\x7f\b\r\u202e\u2066\u200b\u2028\U000e0041[bold]:smile:"
FILE = "evil\x1b[31m\u202e.tape.jsonl"
CLI = Path(__file__).parents[3] / "codetape" / "cli"

COMMANDS = (
    *(["show", "last", *view] for view in ([], ["--events"], ["--code"], ["--tests"])),
    *(["show", "last", *view] for view in (["--prompts"], ["--json"], ["--at", "2"])),
    ["show", FILE, "--events"],
    ["sessions"],
    ["sessions", "--json"],
    ["replay", "last"],
    ["replay", "--all"],
    ["replay", "last", "--to", "3"],
    ["replay", "last", "--step"],
    ["replay", FILE, "--step"],
    ["diff", ID, FILE],
    ["diff", ID, FILE, "--json"],
    ["verify", FILE],
    ["verify", "last"],
    ["import", FILE],
    ["import", "bad" + FILE],
    ["show", "bad" + FILE],
    ["export", "last", EVIL + "/x"],
    ["lessons"],
    ["lessons", "--json"],
    ["feedback", ID, "--bad", EVIL],
    ["fork", ID, "--at", "2"],
    ["fork", ID, "--at", "2", "--set", EVIL],
    ["run", "last", "--help"],
    ["run", "last", EVIL],
    ["run", "last", "--" + EVIL.replace("=", ""), "x"],
    ["prune", "--dry-run", "--keep", "0"],
    ["check", EVIL],
    ["graph"],
    [EVIL],
    ["show", EVIL],
    ["show", "last", "--" + EVIL],
    ["show", "last", "--store", EVIL],
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, a file of a tape, and a file that is none, with hostile text in each field."""
    folder = tmp_path_factory.mktemp("hostile")
    code = {"code": RIGHT["code"] + f'X = """{EVIL}"""\n'.replace("\r", "")}
    script = {
        **HAPPY,
        "plan": [{"description": EVIL, "approach": EVIL}],
        "code": [WRONG, code],
        "tests": [TESTS],
        "diagnosis": [LOGIC],
    }
    outputs = (Declared(name=EVIL, type="str"),)
    job = Job(prompt=EVIL, name=EVIL, model=EVIL, inputs=outputs, outputs=outputs)
    with closing(SqliteStore(folder / "codetape.db")) as kept:
        asyncio.run(play(script, runs=[fails("test_add", EVIL)], store=kept, job=job))
        export_tape(kept, ID, folder / FILE)
    lines = (folder / FILE).read_text().splitlines()
    dest = f'"dest":{json.dumps(EVIL)}'
    changed = re.sub(r'"dest":"[^"]*"', lambda _: dest, "\n".join(lines))
    (folder / ("bad" + FILE)).write_text(changed + "\n")
    return folder


def run(place: Path, words: list[str], stream: int) -> None:
    """Run a command as a user does; how it ends is not asked."""
    subprocess.run(
        [sys.executable, "-m", "codetape", *words],
        check=False, cwd=place, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )  # fmt: skip


def hidden(text: str) -> set[str]:
    """Return what is no visible character."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return {c for c in text if c not in "\n\t" and unicodedata.category(c) in kinds}


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: ascii(" ".join(words))[:40])
def test_commands_show_no_control_on_pipes(place: Path, tmp_path: Path, words: list[str]) -> None:
    """Nothing but newlines and tabs is left, and no traceback is a way out."""
    with (tmp_path / "said").open("wb") as file:
        run(place, words, file.fileno())
    said = (tmp_path / "said").read_bytes().decode()
    assert said
    assert hidden(said) == set()
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: ascii(" ".join(words))[:40])
def test_commands_show_only_our_codes_on_terminals(place: Path, words: list[str]) -> None:
    """Colours and moves of the cursor are rich's own; no text brings any."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "codetape", *words],
        cwd=place, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    try:
        while block := os.read(ours, 65536):
            said += block
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    process.wait()
    text = said.decode().replace("\r\n", "\n").replace("\r\x1b[K", "")
    assert "\x1b[31m\x1b" not in text
    left = re.sub(r"\x1b\[[0-9;]*m|\r(?=[a-z]+: \d+ of \d+)", "", text)
    assert hidden(left) == set()


@pytest.mark.parametrize(
    "words",
    [
        ["lessons", "--json"],
        ["sessions", "--json"],
        ["show", "last", "--json"],
        ["replay", FILE, "--step"],
        ["show", "bad" + FILE],
        [EVIL],
    ],
    ids=lambda words: ascii(" ".join(words))[:40],
)
def test_hostile_texts_are_shown_escaped(
    place: Path,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The quick half of the commands, in this process."""
    monkeypatch.chdir(place)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    main(["feedback", ID, "--good", EVIL])
    capsys.readouterr()
    main(words)
    said = capsys.readouterr()
    assert said.out + said.err
    assert hidden(said.out + said.err) == set()


def test_json_for_terminals_decodes_to_the_same() -> None:
    """Escapes of JSON hide nothing from a program."""
    assert json.loads(in_json({"x": EVIL + "\ud800"})) == {"x": EVIL + "\ud800"}
    assert hidden(in_json({"x": EVIL + "\ud800"})) == set()


def test_commands_print_in_one_place_only() -> None:
    """A command that printed by itself could forget to escape."""
    found = []
    for file in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in {"print", "click.echo", "click.secho", "Console"} or (
                    called.endswith((".stdout.write", ".stderr.write"))
                ):
                    found.append(file.name)
    assert set(found) <= {"out.py", "plain.py", "progress.py", "terminal.py"}


def test_times_that_cannot_be_told_are_unknown() -> None:
    """A tape from elsewhere may have any text for a time."""
    from codetape.cli.sessions import ago, between

    for moment in ("x", "", "2026-01-01T00:00:00", EVIL):
        assert ago(moment) == "unknown"
    assert between("x", "2026-01-01T00:00:00+00:00") is None


def test_errors_and_reprs_hold_no_controls() -> None:
    """A traceback and a prompt of Python are terminals, too."""
    from codetape.engine.codec import UnreadableEvent
    from codetape.engine.ports import DamagedTape, StoreUnusable
    from codetape.replay.imports import BadTapeFile
    from tests.unit.replay.test_shown_tapes import tape

    shown = tape(EVIL)
    said = [
        str(DamagedTape(EVIL, 1, EVIL)),
        str(StoreUnusable(EVIL, EVIL)),
        str(UnreadableEvent(EVIL, 1, EVIL)),
        str(BadTapeFile(Path(EVIL), 1, 1, EVIL)),
        *map(repr, (shown, *shown)),
    ]
    assert [hidden(text) for text in said] == [set()] * len(said)
