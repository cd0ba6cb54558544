"""Faults of starting, stopping and cleaning up: what a sandbox is made of has an owner and an end."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.owner import current_owner
from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.cgroups import find_parents
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.sandbox.podman import PodmanSandbox, Settings
from codetape.adapters.sandbox.podman.running import Shape
from codetape.adapters.sandbox.podman.service import Service
from codetape.engine.ports import Sandbox, SandboxBroken
from codetape.states.classify import limit_problem
from codetape.states.values import (
    FailureClass,
    ImageRef,
    ImageSpec,
    Limits,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    TextFile,
)
from codetape.testing.sandbox_runs import running_with
from tests.support.podman_server import podman_server
from tests.support.sessions import HAPPY, play

T = TypeVar("T")
REAL = [
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("podman", marks=[pytest.mark.podman, pytest.mark.slow]),
]
LEAN = Limits(seconds=20.0, memory=256 << 20)


def used(sandbox: Sandbox, work: Callable[[Sandbox], Awaitable[T]]) -> T:
    """Do work with a sandbox, and close it."""

    async def within() -> T:
        try:
            return await work(sandbox)
        finally:
            await sandbox.close()

    return asyncio.run(within())


async def bare(sandbox: Sandbox) -> ImageRef:
    image = await sandbox.build(ImageSpec(base=""))
    assert isinstance(image, ImageRef), image
    return image


def script(image: ImageRef, code: str, **more: Any) -> RunSpec:
    files = (TextFile(name="solution.py", text=code),)
    return RunSpec(purpose="script", image=image, files=files, **{"limits": LEAN, **more})


def ran(sandbox: Sandbox, code: str, **more: Any) -> RunOutcome:
    async def work(sandbox: Sandbox) -> RunOutcome:
        return await sandbox.run(script(await bare(sandbox), code, **more))

    return used(sandbox, work)


@pytest.fixture(scope="module")
def environments() -> Iterator[Path]:
    """A folder that the user that code runs as may enter."""
    with tempfile.TemporaryDirectory(prefix="codetape-faults-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def real(request: pytest.FixtureRequest, environments: Path) -> Sandbox:
    """A sandbox that isolates."""
    if request.param == "podman":
        return PodmanSandbox(base=request.getfixturevalue("base_image"))
    return BubblewrapSandbox(environments=environments)


class FakePodman:
    """A podman that does as it should, except for what a test sets. It keeps what it was asked."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[], tuple[int, Any]]] = {}
        self.steps: list[str] = []  # words of containers, in order: create, start, …
        self.names: list[str] = []
        self.began, self.over = threading.Event(), threading.Event()

    def __call__(self, method: str, path: str) -> tuple[int, Any]:
        if path.startswith("/images/"):
            return 200, {"Id": "base", "Labels": {}, "Config": {}}
        if path == "/containers/json":
            return 200, self.listed
        word = "remove" if method == "DELETE" else path.rpartition("/")[2]
        self.steps.append(word)
        self.names.append(path.split("/")[2])
        return self.answers.get(word, getattr(self, word, lambda: (200, "")))()

    def start(self) -> tuple[int, Any]:
        self.began.set()
        return 200, ""

    def wait(self) -> tuple[int, Any]:
        self.over.wait(20.0)
        return 200, 137

    def kill(self) -> tuple[int, Any]:
        self.over.set()
        return 200, ""

    def json(self) -> tuple[int, Any]:
        return 200, {"State": {"OOMKilled": False}, "Mounts": []}


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePodman]:
    monkeypatch.setattr("codetape.adapters.sandbox.podman.containers.TRIES", (0.0, 0.01, 0.01))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fake = FakePodman()
    with podman_server(tmp_path, fake):
        yield fake
        fake.over.set()


def on(folder: Path, **settings: Any) -> PodmanSandbox:
    """A sandbox on the fake podman of a test."""
    host = {"CONTAINER_HOST": f"unix://{folder}/podman/podman.sock", "XDG_RUNTIME_DIR": str(folder)}
    return PodmanSandbox(environment=host, settings=Settings(base="base", **settings), ahead=False)


