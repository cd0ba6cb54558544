"""Runs that root starts are of users that nothing else on the machine is of."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from codetape.adapters.sandbox import run_users
from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.podman import PodmanSandbox
from codetape.adapters.sandbox.run_users import own_user
from codetape.engine.ports import Sandbox
from codetape.states.values import ImageRef, ImageSpec, Limits, RunOutcome, RunSpec, TextFile
from tests import sandboxes

WAIT = """
import os, pathlib, sys, time
pathlib.Path("/var/outputs/mine").write_text("text")
while not pathlib.Path("/var/outputs/go").exists() and time.monotonic() < float(sys.argv[2]):
    time.sleep(0.05)
"""

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give runs users")


def bubblewrap(folder: Path) -> Sandbox:
    return BubblewrapSandbox(environments=folder / "environments")


def podman(_: Path) -> Sandbox:
    return PodmanSandbox(base=sandboxes.base_image())


def users_of(mark: str) -> set[int]:
    """Return the users on this machine of the processes that have `mark` among their arguments."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            status = (process / "status").read_text()
        except OSError:
            continue
        if mark.encode() in words and b"--inputs" in b" ".join(words):
            found.add(int(status.split("Uid:")[1].split()[0]))
    return found


async def users_while_running(sandbox: Sandbox, runs: int) -> list[set[int]]:
    """Return the users of each of several runs while all of them run."""
    image = await sandbox.build(ImageSpec(base=sandboxes.base_image() or "python"))
    assert isinstance(image, ImageRef)
    marks = [uuid.uuid4().hex for _ in range(runs)]

    def spec(mark: str) -> RunSpec:
        files = (TextFile(name="solution.py", text=WAIT),)
        limits = Limits(seconds=8.0)
        return RunSpec(
            purpose="script", image=image, files=files, arguments=(mark, "6"), limits=limits
        )

    running = [asyncio.ensure_future(sandbox.run(spec(mark))) for mark in marks]
    try:
        for _ in range(100):
            found = [users_of(mark) - {0} for mark in marks]
            if all(found):
                return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"the runs were not seen: {found}")
    finally:
        outcomes: list[RunOutcome] = await asyncio.gather(*running)
        assert len(outcomes) == runs


@root_only
@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(bubblewrap, marks=pytest.mark.bubblewrap),
        pytest.param(podman, marks=pytest.mark.podman),
    ],
)
def test_parallel_runs_share_no_user(make: Callable[[Path], Sandbox]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="codetape-users-"))
    folder.chmod(0o755)

    async def seen() -> list[set[int]]:
        sandbox = make(folder)
        try:
            return await users_while_running(sandbox, 2)
        finally:
            await sandbox.close()

    try:
        one, other = asyncio.run(seen())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert len(one) == len(other) == 1
    assert one.isdisjoint(other)
    assert 65534 not in one | other
    with pytest.raises(KeyError):
        pwd.getpwuid(one.pop())


def test_a_user_is_lent_once_at_a_time(tmp_path: Path) -> None:
    with own_user(tmp_path) as first:
        with own_user(tmp_path) as second:
            assert first != second
        with own_user(tmp_path) as again:
            assert again == second
    with own_user(tmp_path) as freed:
        assert freed == first


def test_numbers_of_containers_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "subuid"
    taken.write_text(f"someone:{run_users.FIRST}:10\nrubbish\nother:x:y\n")
    monkeypatch.setattr(run_users, "SUBORDINATE", (taken, tmp_path / "missing"))
    with own_user(tmp_path / "locks") as number:
        assert number == run_users.FIRST + 10


def test_too_many_runs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_users, "COUNT", 1)
    with own_user(tmp_path), pytest.raises(OSError, match="too many runs"), own_user(tmp_path):
        pass
