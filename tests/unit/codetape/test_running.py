"""Running a solution: arguments to options, files to inputs, outputs to types."""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape import Dir, File, RunFailed
from codetape.adapters.sandbox.fake import FakeSandbox, ended, passed
from codetape.composition import session_folder
from codetape.result import Result
from codetape.states.values import OutputFile, RunOutcome, RunSpec
from tests.unit.codetape.test_agent import agent

INPUTS = {
    "n": int,
    "x": float,
    "flag": bool,
    "name": str,
    "since": datetime,
    "wait": timedelta,
}


def result(sandbox: FakeSandbox, **call: Any) -> Result:
    made = agent(sandbox=sandbox).generate("Write add(a, b).", **call)
    assert made.success
    return made


def wrote(
    folder: Path, outputs: Mapping[str, str], folders: Mapping[str, Mapping[str, str]] = {}
) -> Callable[[RunSpec], RunOutcome]:
    """A run that leaves these outputs in a folder of the host."""

    def run(_: RunSpec) -> RunOutcome:
        folder.mkdir(exist_ok=True)
        files = []
        for name, text in outputs.items():
            (folder / name).write_text(text)
            path = str(folder / name)
            files.append(OutputFile(name=name, path=path, size=len(text), text=text))
        for name, entries in folders.items():
            (folder / name).mkdir()
            for entry, text in entries.items():
                (folder / name / entry).write_text(text)
            files.append(OutputFile(name=name, path=str(folder / name), is_folder=True))
        return ended().model_copy(update={"outputs": tuple(files)})

    return run


def test_inputs_become_options_in_declared_order() -> None:
    sandbox = FakeSandbox()
    made = result(sandbox, inputs=INPUTS)
    made.run(
        flag=True,
        n="3",
        x=0.1,
        name="a b; rm -rf /",
        since=datetime(2026, 1, 2, tzinfo=UTC),
        wait=timedelta(minutes=2),
    )
    assert sandbox.runs[-1].arguments == (
        *("--n", "3", "--x", "0.1", "--flag", "true", "--name", "a b; rm -rf /"),
        *("--since", "2026-01-02T00:00:00+00:00", "--wait", "120.0"),
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("n", "three"), ("x", None), ("flag", "maybe"), ("since", "yesterday"), ("wait", "long")],
)
def test_a_value_of_another_type_is_named(name: str, value: Any) -> None:
    good: dict[str, Any] = {
        "n": 1,
        "x": 1,
        "flag": True,
        "name": "a",
        "since": "2026-01-01",
        "wait": 1,
    }
    made = result(FakeSandbox(), inputs=INPUTS)
    with pytest.raises(ValueError, match=f"^{name}: "):
        made.run(**(good | {name: value}))


def test_an_input_that_is_not_there_or_not_given_is_named() -> None:
    made = result(FakeSandbox(), inputs={"n": int})
    with pytest.raises(ValueError, match="m: there is no such input; there are n"):
        made.run(m=1)
    with pytest.raises(ValueError, match="n: this input has no value"):
        made.run()


def test_samples_are_the_defaults_and_new_files_take_their_place(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new data.csv"
    old.write_text("a\n1\n")
    new.write_text("a\n2\n")
    sandbox = FakeSandbox()
    made = result(sandbox, samples={"readings": old})
    made.run()
    made.as_task()(readings=new)
    files = [run.host_files[0] for run in sandbox.runs[-2:]]
    assert [file.path for file in files] == [str(old), str(new)]
    assert {file.name for file in files} == {"readings.csv"}
    assert sandbox.runs[-1].arguments == ("--readings", "/var/inputs/readings.csv")


def test_a_folder_takes_the_place_of_no_file(tmp_path: Path) -> None:
    (tmp_path / "first.csv").write_text("a\n1\n")
    made = result(FakeSandbox(), samples={"data": tmp_path / "first.csv"})
    with pytest.raises(ValueError, match=r"^data: .* is a folder, declared is File$"):
        made.run(data=tmp_path)


def test_one_output_comes_back_as_itself(tmp_path: Path) -> None:
    sandbox = FakeSandbox(runs=[passed(), wrote(tmp_path / "o", {"total": " 42\n"})])
    assert result(sandbox, outputs={"total": int}).run() == 42


def test_several_outputs_are_a_named_tuple_in_declared_order(tmp_path: Path) -> None:
    texts = {
        "ok": "True",
        "report.csv": "a\n1\n",
        "when": "2026-01-02T03:04:05",
        "took": "1.5",
        "words": " as it is ",
    }
    run = wrote(tmp_path / "o", texts, {"plots": {"one.txt": "1"}})
    outputs = {
        "report.csv": File,
        "when": datetime,
        "took": timedelta,
        "ok": bool,
        "words": str,
        "plots": Dir,
    }
    made = result(FakeSandbox(runs=[passed(), run]), outputs=outputs)
    values = made.run(output_dir=tmp_path / "kept")
    assert values._fields == ("report_csv", "when", "took", "ok", "words", "plots")
    assert values.report_csv.read_text() == "a\n1\n"
    assert values.report_csv.path == tmp_path / "kept" / "report.csv"
    assert values.when == datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001
    assert values.took == timedelta(seconds=1.5)
    assert values.ok is True
    assert values.words == " as it is "
    assert (values.plots.path / "one.txt").read_text() == "1"


@pytest.mark.parametrize("text", ["", "many", "1.5"])
def test_an_output_that_does_not_fit_its_type_is_named(tmp_path: Path, text: str) -> None:
    sandbox = FakeSandbox(runs=[passed(), wrote(tmp_path / "o", {"total": text})])
    with pytest.raises(RunFailed, match="output total is no int"):
        result(sandbox, outputs={"total": int}).run()


def test_an_output_that_was_not_written_is_named() -> None:
    with pytest.raises(RunFailed, match="wrote no output total"):
        result(FakeSandbox(), outputs={"total": int}).run()


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ended(3, stderr="Traceback: it broke"), "exit status 3\nTraceback: it broke"),
        (RunOutcome(timed_out=True), "time limit"),
        (RunOutcome(out_of_memory=True, signal=9), "memory"),
    ],
)
def test_code_that_fails_says_how(outcome: RunOutcome, words: str) -> None:
    made = result(FakeSandbox(runs=[passed(), outcome]))
    with pytest.raises(RunFailed, match=words) as caught:
        made.run()
    assert caught.value.outcome == outcome


