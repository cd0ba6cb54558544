"""The life of a job, against containers that do what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from codetape.adapters.sandbox.podman.jobs import Cancelled, Job
from codetape.engine.ports import SandboxBroken

END = b'end {"bytes": {"out": 0, "err": 0}, "kept": {}}\n'


class Scripted:
    """One container. `during` maps a step to what happens while it is done."""

    def __init__(self, log: list[bytes], waits: list[int | None]) -> None:
        self.log = log
        self.waits = waits
        self.during: dict[str, Callable[[], None]] = {}
        self.immortal = False
        self.steps: list[str] = []
        self.running = False

    def _step(self, name: str) -> None:
        self.steps.append(name)
        self.during.get(name, lambda: None)()

    def create(self, _name: str, _spec: dict[str, Any]) -> None:
        self._step("create")

    def put(self, _name: str, _tar: object) -> None:
        self._step("put")

    def start(self, _name: str) -> None:
        self._step("start")
        self.running = True

    def wait(self, _name: str, _seconds: float) -> int | None:
        self._step("wait")
        return self.waits.pop(0) if self.running else 137

    def kill(self, _name: str) -> None:
        self.steps.append("kill" if self.running else "kill in vain")
        self.running = self.running and self.immortal

    def said(self, _name: str, *, stderr: bool = False) -> bytes:
        return b"words of an error" if stderr else self.log.pop(0)

    def killed_for_memory(self, _name: str) -> bool:
        return True


def job(containers: Scripted) -> Job:
    return Job(containers)  # type: ignore[arg-type]


def do(mine: Job) -> Any:
    return mine.do({}, iter(()), 1.0)


def test_a_job_that_is_cancelled_before_it_begins_makes_nothing() -> None:
    containers = Scripted([], [])
    mine = job(containers)
    mine.cancel()
    with pytest.raises(Cancelled):
        do(mine)
    assert containers.steps == ["kill in vain"]


@pytest.mark.parametrize("moment", ["create", "put"])
def test_a_job_that_is_cancelled_early_does_not_start(moment: str) -> None:
    containers = Scripted([], [])
    mine = job(containers)
    containers.during = {moment: mine.cancel}
    with pytest.raises(Cancelled):
        do(mine)
    assert "start" not in containers.steps


def test_a_job_that_is_cancelled_while_it_starts_is_killed() -> None:
    containers = Scripted([END], [None, None])
    mine = job(containers)
    containers.during = {"start": mine.cancel}
    with pytest.raises(Cancelled):
        do(mine)
    assert containers.steps == ["create", "put", "start", "kill in vain", "kill", "wait"]


def test_what_was_told_is_returned() -> None:
    told = do(job(Scripted([END], [0])))
    assert told.end is not None
    assert (told.late, told.oom) == (False, False)


def test_one_that_does_not_keep_its_limit_is_killed_and_called_late() -> None:
    containers = Scripted([b""], [None])
    told = do(job(containers))
    assert containers.steps[-2:] == ["kill", "wait"]
    assert (told.end, told.late) == (None, True)


def test_one_that_cannot_be_ended_breaks_the_sandbox() -> None:
    containers = Scripted([b""], [None, None])
    containers.immortal = True
    with pytest.raises(SandboxBroken, match="cannot be ended"):
        do(job(containers))


def test_one_that_was_killed_is_no_late_one() -> None:
    told = do(job(Scripted([b""], [137])))
    assert (told.end, told.late, told.oom) == (None, False, True)


def test_a_process_1_that_fails_breaks_the_sandbox_with_its_words() -> None:
    with pytest.raises(SandboxBroken, match=r"failed \(1\): words of an error"):
        do(job(Scripted([b""], [1])))


def test_d6_limits_that_are_not_in_force_are_refused_as_a_missing_sandbox() -> None:
    refused = b"refused " + json.dumps({"processes": "unlimited"}).encode() + b"\n"
    with pytest.raises(SandboxBroken, match=r"processes \(in force: unlimited\)") as caught:
        do(job(Scripted([refused], [0])))
    assert caught.value.failure.missing


LOSSY = b'end {"bytes": {"out": 5, "err": 0}, "kept": {"out": 5}}\n'


def test_d8_a_log_that_is_not_complete_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    told = do(job(Scripted([LOSSY, b"out aGVsbG8=\n" + LOSSY], [0])))
    assert told.stdout == "hello"
    with pytest.raises(SandboxBroken, match="lost a part"):
        do(job(Scripted([LOSSY, LOSSY], [0])))