@pytest.mark.parametrize("real", REAL, indirect=True)
def test_d1_what_ran_out_of_time_is_gone_when_that_is_said(real: Sandbox) -> None:
    mark = f"run-{time.time_ns()}"
    limits = LEAN.model_copy(update={"seconds": 1.0})
    code = (
        "import subprocess, sys\n"
        "if len(sys.argv) == 2:\n"
        "    subprocess.Popen([sys.executable, *sys.argv, 'child'], start_new_session=True)\n"
        "while True: pass"
    )

    async def work(sandbox: Sandbox) -> tuple[RunOutcome, list[int]]:
        spec = script(await bare(sandbox), code, arguments=(mark,), limits=limits)
        outcome = await sandbox.run(spec)
        return outcome, running_with(mark, patience=0.0)

    outcome, running = used(real, work)
    assert outcome.timed_out
    assert running == []


@pytest.mark.parametrize("word", ["archive", "start", "wait", "logs"])
def test_d5_a_container_that_is_gone_is_a_broken_sandbox(
    podman: FakePodman, tmp_path: Path, word: str
) -> None:
    podman.over.set()
    podman.answers[word] = lambda: (404, {"message": "no such container"})
    with pytest.raises(SandboxBroken, match="no such container"):
        ran(on(tmp_path), "")


def test_d5_a_container_that_is_gone_costs_no_calls_of_the_model() -> None:
    gone = SandboxBroken(SandboxFailure(message="no such container"))
    made = asyncio.run(play(HAPPY, runs=[gone] * 9))
    assert made.session.ending is not None
    assert made.session.ending.failure is FailureClass.INFRASTRUCTURE
    assert isinstance(made.sandbox, FakeSandbox)
    assert isinstance(made.llm, ScriptedLlm)
    assert len(made.sandbox.runs) == 1 + made.session.job.sandbox_retries
    assert len(made.llm.calls) == 3  # plan, code and tests


@pytest.mark.parametrize("real", REAL, indirect=True)
def test_d7_a_program_that_ends_at_once_is_not_waited_for_in_vain(real: Sandbox) -> None:
    outcome = ran(real, "")
    assert (outcome.exit_status, outcome.timed_out) == (0, False)


def test_d10_each_run_has_a_container_of_its_own(podman: FakePodman, tmp_path: Path) -> None:
    podman.over.set()

    async def twice(sandbox: Sandbox) -> None:
        for _ in range(2):
            await sandbox.run(script(await bare(sandbox), ""))

    used(on(tmp_path), twice)
    steps = list(zip(podman.steps, podman.names, strict=True))
    first, second = [name for word, name in steps if word == "start"]
    assert first != second
    assert {name for word, name in steps if word == "remove"} == {first, second}
    assert "exec" not in podman.steps


