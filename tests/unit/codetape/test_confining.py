"""Names and paths of a tape that others made: none leads out of its folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codetape import Authority, NotGranted, Result, artifacts
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.confining import folder_below
from codetape.states.job import Job, Sample
from codetape.states.values import Declared, Value
from tests.support.sessions import HAPPY, ID, play
from tests.unit.codetape.test_toolmaker import maker

OUTSIDE = (
    "/tmp/x",
    "../x",
    "a/../../x",
    "a\0b",
    "x" * 300,
    ".git",
    "a/.git/hooks",
    "a\nb",
    "a//b",
    "~",
)


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_folder_of_a_tape_is_outside(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="project: "):
        folder_below(name, tmp_path)


def test_no_link_leads_a_folder_out(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="a link leads"):
        folder_below("link/x", tmp_path / "here")
    assert folder_below("a/b", tmp_path / "here") == tmp_path / "here" / "a" / "b"


@pytest.mark.parametrize(
    "began", ["/tmp/x/../y", "../../x", "x", "", "2026-01-01T00:00:00/../../x"]
)
def test_a_time_that_is_none_is_no_part_of_a_path(tmp_path: Path, began: str) -> None:
    for path in artifacts.paths(tmp_path, began):
        assert path.resolve().parent == (tmp_path / "implementation").resolve()


def test_an_implementation_that_is_a_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project" / "implementation").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="a link leads"):
        artifacts.check(tmp_path / "project")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_foreign_tool_writes_only_below_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODETAPE_KEY_FILE", str(tmp_path / "key"))
    store = MemoryStore()
    made = maker(tmp_path, store=store).make("Count words.")
    (tmp_path / "key").unlink()
    before = sorted(tmp_path.rglob("*"))
    again = maker(tmp_path, {}, store=store)
    with pytest.raises(NotGranted, match="folder of the tool"):
        again.resume(made.session)
    with pytest.raises(ValueError, match="no plain path below"):
        again.resume(made.session, authority=Authority(files=True))
    assert sorted(path for path in tmp_path.rglob("*") if path.name != "key") == before


HOSTILE: tuple[dict[str, tuple[Value, ...]], ...] = (
    {"outputs": (Declared(name="../x", type="File"),)},
    {"outputs": (Declared(name="/tmp/x", type="File"),)},
    {"outputs": (Declared(name="x\n", type="File"),)},
    {"inputs": (Declared(name="../x", type="File"),)},
    {"samples": (Sample(name="a", path="/etc/hosts", file="../../a", description=""),)},
    {"samples": (Sample(name="a", path="/etc/hosts", file="a/../../b", description=""),)},
    {"samples": (Sample(name="../a", path="/etc/hosts", file="a", description=""),)},
)


@pytest.mark.parametrize("fields", HOSTILE)
def test_hostile_names_of_a_foreign_tape_run_nothing(fields: dict[str, tuple[Value, ...]]) -> None:
    store, sandbox = MemoryStore(), FakeSandbox()
    asyncio.run(play(HAPPY, job=Job(prompt="x").model_copy(update=fields), store=store))
    loaded = Result.load(ID, store, sandbox=sandbox, authority=Authority(files=True))
    with pytest.raises(ValueError, match=r"name|option"):
        loaded.run()
    assert sandbox.runs == []
