"""L. A path on a tape needs a grant where it is read, and only there."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codetape import Authority, NotGranted, Result
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.cli import main
from codetape.replay.imports import put_tape, tape_of
from codetape.states.job import Job, Sample
from codetape.states.values import Declared
from tests.support.sessions import HAPPY, ID, play

TWO = ("left", "right")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A session of others with two samples, and a third one that no input takes."""
    monkeypatch.chdir(tmp_path)
    names = (*TWO, "spare")
    for name in (*names, "mine"):
        (tmp_path / f"{name}.csv").write_text(name)
    samples = tuple(
        Sample(name=n, path=str(tmp_path / f"{n}.csv"), file=f"{n}.csv", description="")
        for n in names
    )
    inputs = tuple(Declared(name=name, type="File") for name in TWO)
    made = MemoryStore()
    job = Job(prompt="x", inputs=inputs, samples=samples)
    asyncio.run(play(HAPPY, job=job, store=made))
    return made


def loaded(store: MemoryStore, authority: Authority | None = None) -> tuple[Result, FakeSandbox]:
    sandbox = FakeSandbox()
    return Result.load(ID, store, sandbox=sandbox, authority=authority), sandbox


def test_samples_that_are_replaced_need_no_grant(store: MemoryStore) -> None:
    result, sandbox = loaded(store)
    result.run(left="mine.csv", right=Path("mine.csv"))
    (run,) = sandbox.runs
    assert {Path(file.path).name for file in run.host_files} == {"mine.csv"}


@pytest.mark.parametrize("replaced", [(), ("left",), ("right",)])
def test_a_sample_that_is_read_is_told(store: MemoryStore, replaced: tuple[str, ...]) -> None:
    result, sandbox = loaded(store)
    samples: dict[str, Any] = dict.fromkeys(replaced, "mine.csv")
    with pytest.raises(NotGranted) as caught:
        result.run(**samples)
    read = [f"sample {name}" for name in TWO if name not in replaced]
    assert [need.field for need in caught.value.needs] == read
    assert sandbox.runs == []


def test_a_sample_that_is_granted_by_its_path_is_read(store: MemoryStore) -> None:
    result, sandbox = loaded(store, Authority(files="right.csv"))
    result.run(left="mine.csv")
    assert {Path(file.path).name for file in sandbox.runs[0].host_files} == {
        "mine.csv",
        "right.csv",
    }


def test_a_task_reads_no_sample_that_is_replaced(store: MemoryStore) -> None:
    task = loaded(store)[0].as_task(timeout=5.0)
    task(left="mine.csv", right="mine.csv")
    with pytest.raises(NotGranted, match="sample left"):
        task(right="mine.csv")


def test_what_is_no_input_replaces_no_sample(store: MemoryStore) -> None:
    result, sandbox = loaded(store)
    with pytest.raises(ValueError, match="no such input"):
        result.run(left="mine.csv", right="mine.csv", spare="mine.csv")
    assert sandbox.runs == []


def test_the_command_line_asks_for_no_sample_that_is_replaced(
    store: MemoryStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(SqliteStore(tmp_path / "codetape.db")) as file:
        put_tape(tape_of(store, ID), file)
    main(("run", ID, "--left", "mine.csv"))
    assert "sample right" in capsys.readouterr().err
    main(("run", ID, "--left", "mine.csv", "--right", "mine.csv"))
    assert "sample" not in capsys.readouterr().err
