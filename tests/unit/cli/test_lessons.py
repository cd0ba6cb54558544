"""`codetape feedback` and `codetape lessons`, as a person uses them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from codetape import AutoCoderAgent
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, failed
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.learning import guidance_for
from tests.support.sessions import ONE_REPAIR

ASKED = "Add the numbers of two columns of a ledger."
NOTE = "It should use decimals."
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a session that has learned something."""
    path = tmp_path / "tapes.db"
    runs = [failed({"test_add": ("AssertionError", "assert -1 == 3")})]
    with closing(SqliteStore(path)) as store:
        llm, sandbox = ScriptedLlm(ONE_REPAIR), FakeSandbox(runs=runs)
        AutoCoderAgent(model="scripted", llm=llm, sandbox=sandbox, store=store).generate(ASKED)
    return path


@pytest.fixture
def cli(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("CODETAPE_STORE", str(path))

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        return code, *capsys.readouterr()

    return run


def told(path: Path) -> tuple[str, ...]:
    with closing(SqliteStore(path)) as store:
        return guidance_for(store, "autocoder", ASKED)


def test_feedback_is_told_to_the_next_session(cli: Cli, path: Path) -> None:
    assert cli("feedback", "last", "--bad", NOTE)[0] == 0
    assert told(path)[0] == f"A person wants this avoided: {NOTE}"
    code, out, _ = cli("feedback", "last", "--good")
    assert code == 0
    assert "a NOTE would say what to do" in out
    assert NOTE not in "".join(told(path))  # the later verdict takes its place


def test_lessons_are_listed_with_their_session_and_verdict(cli: Cli) -> None:
    cli("feedback", "last", "--bad", NOTE)
    code, out, _ = cli("lessons")
    head, derived, note, count = out.rstrip().split("\n")
    assert code == 0
    assert head.split() == ["ID", "LANE", "SAID", "USED", "LEARNED", "LESSON"]
    assert derived.split()[:4] == ["1", "autocoder", "bad", "0"]
    assert "AssertionError in test_add" in derived
    assert f"(note) {NOTE}" in note
    assert count == "2 lessons."
    assert cli("lessons", "list", "--lane", "make_tool")[1].startswith("Nothing was learned yet")


@pytest.mark.parametrize("words", [("lessons", "--json"), ("lessons", "list", "--json")])
def test_lessons_as_json(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, _ = cli(*words)
    (lesson,) = json.loads(out)["lessons"]
    assert code == 0
    assert (lesson["id"], lesson["lane"], lesson["request"]) == (1, "autocoder", ASKED)
    assert (lesson["uses"], lesson["good"], lesson["note"]) == (0, None, False)


def test_a_lesson_is_corrected_and_forgotten(cli: Cli, path: Path) -> None:
    assert cli("lessons", "edit", "1", "Add, never subtract.") == (0, "Lesson 1 is changed.\n", "")
    assert told(path) == ("Add, never subtract.",)
    assert cli("lessons", "forget", "1") == (0, "Lesson 1 is forgotten.\n", "")
    assert told(path) == ()


def test_the_store_may_be_named_on_either_side(cli: Cli, tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other.db"
    SqliteStore(other).close()
    for words in (("--store", str(other), "list"), ("list", "--store", str(other))):
        assert cli("lessons", *words)[1].startswith("Nothing was learned yet")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("feedback", "last"), "--good"),
        (("feedback", "last", "--good", "--bad"), "--good"),
        (("feedback", "zzz", "--good"), "no session 'zzz'"),
        (("lessons", "edit", "7", "x"), "there is no lesson 7; `codetape lessons"),
        (("lessons", "edit", "1", " "), "better forgotten"),
        (("lessons", "forget", "7"), "there is no lesson 7"),
        (("lessons", "forget", str(2**80)), "there is no lesson"),
        (("lessons", "forget", "one"), "'one'"),
        (("lessons", "--lane", "cooking"), "'cooking'"),
        (("lessons", "--json", "forget", "1"), "codetape lessons forget"),
        (("lessons", "--store", "nowhere.db"), "there is no store nowhere.db yet"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, tuple) else "",
)
def test_what_is_wrong_is_named(cli: Cli, words: tuple[str, ...], said: str) -> None:
    code, out, errors = cli(*words)
    assert (code, out) == (2, "")
    assert said in errors
    assert cli("lessons")[1].rstrip().endswith("1 lesson.")  # nothing was changed


@pytest.mark.parametrize("words", [("feedback",), ("lessons",), ("lessons", "list"),
                                   ("lessons", "edit"), ("lessons", "forget")])  # fmt: skip
def test_help_teaches_and_fits(
    cli: Cli, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = cli(*words, "--help")
    assert code == 0
    assert f"codetape {' '.join(words)}" in out.partition("Example")[2]
    assert max(map(len, out.split("\n"))) <= 80
