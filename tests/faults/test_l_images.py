"""L. The name of an image on a tape is a word: a run takes the image that this machine builds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codetape import Authority, Budget, NotGranted, fork, open_tape
from codetape.adapters.sandbox.fake import FakeSandbox, built
from codetape.adapters.store.memory import MemoryStore
from codetape.engine.ports import EventStore, SandboxBroken
from codetape.halflive import half_live
from codetape.states.job import Job
from codetape.states.values import BuildFailure, ImageRef, ImageSpec
from tests.support.sessions import HAPPY, ID, play
from tests.unit.codetape.test_agent import agent
from tests.unit.codetape.test_toolmaker import maker

PRIVATE = "localhost/private:latest"


def private(spec: ImageSpec) -> ImageRef:
    """An image that was never built for this."""
    return ImageRef(ref=PRIVATE, spec_key=spec.key)


class Crash(Exception):
    """Ends a session before its run."""


def before_its_run(store: EventStore, **options: Any) -> str:
    """A session of this user that waits for its run, in the image that its tape names."""
    sandbox = FakeSandbox(builds=[private, private], runs=[Crash()])
    with pytest.raises(Crash):
        agent(store=store, sandbox=sandbox, **options).generate("Write add(a, b).")
    return store.sessions()[-1].id


def images(sandbox: FakeSandbox) -> list[str]:
    return [run.image.ref for run in sandbox.runs]


def our_images(sandbox: FakeSandbox) -> set[str]:
    return {built(spec).ref for spec in sandbox.specs}


def test_going_on_runs_in_the_image_that_is_built_here() -> None:
    store, sandbox = MemoryStore(), FakeSandbox()
    session = before_its_run(store)
    assert agent(store=store, sandbox=sandbox).resume(session).success
    assert images(sandbox)
    assert set(images(sandbox)) <= our_images(sandbox)


def test_a_fork_runs_in_no_image_that_it_inherits() -> None:
    store, sandbox = MemoryStore(), FakeSandbox()
    tape = open_tape(store, before_its_run(store))
    forked = fork(tape, at=len(tape) - 1, timeout=60.0)
    assert forked[-1].session.image
    assert agent(store=store, sandbox=sandbox).resume(forked.id).success
    assert set(images(sandbox)) <= our_images(sandbox)


def test_half_live_runs_in_no_image_that_it_inherits() -> None:
    store, sandbox = MemoryStore(), FakeSandbox()
    tape = open_tape(store, before_its_run(store))
    forked = fork(tape, at=len(tape) - 1, timeout=60.0)
    agent(store=store).resume(forked.id)
    asyncio.run(half_live(open_tape(store, forked.id), "sandbox", sandbox=sandbox))
    assert images(sandbox)
    assert set(images(sandbox)) <= our_images(sandbox)


def test_a_tool_runs_in_no_image_that_its_tape_names(tmp_path: Path) -> None:
    store, sandbox = MemoryStore(), FakeSandbox()
    crashing = FakeSandbox(builds=[private, private], runs=[Crash()])
    with pytest.raises(Crash):
        maker(tmp_path, store=store, sandbox=crashing).make("Count words.")
    maker(tmp_path, store=store, sandbox=sandbox).resume(store.sessions()[-1].id)
    assert images(sandbox)
    assert set(images(sandbox)) <= our_images(sandbox)


def foreign(**fields: Any) -> MemoryStore:
    """A session of others that waits for its run."""
    store = MemoryStore()
    job = Job(prompt="x", **fields)
    builds: list[Callable[[ImageSpec], ImageRef]] = [private, private]
    with pytest.raises(Crash):
        asyncio.run(play(HAPPY, job=job, store=store, builds=builds, runs=[Crash()]))
    return store


@pytest.mark.parametrize("given", [None, Authority(image=True)])
def test_no_grant_lets_a_tape_name_the_image_of_a_run(given: Authority | None) -> None:
    store, sandbox = foreign(), FakeSandbox()
    assert agent(store=store, sandbox=sandbox).resume(ID, authority=given).success
    assert images(sandbox)
    assert set(images(sandbox)) <= our_images(sandbox)


def test_a_foreign_image_is_built_again_behind_the_gate() -> None:
    """Its packages wait for a decision; nothing is recorded, so that it can still go on."""
    store, sandbox = foreign(base_packages=("left-pad",)), FakeSandbox()
    events = len(open_tape(store, ID))
    other = agent(store=store, sandbox=sandbox, package_policy="ask")
    with pytest.raises(NotGranted, match="left-pad") as caught:
        other.resume(ID)
    assert [need.grant for need in caught.value.needs] == ["left-pad"]
    assert sandbox.runs == []
    assert len(open_tape(store, ID)) == events
    assert other.resume(ID, allow=["left-pad"]).success


def test_an_image_that_cannot_be_built_again_is_told() -> None:
    store = MemoryStore()
    session = before_its_run(store)
    no = BuildFailure(cause="other", message="no space for it")
    events = len(open_tape(store, session))
    with pytest.raises(SandboxBroken, match="no space for it"):
        agent(store=store, sandbox=FakeSandbox(builds=[no])).resume(session)
    assert len(open_tape(store, session)) == events


def test_a_session_that_is_done_builds_nothing() -> None:
    store, sandbox = MemoryStore(), FakeSandbox()
    session = agent(store=store).generate("Write add(a, b).").session
    agent(store=store, sandbox=sandbox).resume(session, budget=Budget(calls=9))
    assert sandbox.specs == []
