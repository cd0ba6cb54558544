"""Sandboxes that work for long, and engines that are killed: nothing is left of either."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codetape.adapters.sandbox.cgroups import find_parents
from codetape.adapters.sandbox.podman import PodmanSandbox
from codetape.engine.ports import Sandbox
from codetape.states.values import ImageRef, ImageSpec, Limits, RunSpec, TextFile
from codetape.testing.sandbox_runs import running_with
from tests.support.endless_run import make

SANDBOXES = [
    pytest.param("process"),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("podman", marks=[pytest.mark.podman, pytest.mark.slow]),
]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that the user that code runs as may enter."""
    folder = Path(tempfile.mkdtemp(prefix="codetape-life-"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.fixture
def temporary(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, of this process and of those that it starts."""
    folder = place / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield folder
    folder.rmdir()


@pytest.fixture(scope="module")
def environments(place: Path) -> Path:
    """The folder of environments."""
    return place / "environments"


def groups() -> set[Path]:
    """The control groups that are codetape's."""
    places = set(find_parents().folders.values())
    return {group for place in places for group in place.glob("codetape-*")}


def no_group_stays(found: set[Path]) -> None:
    """Others of this machine may run something at the moment; what they have goes."""
    wait_for(lambda: not any(group.exists() for group in found))


def containers() -> list[str]:
    command = ["podman", "ps", "-a", "--filter", "label=codetape.session=to-be-killed", "-q"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def volumes() -> set[str]:
    command = ["podman", "volume", "ls", "-q"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


async def start(sandbox: Sandbox) -> ImageRef:
    image = await sandbox.build(ImageSpec(base=""))
    assert isinstance(image, ImageRef), image
    return image


@pytest.mark.parametrize("name", SANDBOXES)
def test_nothing_is_left_of_an_engine_that_was_killed_when_the_next_one_has_started(
    name: str, temporary: Path, environments: Path
) -> None:
    mark, before = f"run-{time.time_ns()}", groups()
    command = [sys.executable, "-m", "tests.support.endless_run", name, str(environments), mark]
    with subprocess.Popen(command) as engine:
        try:
            wait_for(lambda: len(set(running_with(mark, 0)) - {engine.pid}) >= 2)
        finally:
            engine.send_signal(signal.SIGKILL)

    async def next_start() -> None:
        sandbox = make(name, environments)
        await start(sandbox)
        assert running_with(mark) == []
        no_group_stays(groups() - before)
        assert name != "podman" or containers() == []
        await sandbox.close()

    asyncio.run(next_start())
    assert list(temporary.iterdir()) == []


def descriptors() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except OSError:
            continue  # the one that the listing itself was
    return sorted(found)


def children() -> list[str]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.append(stat.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SANDBOXES)
def test_many_runs_and_eight_at_a_time_leave_nothing(
    name: str, temporary: Path, environments: Path
) -> None:
    mark = f"run-{time.time_ns()}"
    number = 40 if name == "process" else 200
    code = "import sys\nopen('/var/outputs/x', 'w').write(sys.argv[-1])"

    async def all_of_them() -> None:
        sandbox = make(name, environments)
        image = await start(sandbox)

        async def once(at: int) -> str | None:
            spec = RunSpec(
                purpose="script",
                image=image,
                files=(TextFile(name="solution.py", text=code),),
                arguments=(mark, str(at)),
                outputs=("x",),
                limits=Limits(memory=256 << 20),
            )
            return (await sandbox.run(spec)).outputs[0].text

        for at in range(number):
            assert await once(at) == str(at)
        for at in range(0, number // 4, 8):
            said = await asyncio.gather(*(once(at + more) for more in range(8)))
            assert said == [str(at + more) for more in range(8)]
        await sandbox.close()

    asyncio.run(use_once(name, environments))  # what a first use opens for good is no leak
    podman = name == "podman"
    before = (descriptors(), children(), threading.active_count())
    kept = volumes() if podman else set()
    asyncio.run(all_of_them())
    assert (descriptors(), children(), threading.active_count()) == before
    no_group_stays(groups())
    assert list(temporary.iterdir()) == []
    assert running_with(mark) == []
    if podman:
        assert containers() == []
        fresh = volumes() - kept  # others of this machine may run something at the moment
        wait_for(lambda: not fresh & volumes())


async def use_once(name: str, environments: Path) -> None:
    sandbox = make(name, environments)
    await start(sandbox)
    await sandbox.close()


def test_the_session_is_on_the_label_of_each_container() -> None:
    labels = PodmanSandbox(session="the-session", environment={})._containers._labels
    assert labels["codetape.session"] == "the-session"
    assert labels["codetape.owner"]
    assert labels["codetape.started"].endswith("+00:00")
