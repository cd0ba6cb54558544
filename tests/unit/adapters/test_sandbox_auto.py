"""The first sandbox that works is used, is named on the tape, and is found again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codetape import composition
from codetape.adapters.sandbox.auto import FirstWorking
from codetape.adapters.sandbox.fake import FakeSandbox, broke
from codetape.adapters.store.memory import MemoryStore
from codetape.engine.ports import Sandbox, SandboxBroken
from codetape.states.job import Budget
from codetape.states.values import ImageRef, ImageSpec
from tests.unit.codetape.test_agent import agent

SPEC = ImageSpec(base="", requirements=("pytest",))


def first(**sandboxes: Sandbox) -> FirstWorking:
    def maker(sandbox: Sandbox) -> Any:
        return lambda: sandbox

    return FirstWorking({name: maker(sandbox) for name, sandbox in sandboxes.items()})


def test_the_first_that_works_is_used_and_named() -> None:
    lame, good, spare = (
        FakeSandbox(builds=[broke("lame", missing=True)]),
        FakeSandbox(),
        FakeSandbox(),
    )
    built = asyncio.run(first(a=lame, b=good, c=spare).build(SPEC))
    assert isinstance(built, ImageRef)
    assert built.sandbox == "b"
    assert lame.closed
    assert spare.specs == []
    assert good.specs == [ImageSpec(base=""), SPEC]


def test_where_none_works_each_reason_is_told() -> None:
    sandboxes = {n: FakeSandbox(builds=[broke(f"{n} is lame", missing=True)]) for n in ("a", "b")}
    with pytest.raises(SandboxBroken, match=r"a: a is lame \| b: b is lame") as caught:
        asyncio.run(first(**sandboxes).build(SPEC))
    assert caught.value.failure.missing


def test_a_session_goes_on_in_the_sandbox_that_it_began_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def make(given: str | Sandbox, **_: object) -> Sandbox:
        assert isinstance(given, str)
        asked.append(given)
        return first(bubblewrap=FakeSandbox()) if given == "auto" else FakeSandbox()

    monkeypatch.setattr(composition, "make_sandbox", make)
    made = agent(sandbox="auto", store=MemoryStore(), budget=Budget(calls=1))
    paused = made.generate("Add.")
    assert made.resume(paused.session, budget=Budget(calls=9)).success
    assert asked == ["auto", "bubblewrap"]