def test_d10_what_cannot_be_removed_is_said_and_tried_again_at_the_end(
    podman: FakePodman, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    podman.over.set()
    busy = iter([True] * 4)  # three tries of the run, and one of the end
    podman.answers["remove"] = lambda: (500, {"message": "busy"}) if next(busy, None) else (200, [])
    ran(on(tmp_path), "")
    assert "could not be removed" in caplog.text
    assert podman.steps.count("remove") == 5


def test_d11_each_candidate_is_named_with_its_own_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "refusing"
    unused = socket.socket(socket.AF_UNIX)
    unused.bind(str(refusing))
    unused.close()  # nobody listens any more
    (tmp_path / "podman").mkdir()
    (tmp_path / "podman" / "podman.sock").write_text("a file")
    monkeypatch.setenv("PATH", "")
    service = Service({"CONTAINER_HOST": f"unix://{refusing}", "XDG_RUNTIME_DIR": str(tmp_path)})
    with pytest.raises(SandboxBroken) as caught:
        service.get("/info")
    said = caught.value.failure.message
    places = ("CONTAINER_HOST", "rootless socket", "rootful socket", "no podman command")
    assert sorted(places, key=said.index) == list(places)
    assert caught.value.failure.missing


@pytest.mark.parametrize("real", REAL, indirect=True)
def test_d16_status_137_alone_is_no_lack_of_memory(real: Sandbox) -> None:
    outcome = ran(real, "raise SystemExit(137)")
    counted = type(real) is PodmanSandbox or "memory" in find_parents().folders
    assert (outcome.exit_status, outcome.out_of_memory) == (137, False if counted else None)
    assert limit_problem(outcome) is None


@pytest.mark.parametrize("real", REAL, indirect=True)
@pytest.mark.skipif("memory" not in find_parents().folders, reason="no group counts the memory")
def test_d16_a_lack_of_memory_has_the_word_of_the_kernel(real: Sandbox) -> None:
    limits = LEAN.model_copy(update={"memory": 64 << 20})
    outcome = ran(real, "x = bytearray(200 << 20)\nprint(len(x))", limits=limits)
    assert outcome.out_of_memory
    assert limit_problem(outcome) is not None


def test_d17_containers_go_with_their_owners_and_with_nobody_else(
    podman: FakePodman, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    host, _, start, *rest = current_owner().split(":")
    owners = {
        "dead": ":".join((host, str(ended.pid), start, *rest)),
        "reused": ":".join((host, str(os.getppid()), "1", *rest)),
        "ours": current_owner(),
        "elsewhere": ":".join((host, str(ended.pid), start, "another", "boot")),
        "nobody": "",
    }
    podman.listed = [
        {"Names": [name], "Labels": {"codetape.owner": owner}, "State": "running"}
        for name, owner in owners.items()
    ]
    used(on(tmp_path), bare)
    steps = zip(podman.steps, podman.names, strict=True)
    assert {name for word, name in steps if word == "remove"} == {"dead", "reused"}
    assert "elsewhere" in caplog.text
    assert "nobody" not in caplog.text


def test_d18_a_run_is_stopped_before_its_container_is_deleted(
    podman: FakePodman, tmp_path: Path
) -> None:
    async def stopped(sandbox: Sandbox) -> None:
        running = asyncio.create_task(sandbox.run(script(await bare(sandbox), "")))
        await asyncio.to_thread(podman.began.wait, 20.0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    used(on(tmp_path), stopped)
    assert podman.steps.index("kill") < podman.steps.index("remove")
    assert podman.over.is_set()


@pytest.mark.bubblewrap
def test_d18_nobody_writes_to_a_folder_when_it_is_deleted(
    environments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = environments / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    code = "for n in range(10**9):\n    open(f'/var/outputs/{n % 1000}', 'w').write('x' * 1000)"

    def begun() -> bool:
        return any(place.glob("*/outputs/*"))

    async def stopped(sandbox: Sandbox) -> None:
        running = asyncio.create_task(sandbox.run(script(await bare(sandbox), code)))
        await asyncio.to_thread(wait_for, begun)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not begun()

    used(BubblewrapSandbox(environments=environments), stopped)
    assert list(place.iterdir()) == []


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def test_d19_no_run_makes_a_network(podman: FakePodman, tmp_path: Path) -> None:
    podman.over.set()

    async def many(sandbox: Sandbox) -> None:
        image = await bare(sandbox)
        await asyncio.gather(*(sandbox.run(script(image, "")) for _ in range(30)))

    used(on(tmp_path), many)
    assert podman.steps.count("create") == 30
    assert set(podman.steps) <= {
        *("create", "archive", "start", "wait", "logs", "json", "kill", "remove")
    }
    shape = Shape.of("base", None, LEAN, network=False)
    for spec in (shape.container({}, {}), shape.prepared()):
        assert spec["netns"] == {"nsmode": "none"}


def test_d21_how_long_a_start_may_take_is_a_setting(podman: FakePodman, tmp_path: Path) -> None:
    podman.over.set()

    def slow() -> tuple[int, Any]:
        time.sleep(1.0)
        return 200, ""

    podman.answers["start"] = slow
    assert ran(on(tmp_path, patience=60.0), "").signal == 9
    with pytest.raises(SandboxBroken, match=r"no answer in 0\.2 seconds"):
        ran(on(tmp_path, patience=0.2), "")
    assert podman.steps.count("start") == 2  # whoever repairs the storage is not disturbed
