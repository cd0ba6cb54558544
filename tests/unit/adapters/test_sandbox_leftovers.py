"""What dead processes left is removed; what is somebody's, or might be, is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from codetape.adapters.owner import current_owner
from codetape.adapters.sandbox import leftovers
from codetape.adapters.sandbox.cgroups import find_parents
from codetape.states.values import Limits
from codetape.testing.sandbox_runs import running_with


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def dead() -> str:
    """The owner that a process was which has ended."""
    with subprocess.Popen(["true"]) as ended:
        pass
    host, _, start, *rest = current_owner().split(":")
    return ":".join((host, str(ended.pid), start, *rest))


def left_by(owner: str) -> Path:
    folder = leftovers.make("the-session")
    facts = json.loads((folder / leftovers.FACTS).read_text())
    (folder / leftovers.FACTS).write_text(json.dumps({**facts, "owner": owner}))
    return folder


def reused(owner: str) -> str:
    """Return the owner of a process whose number another one has by now."""
    host, _, _, *rest = owner.split(":")
    return ":".join((host, str(os.getppid()), "1", *rest))


def living() -> str:
    """The owner that our parent is."""
    parent = os.getppid()
    start = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    host, _, _, *rest = current_owner().split(":")
    return ":".join((host, str(parent), start, *rest))


def test_a_folder_says_whose_it_is_and_since_when() -> None:
    with leftovers.scratch("the-session") as folder:
        facts = json.loads((folder / leftovers.FACTS).read_text())
        assert (facts["owner"], facts["session"]) == (current_owner(), "the-session")
        assert facts["started"].endswith("+00:00")
    assert not folder.exists()


def test_what_the_dead_left_is_removed(dead: str) -> None:
    for owner in (dead, reused(dead)):
        folder = left_by(owner)
        (folder / "outputs").mkdir()
        (folder / "outputs" / "x").write_text("x")
        assert leftovers.sweep() == []
        assert not folder.exists()


def test_what_is_somebodys_is_kept() -> None:
    ours, theirs = left_by(current_owner()), left_by(living())
    assert leftovers.sweep() == []
    assert ours.exists()
    assert theirs.exists()


@pytest.mark.parametrize("facts", [None, "", "[]", "{", '{"owner": "elsewhere:1:2:3:4"}'])
def test_what_might_be_somebodys_is_kept_and_named(
    facts: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    folder = leftovers.make("")
    if facts is None:
        (folder / leftovers.FACTS).unlink()
    else:
        (folder / leftovers.FACTS).write_text(facts)
    os.utime(folder, (0, 0))
    assert [left.folder for left in leftovers.sweep()] == [folder]
    assert folder.exists()
    assert str(folder) in caplog.text


def test_what_another_process_is_just_making_or_removing_is_not_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For a moment such a folder has no owner in it: nobody may be told to remove it."""
    folder = tmp_path / f"{leftovers.PREFIX}just-made"
    folder.mkdir()
    assert leftovers.sweep() == []
    assert folder.exists()
    assert caplog.text == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_what_belongs_to_another_user_is_none_of_our_business(dead: str) -> None:
    folder = left_by(dead)
    os.chown(folder, 65534, 65534)
    assert leftovers.sweep() == []
    assert folder.exists()


def test_a_link_is_not_followed(dead: str, tmp_path: Path) -> None:
    folder = left_by(dead).rename(tmp_path / "elsewhere")
    link = tmp_path / f"{leftovers.PREFIX}link"
    link.symlink_to(folder)
    leftovers.sweep()
    assert folder.exists()


@pytest.fixture
def orphan() -> Iterator[str]:
    """The folder of a run whose process goes on; its command line has the name of the folder."""
    folder = leftovers.make("")
    name, _, value = leftovers.mark(folder).partition("=")
    command = [sys.executable, "-c", "import time; time.sleep(600)", str(folder)]
    with subprocess.Popen(command, env={name: value}, start_new_session=True) as process:
        until = time.monotonic() + 20
        while not running_with(str(folder), patience=0) and time.monotonic() < until:
            time.sleep(0.02)
        yield str(folder)
        process.kill()


@pytest.mark.parametrize("dies", [True, False])
def test_processes_end_with_their_owner_only(orphan: str, dead: str, *, dies: bool) -> None:
    facts = {"owner": dead if dies else living(), "groups": []}
    (Path(orphan) / leftovers.FACTS).write_text(json.dumps(facts))
    leftovers.sweep()
    assert running_with(orphan, patience=0) == [] if dies else running_with(orphan, patience=0)
    assert Path(orphan).exists() is not dies


@pytest.mark.skipif(not find_parents().folders, reason="no control group can be written here")
def test_whoever_is_in_a_group_of_the_dead_ends_and_the_group_goes(dead: str) -> None:
    group = find_parents().group(Limits())
    name = uuid.uuid4().hex
    command = [*group.join(), sys.executable, "-c", "import time; time.sleep(600)", name]
    with subprocess.Popen(command, start_new_session=True) as process:
        until = time.monotonic() + 20
        while process.pid not in group.processes() and time.monotonic() < until:
            time.sleep(0.02)
        folder = left_by(dead)
        leftovers.note(folder, "", group.folders.values())
        facts = json.loads((folder / leftovers.FACTS).read_text())
        (folder / leftovers.FACTS).write_text(json.dumps({**facts, "owner": dead}))
        leftovers.sweep()
        assert process.wait(20) < 0
    assert not any(place.exists() for place in group.folders.values())


def test_only_groups_of_ours_are_ended(dead: str, tmp_path: Path) -> None:
    foreign = tmp_path / "system.slice"
    foreign.mkdir()
    (foreign / "cgroup.procs").write_text(f"{os.getpid()}\n")
    folder = left_by(dead)
    (folder / leftovers.FACTS).write_text(json.dumps({"owner": dead, "groups": [str(foreign)]}))
    leftovers.sweep()
    assert foreign.exists()
    assert not folder.exists()


def test_a_temporary_place_for_outputs_goes_and_a_given_one_stays(tmp_path: Path) -> None:
    given = leftovers.Outputs(tmp_path / "given", "")
    made = leftovers.Outputs(None, "")
    for outputs in (given, made):
        outputs.place("run").mkdir(parents=True)
    place = made.place("run")
    assert place.exists()
    given.close()
    made.close()
    assert given.place("run").exists()
    assert not place.parent.exists()