def test_a_task_tries_again(tmp_path: Path) -> None:
    runs: list[Any] = [passed(), ended(1), ended(1), wrote(tmp_path / "o", {"total": "1"})]
    task = result(FakeSandbox(runs=runs), outputs={"total": int}).as_task("sum", retries=2)
    assert task.name == "sum"
    assert asyncio.run(task.aio()) == 1


SANDBOX = FakeSandbox()
ONCE = result(SANDBOX, inputs={"x": float, "n": int})


@given(st.floats(allow_nan=False), st.integers())
def test_numbers_reach_the_script_as_they_are(x: float, n: int) -> None:
    ONCE.run(x=x, n=n)
    parser = argparse.ArgumentParser()
    parser.add_argument("--x", type=float)
    parser.add_argument("--n", type=int)
    read = parser.parse_args(SANDBOX.runs[-1].arguments)
    assert (read.x, read.n) == (x, n)


TEXTS = FakeSandbox()
TEXT = result(TEXTS, inputs={"text": str})
TYPED = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


# argparse of Python 3.11 drops the text -- wherever it stands.
@given((TYPED | TYPED.map("-".__add__) | TYPED.map("--".__add__)).filter("--".__ne__))
def test_texts_reach_the_script_as_they_are(text: str) -> None:
    """argparse takes a word that begins with a dash for an option, unless it is told."""
    TEXT.run(text=text)
    parser = argparse.ArgumentParser()
    parser.add_argument("--text")
    assert parser.parse_args(TEXTS.runs[-1].arguments).text == text


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * 131_072])
def test_a_text_that_can_be_no_option_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^text: "):
        TEXT.run(text=text)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (int, math.inf),
        (int, 3.7),
        (float, 10**400),
        (timedelta, math.inf),
        (timedelta, math.nan),
        (datetime, pd.NaT),
        (File, 5),
        (File, b"x"),
        (File, ""),
        (File, "/"),
        (Dir, __file__),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_refused_before_the_run(
    declared: type, value: Any
) -> None:
    sandbox = FakeSandbox()
    made = result(sandbox, inputs={"given": declared})
    runs = len(sandbox.runs)
    with pytest.raises(ValueError, match=r"^given: "):
        made.run(given=value)
    assert len(sandbox.runs) == runs


def test_a_data_frame_is_an_input_as_it_is_a_sample() -> None:
    seen: list[str] = []

    def read(spec: RunSpec) -> RunOutcome:
        seen.append(Path(spec.host_files[0].path).read_text())
        return ended()

    made = result(FakeSandbox(runs=[passed(), read]), samples={"t": pd.DataFrame({"a": [1]})})
    made.run(t=pd.DataFrame({"a": [2]}))
    assert seen == ["a\n2\n"]


def test_a_folder_for_outputs_that_cannot_be_made_is_said_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sandbox = FakeSandbox()
    made = result(sandbox)
    runs = len(sandbox.runs)
    with pytest.raises(ValueError, match=r"^output_dir: "):
        made.run(output_dir=tmp_path / "file")
    assert len(sandbox.runs) == runs


def test_what_the_code_printed_is_told_without_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THE_PASSWORD", "canary-4711")
    fails = RunOutcome(exit_status=1, stdout="canary-4711", stderr="died of canary-4711")
    wrong = wrote(tmp_path / "out", {"n": "canary-4711"})
    sandbox = FakeSandbox(runs=[passed(), fails, wrong])
    made = agent(sandbox=sandbox, secrets=["THE_PASSWORD"]).generate("x", outputs={"n": int})
    for _ in range(2):
        with pytest.raises(RunFailed) as caught:
            made.run()
        assert "canary" not in f"{caught.value}{caught.value.outcome!r}"
        assert "<secret THE_PASSWORD>" in str(caught.value)


@pytest.mark.parametrize(("declared", "text"), [(timedelta, "inf"), (timedelta, "1e300")])
def test_an_output_beyond_its_type_is_a_failed_run(
    tmp_path: Path, declared: type, text: str
) -> None:
    sandbox = FakeSandbox(runs=[passed(), wrote(tmp_path / "out", {"x": text})])
    with pytest.raises(RunFailed, match="output x is no timedelta"):
        result(sandbox, outputs={"x": declared}).run()


@pytest.mark.parametrize("session", ["/tmp/x", "../..", "..", "a/b", "."])
def test_an_id_that_was_imported_is_no_path(session: str) -> None:
    home = session_folder("abc").parent
    assert session_folder(session).resolve().parent == home.resolve()
    assert session_folder("abc-1_2").name == "abc-1_2"
