"""Equal runs are taken from the cache if the caller wants it, and only equal ones."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from codetape import File, RunFailed
from codetape.adapters.sandbox.fake import FakeSandbox, ended, passed
from codetape.adapters.store.memory import MemoryStore
from codetape.cache import Remembering, RunCache, key_of
from codetape.engine.tape import read
from codetape.states.events import TestsPassed
from codetape.states.values import HostFile, ImageRef, OutputFile, RunOutcome, RunSpec, TextFile
from tests.unit.codetape.test_agent import agent
from tests.unit.codetape.test_running import wrote


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def run_twice(tmp_path: Path, first: Any, second: Any, **options: Any) -> tuple[Any, Any, int]:
    sandbox = FakeSandbox(runs=[passed(), first, second])
    made = agent(sandbox=sandbox, **({"cache": "auto"} | options)).generate(
        "Add.", inputs={"n": int}, outputs={"total": int, "report": File}
    )
    one, two = made.run(n=1), made.run(n=1)
    return one, two, len(sandbox.runs) - 1


def outcomes(tmp_path: Path) -> tuple[Any, Any]:
    return (
        wrote(tmp_path / "a", {"total": "1", "report": "first"}),
        wrote(tmp_path / "b", {"total": "2", "report": "second"}),
    )


def test_an_equal_run_is_not_made_again(tmp_path: Path) -> None:
    one, two, runs = run_twice(tmp_path, *outcomes(tmp_path))
    assert (one.total, two.total, runs) == (1, 1, 1)
    assert two.report.read_text() == "first"
    assert one.report.path != two.report.path


@pytest.mark.parametrize("cache", ["override", "disable"])
def test_the_caller_may_not_want_it(tmp_path: Path, cache: str) -> None:
    one, two, runs = run_twice(tmp_path, *outcomes(tmp_path), cache=cache)
    assert (one.total, two.total, runs) == (1, 2, 2)


def test_a_run_with_the_network_is_never_kept(tmp_path: Path) -> None:
    assert run_twice(tmp_path, *outcomes(tmp_path), network_access=True)[2] == 2


def test_a_failed_run_is_never_kept(tmp_path: Path) -> None:
    sandbox = FakeSandbox(runs=[passed(), ended(1), ended(0)])
    made = agent(sandbox=sandbox, cache="auto").generate("Add.")
    with pytest.raises(RunFailed):
        made.run()
    assert made.run() is None


def test_the_content_of_files_counts_and_not_their_place(tmp_path: Path) -> None:
    image = ImageRef(ref="i", spec_key="k")
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    for file, text in ((one, "1"), (same, "1"), (other, "2")):
        file.write_text(text)
    keys = [
        key_of(
            RunSpec(
                purpose="script",
                image=image,
                files=(),
                host_files=(HostFile(name="data", path=str(file)),),
            )
        )
        for file in (one, same, other)
    ]
    assert keys[0] == keys[1] != keys[2]


def test_an_entry_that_was_cut_short_is_none(tmp_path: Path) -> None:
    spec = RunSpec(purpose="script", image=ImageRef(ref="i", spec_key="k"), files=())
    (tmp_path / "c" / key_of(spec)).mkdir(parents=True)
    assert RunCache(tmp_path / "c").find(spec, tmp_path) is None


def script(name: str, **more: Any) -> RunSpec:
    return RunSpec(
        purpose="script",
        image=ImageRef(ref="i", spec_key="k"),
        files=(TextFile(name="solution.py", text=name),),
        **more,
    )


def test_a_run_with_secrets_is_never_kept(tmp_path: Path) -> None:
    cache, spec = RunCache(tmp_path / "c"), script("x", secrets=("TOKEN",))
    cache.keep(spec, RunOutcome(exit_status=0, stdout="the value of TOKEN"))
    assert cache.find(spec, tmp_path) is None
    assert not list(tmp_path.rglob("outcome.json"))


def test_the_runs_that_nobody_asked_for_the_longest_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codetape.cache.MOST", 3)
    cache = RunCache(tmp_path / "c")
    for age, name in enumerate("dcba", 1):
        cache.keep(script(name), RunOutcome(exit_status=0))
        os.utime(tmp_path / "c" / key_of(script(name)), (age, age))
    assert cache.find(script("c"), tmp_path) is not None  # and so it is young again
    cache.keep(script("e"), RunOutcome(exit_status=0))
    known = {name for name in "abcde" if cache.find(script(name), tmp_path)}
    assert known == {"a", "c", "e"}


def test_nested_outputs_and_folders_come_back_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "first" / "a" / "b").mkdir(parents=True)
    (tmp_path / "first" / "a" / "b" / "x").write_text("x")
    (tmp_path / "first" / "d").mkdir()
    (tmp_path / "first" / "d" / "y").write_text("y")
    outputs = (
        OutputFile(name="a/b/x", path=str(tmp_path / "first/a/b/x"), size=1),
        OutputFile(name="d", path=str(tmp_path / "first/d"), is_folder=True, size=1),
    )
    cache = RunCache(tmp_path / "c")
    cache.keep(script("x"), RunOutcome(exit_status=0, outputs=outputs))
    known = cache.find(script("x"), tmp_path / "again")
    assert known is not None
    assert (known.cached, [file.name for file in known.outputs]) == (True, ["a/b/x", "d"])
    assert Path(known.outputs[0].path).read_text() == "x"
    assert (Path(known.outputs[1].path) / "y").read_text() == "y"


@pytest.mark.parametrize(("use", "runs"), [("auto", 1), ("override", 2), ("disable", 2)])
def test_an_equal_run_of_another_session_is_known_and_says_so(
    tmp_path: Path, use: Any, runs: int
) -> None:
    cache, fake = RunCache(tmp_path / "c"), FakeSandbox(runs=[passed(), passed(), passed()])

    async def session() -> RunOutcome:
        sandbox = Remembering(fake, cache, use)
        outcome = await sandbox.run(script("x"))
        await sandbox.forget()
        return outcome

    first, second = asyncio.run(session()), asyncio.run(session())
    assert (first.cached, second.cached) == (False, use == "auto")
    assert second.report == first.report
    assert len(fake.runs) == runs


def test_copies_of_outputs_go_with_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def twice() -> None:
        sandbox = Remembering(FakeSandbox(), RunCache(tmp_path / "c"), "auto")
        await sandbox.run(script("x"))
        await sandbox.run(script("x"))
        await sandbox.close()

    asyncio.run(twice())
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("a file where the folder should be")
    RunCache(tmp_path / "c").keep(script("x"), RunOutcome(exit_status=0))
    assert RunCache(tmp_path / "c" / "d").find(script("x"), tmp_path) is None


@pytest.mark.parametrize(("cache", "runs"), [("auto", 1), ("override", 2), ("disable", 2)])
def test_equal_tests_of_two_sessions_run_once_and_the_event_says_so(
    monkeypatch: pytest.MonkeyPatch, cache: str, runs: int
) -> None:
    made: list[FakeSandbox] = []

    def make(*_: object, **__: object) -> FakeSandbox:
        made.append(FakeSandbox())
        return made[-1]

    monkeypatch.setattr("codetape.composition.make_sandbox", make)

    def tested() -> RunOutcome:
        store = MemoryStore()
        result = agent(sandbox="bubblewrap", cache=cache, store=store).generate("Add.")
        events = [record.event for record in read(store, result.session)]
        (run,) = [event.run for event in events if isinstance(event, TestsPassed)]
        return run

    first, second = tested(), tested()
    assert (first.cached, second.cached) == (False, cache == "auto")
    assert sum(len(each.runs) for each in made) == runs
