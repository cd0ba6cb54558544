"""What the command line does with tapes: forking, comparing, walking, checking, moving them."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.marks import mark
from codetape.states.values import Answer
from tests.support.sessions import ID, JOB, LOGIC, ONE_REPAIR, play
from tests.unit.replay.sessions import fails

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one session of a failed test and a repair, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CODETAPE_STORE", raising=False)
    path = tmp_path / "codetape.db"
    with closing(SqliteStore(path)) as kept:
        asyncio.run(play(ONE_REPAIR, runs=[fails("test_add")], store=kept))
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], store: Path) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def forked(run: Run, *words: str) -> str:
    """Fork the session and return the id of the fork."""
    code, out, err = run("fork", "session", *words)
    assert code == 0, err
    return out.split()[1]


def seq_of(store: Path, name: str) -> int:
    with closing(SqliteStore(store)) as kept:
        return next(row.seq for row in kept.read(ID) if row.name == name)


# --- fork -----------------------------------------------------------------------------------------


def test_fork_says_how_to_go_on(run: Run) -> None:
    code, out, _ = run("fork", "last", "--at", "4", "--set", "max_iterations=2")
    assert code == 0
    assert out.startswith("Session ")
    new = out.split()[1]
    assert f"begins with events 1 to 4 of {ID}." in out
    assert f"resume {new[:8]}" in out
    assert f"diff {ID[:8]} {new[:8]}" in out
    _, out, _ = run("show", new, "--events")
    assert "forked" in out.splitlines()[-1]
    assert "with another max_iterations" in out


def test_an_empty_model_is_not_the_one_of_before(run: Run) -> None:
    code, _, err = run("fork", "last", "--at", "4", "--model", "")
    assert code == 2
    assert "model: it is empty" in err


def test_forks_stand_below_their_parents(run: Run) -> None:
    one = forked(run, "--at", "4")
    two = forked(run, "--at", "6", "--model", "scripted/demo")
    run("fork", one, "--at", "5")
    _, out, _ = run("sessions")
    lines = out.splitlines()[1:]
    assert lines[0].startswith(ID)
    assert lines[1].startswith(f"└─ {one}")
    assert f"fork of {ID[:8]} at 4" in lines[1]
    assert lines[2].startswith("   └─ ")
    assert lines[3].startswith(f"└─ {two}")
    _, out, _ = run("sessions", "--limit", "1")
    assert len(out.splitlines()) == 3
    assert "3 older ones are not listed: --limit 0 lists all." in out


def test_a_session_that_runs_and_a_fork_that_waits_were_not_interrupted(
    run: Run, store: Path
) -> None:
    new = forked(run, "--at", "4")
    assert "Not done: it is a fork and was not gone on with yet; resume does" in run("show", new)[1]
    with closing(SqliteStore(store)) as kept:
        lease = kept.acquire(new, "somebody")
        assert "Not done: it is running (somebody)." in run("show", new)[1]
        kept.release(lease)
    assert "is running" not in run("show", new)[1]


def test_show_tells_own_from_inherited(run: Run, store: Path) -> None:
    new = forked(run, "--at", str(seq_of(store, "tests_written")))
    _, out, _ = run("show", new)
    assert "itself:     0 calls" in out
    assert "inherited:  3 calls" in out
    assert f"fork of:    {ID} at event" in out
    _, out, _ = run("show", ID)
    assert "inherited" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at", "99"], "events 1 to 11, not 99"),
        (["--at", "-2"], "-2 is not in the range x>=1"),
        (["--at", "11"], "is done after event 11; fork it before that"),
        (
            ["--at", "4", "--set", "colour=blue"],
            "colour: a fork cannot change that; it can change p",
        ),
        (["--at", "4", "--set", "max_iterations"], "--set max_iterations: write FIELD=VALUE"),
        (["--at", "4", "--set", "=3"], "--set =3: write FIELD=VALUE"),
        (["--at", "4", "--model", " "], "model: it is empty"),
        (["--at", "4", "--set", "max_iterations=0"], "max_iterations: 0 is less than 1"),
        (["--at", "4", "--set", "max_iterations=x"], "max_iterations: 'x' is no whole number"),
        (["--at", "4", "--set", "prompt= "], "prompt: it is empty"),
        (["--at", "4", "--set", "memory=1"], "resources: memory: 1 is less"),
        (["--at", "4", "--set", "seed=1", "--set", "seed=2"], "--set seed: it is given twice"),
        (["--at", "4", "--model", "scripted/none"], "none"),
        (["--at", "4", "--set", "network_access=maybe"], "'maybe' is no yes or no"),
    ],
)
def test_a_fork_that_makes_no_sense(run: Run, words: list[str], said: str) -> None:
    code, out, err = run("fork", "last", *words)
    assert (code, out) == (2, "")
    assert said.removeprefix("resources: ") in err
    assert run("sessions")[1].count(ID) == 1


def test_fork_with_another_answer(run: Run, store: Path, tmp_path: Path) -> None:
    seq = seq_of(store, "diagnosed")
    finding = {**LOGIC["failures"][0], "error_type": "test_error"}
    (tmp_path / "text").write_text(json.dumps({"failures": [finding]}))
    answer = Answer(text=json.dumps({"failures": [finding]}), finish_reason="stop")
    (tmp_path / "outcome").write_text(answer.model_dump_json())
    for file in ("text", "outcome"):
        new = forked(run, "--at", str(seq - 1), "--outcome", str(tmp_path / file))
        _, out, _ = run("show", new, "--events")
        assert "1 test_error" in out.splitlines()[-1]
        assert "the next outcome is given, it did not happen" in out
        assert run("replay", new)[0] == 0
    (tmp_path / "text").write_text("passed")
    code, _, err = run("fork", "last", "--at", str(seq_of(store, "tests_failed") - 1),
                       "--outcome", str(tmp_path / "text"))  # fmt: skip
    assert code == 2
    assert "no JSON of the form of run" in err


# --- time travel ----------------------------------------------------------------------------------


def test_the_session_as_it_was(run: Run, store: Path) -> None:
    seq = seq_of(store, "code_written")
    code, out, _ = run("show", "last", "--at", str(seq), "--code")
    assert (code, "return a - b" in out) == (0, True)
    assert "return a + b" in run("show", "last", "--code")[1]
    for words in (["show", "last", "--at"], ["replay", "last", "--to"]):
        code, out, _ = run(*words, str(seq))
        assert code == 0
        assert f"After event {seq} of 11, code_written: NeedsTests" in out
    assert len(run("show", "last", "--at", "5", "--events")[1].splitlines()) == 6
    assert run("show", "last", "--at", "12")[0] == 2


def test_a_walk(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seq = [row.seq for row in SqliteStore(store).read(ID) if row.name == "code_written"][1]
    words = ["", "n", "b", str(seq), "d", "c", "p", "a", "t", "99", "what", "?", "q", "n"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(words)))
    code, out, _ = run("replay", "last", "--step")
    assert code == 0
    events = [line.split()[0] for line in out.splitlines() if " -> " in line and line[:4].strip()]
    assert events == ["1", "2", "3", "2", str(seq)]
    assert "-    return a - b\n+    return a + b" in out
    assert "--- user ---" in out
    assert '{"code": "def add(a, b):' in out
    assert "def test_add():" in out
    assert "The events are 1 to 11." in out
    assert "what: no such word" in out


def test_a_walk_begins_where_it_is_told_and_ends_with_its_input(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("p\na\nd"))
    code, out, _ = run("replay", "last", "--step", "--to", "1")
    assert code == 0
    assert "This event answers no request." in out
    assert "This event tells of no outcome." in out
    assert "No code so far" in out


# --- drift ----------------------------------------------------------------------------------------


def spoil(store: Path, sql: str) -> None:
    with closing(sqlite3.connect(store)) as db:
        assert db.execute(sql).rowcount
        db.commit()


def test_replay_of_a_whole_store(run: Run, store: Path) -> None:
    new = forked(run, "--at", "4")
    code, out, _ = run("replay", "--all")
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:]] == [
        [ID, "11", "passed", "identical"],
        [new, "5", "not", "yet", "identical"],
    ]
    spoil(store, f"UPDATE events SET dest = 'Testing' WHERE session = '{new}' AND seq = 5")
    code, out, _ = run("replay", "--all")
    assert code == 1
    assert "event 5: its hash does not fit" in out
    assert "1 of 2 are not identical." in out
    for words in (
        [],
        ["--all", "last"],
        ["--all", "--step"],
        ["last", "--live", "model", "--to", "3"],
    ):
        assert run("replay", *words)[0] == 2


# --- diff -----------------------------------------------------------------------------------------


def test_diff(run: Run) -> None:
    new = forked(run, "--at", "4")
    code, out, _ = run("diff", ID, new)
    assert code == 1
    assert "part at the end of the second: the second tape ends before" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["session", ID[:8], new[:8]] in rows  # as they can be typed
    assert "not yet" in next(line for line in out.splitlines() if line.startswith("ending"))
    assert run("diff", ID, ID)[0] == 0
    code, out, _ = run("diff", ID, new, "--json")
    told = json.loads(out)
    assert code == 1
    assert told["parting"]["seqs"] == {"one": 5, "other": None}
    assert told["facts"]["calls"]["one"] == 5


# --- files, and whether they are what was written -------------------------------------------------


def test_a_fork_travels(run: Run, tmp_path: Path) -> None:
    new = forked(run, "--at", "4")
    assert run("export", new, "some.tape.jsonl")[0] == 0
    code, out, _ = run("import", "some.tape.jsonl", "--store", "other.db")
    assert code == 0
    assert f"Session {new} is in the store: 5 events." in out
    assert run("import", "some.tape.jsonl", "--store", "other.db")[0] == 0
    assert run("replay", "some.tape.jsonl")[0] == 0
    assert run("diff", new, "some.tape.jsonl")[0] == 0
    lines = run("sessions", "--store", "other.db")[1].splitlines()
    assert lines[2].startswith(f"└─ {new}")


def test_a_changed_file_is_refused_by_the_number_of_its_event(run: Run, tmp_path: Path) -> None:
    run("export", ID, "some.tape.jsonl")
    file = tmp_path / "some.tape.jsonl"
    file.write_text(file.read_text().replace('"dest":"Diagnosing"', '"dest":"Done"'))
    code, _, err = run("import", "some.tape.jsonl", "--store", "other.db")
    assert code == 1
    assert "event 7: its hash does not fit" in err
    assert not (tmp_path / "other.db").exists()
    assert run("verify", "some.tape.jsonl")[0] == 1


def test_verify(run: Run, store: Path) -> None:
    new = forked(run, "--at", "4")
    code, out, _ = run("verify")
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:]] == [
        [ID, "11", "intact"],
        [new, "5", "intact"],
    ]
    spoil(store, f"UPDATE events SET at = '' WHERE session = '{ID}' AND seq = 3")
    code, out, _ = run("verify")
    assert code == 1
    assert out.count("damaged at event 3: its hash does not fit") == 2  # the fork shares it
    assert "2 tapes are damaged." in out
    assert run("verify", new)[0] == 1


def test_verify_looks_at_texts_too(run: Run, store: Path) -> None:
    spoil(store, "UPDATE blobs SET body = x'00'")
    code, out, _ = run("verify")
    assert code == 1
    assert "damaged at event 2: blob" in out


def test_verify_finds_a_session_that_is_in_no_list(run: Run, store: Path) -> None:
    new = forked(run, "--at", "4")
    spoil(store, f"DELETE FROM sessions WHERE id = '{new}'")
    assert len(run("sessions")[1].splitlines()) == 2
    code, out, _ = run("verify")
    assert code == 1
    assert f"{new}  0       damaged at event 1: the session's own row is missing" in out


def test_a_redacted_file_can_be_looked_at(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("export", "last", "shown.tape.jsonl", "--redact")
    assert code == 0
    assert "It is redacted: prompts and answers cannot be compared any more" in out
    assert "Write add" not in (tmp_path / "shown.tape.jsonl").read_text()
    assert "tests_failed" in run("show", "shown.tape.jsonl", "--events")[1]
    assert run("verify", "shown.tape.jsonl")[0] == 0
    code, out, _ = run("replay", "shown.tape.jsonl")
    assert code == 1
    assert "it is redacted" in out
    code, _, err = run("import", "shown.tape.jsonl", "--store", "other.db")
    assert code == 1
    assert "is redacted" in err


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"\xff\xfe", "given: it is no text in UTF-8"), (b"hello", "Invalid JSON")],
)
def test_a_wrong_outcome_is_one_line(
    run: Run, store: Path, tmp_path: Path, body: bytes, said: str
) -> None:
    (tmp_path / "given").write_bytes(body)
    at = str(seq_of(store, "tests_failed") - 1)
    code, _, err = run("fork", "last", "--at", at, "--outcome", str(tmp_path / "given"))
    assert (code, err.count("\n")) == (2, 1)
    assert said in err


def test_a_fork_that_is_done_is_not_to_go_on(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "given").write_text('{"outcome": "run"}')
    at = str(seq_of(store, "tests_failed") - 1)
    code, out, _ = run("fork", "last", "--at", at, "--outcome", str(tmp_path / "given"))
    assert code == 0
    assert "Done" in out
    assert "resume" not in out


def test_what_is_no_tape_is_never_replaced_by_one(run: Run, store: Path, tmp_path: Path) -> None:
    """The store itself is the nearest mistake; a device would be replaced by a plain file."""
    before = store.read_bytes()
    os.mkfifo(tmp_path / "device")
    for there in (store, tmp_path / "device"):
        code, _, err = run("export", "last", str(there))
        assert code == 2
        assert f"cannot write {there}: it is there already and is no tape" in err
    assert store.read_bytes() == before
    assert (tmp_path / "device").is_fifo()


def test_an_older_export_and_an_empty_file_are_replaced(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.tape.jsonl"
    file.touch()
    assert run("export", "last", str(file))[0] == 0
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    assert run("export", "last", str(file))[0] == 0
    assert file.read_bytes() == whole


@pytest.mark.parametrize("words", [["fork", "--at", "4"], ["resume"], ["run"], ["export", "x"]])
def test_a_file_where_a_session_of_a_store_is_wanted(run: Run, words: list[str]) -> None:
    code, _, err = run(words[0], "a.tape.jsonl", *words[1:])
    assert code == 2
    assert "a.tape.jsonl is a file: `codetape import` it into a store" in err


@pytest.mark.parametrize(
    "words", [["show"], ["replay"], ["resume"], ["run"], ["fork", "--at", "4"]]
)
def test_the_last_session_of_an_empty_store(run: Run, tmp_path: Path, words: list[str]) -> None:
    empty = tmp_path / "empty.db"
    SqliteStore(empty).close()
    code, _, err = run(words[0], "last", *words[1:], "--store", str(empty))
    assert code == 2
    assert "the store has no session yet" in err


@pytest.mark.parametrize("command", ["show", "replay", "verify"])
def test_a_file_that_cannot_be_read(run: Run, tmp_path: Path, command: str) -> None:
    code, _, err = run(command, str(tmp_path / "none.jsonl"))
    assert code == 2
    assert "none.jsonl: No such file or directory" in err


@pytest.mark.parametrize("words", [["show", "last", "--at"], ["replay", "last", "--to"]])
def test_events_are_not_counted_from_the_end(run: Run, words: list[str]) -> None:
    code, out, err = run(*words, "-1")
    assert (code, out) == (2, "")
    assert "-1 is not in the range" in err


def test_ways_to_replay_are_named_as_they_were_typed(run: Run) -> None:
    for words in (["--to", "3"], ["--step"]):
        _, _, err = run("replay", "--all", *words)
        assert f"--all and {words[0]} do not go together" in err


def test_export_as_a_test(run: Run, tmp_path: Path) -> None:
    assert run("export", "last", "--as-test", "tapes")[0] == 0
    (file,) = (tmp_path / "tapes").iterdir()
    assert file.name == f"auto-coder-{ID[:8]}.tape.jsonl"
    assert run("replay", str(file))[0] == 0
    for words in ([], ["x", "--as-test", "y"], ["--as-test", "y", "--redact"]):
        assert run("export", "last", *words)[0] == 2


def test_g3_what_is_intact_of_a_damaged_tape_can_be_used(run: Run, store: Path) -> None:
    spoil(store, f"DELETE FROM events WHERE session = '{ID}' AND seq = 8")
    code, _, err = run("show", "last")
    assert code == 3
    assert "damaged at event 8: it is missing" in err
    assert "Events 1 to 7 are intact: show and fork them with --at" in err
    code, out, _ = run("show", "last", "--at", "7", "--events")
    assert (code, len(out.splitlines())) == (0, 8)
    assert run("show", "last", "--at", "8")[0] == 3
    assert run("fork", ID, "--at", "8")[0] == 3
    new = forked(run, "--at", "7")
    assert run("replay", new)[0] == 0
    assert run("verify", new)[0] == 0


def test_prune_and_compact(run: Run, store: Path) -> None:
    new = forked(run, "--at", "4")
    code, out, _ = run("prune", "--state", "Done", "--yes")
    assert code == 0
    assert f"{ID} stays: its fork {new} stays" in out
    code, out, _ = run("prune", "--keep", "0", "--dry-run")
    assert [line.split()[0] for line in out.splitlines()[1:3]] == [new, ID]
    assert len(run("sessions")[1].splitlines()) == 3
    code, _, err = run("prune", "--keep", "0")
    assert code == 2
    assert "add --yes" in err
    assert run("prune", "--keep", "0", "--yes")[0] == 0
    assert "no session yet" in run("sessions")[1]
    before = store.stat().st_size
    assert run("compact")[0] == 0
    assert store.stat().st_size < before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what may go: --older-than, --keep or --state"),
        (["--older-than", "soon"], "'soon' is no age"),
        (["--state", "Finished"], "there is no such state; NeedsCode"),
    ],
)
def test_a_prune_that_makes_no_sense(run: Run, words: list[str], said: str) -> None:
    code, _, err = run("prune", *words, "--yes")
    assert code == 2
    assert said in err


@pytest.mark.parametrize("marked", [True, False])
def test_prune_removes_the_folder_of_a_session_of_this_user(
    run: Run, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, marked: bool
) -> None:
    """A store of others may have a session by the same id: this user's data stays."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "data" / "codetape" / "sessions" / ID
    folder.mkdir(parents=True)
    (folder / "samples.csv").write_text("1,2\n")
    if marked:
        with closing(SqliteStore(store)) as kept:
            mark(kept, ID, JOB)
    assert run("prune", "--keep", "0", "--yes")[0] == 0
    assert folder.exists() is not marked
    assert folder.parent.exists()


@pytest.mark.slow
def test_half_live_names_what_was_not_asked_then(run: Run, tmp_path: Path) -> None:
    """Tests that really run fail in other words than the fake ones of the tape did."""
    job = JOB.model_copy(update={"sandbox": "process"})
    with closing(SqliteStore(tmp_path / "other.db")) as kept:
        asyncio.run(play(ONE_REPAIR, runs=[fails("test_add")], store=kept, job=job))
    live = ("replay", "last", "--live", "sandbox", "--store", "other.db")
    code, _, err = run(*live)
    assert code == 2, "it was not opened by the front door, and has no mark"
    code, out, err = run(*live, "--allow", "sandbox=process")
    assert code == 1, err
    assert "this diagnosis call was not recorded: event 8 differs in" in out
    assert "part at events 7 and 8: tests_failed differs in" in out
    assert len(run("sessions", "--store", "other.db")[1].splitlines()) == 2  # it is not kept
