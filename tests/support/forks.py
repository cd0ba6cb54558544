"""Forks of sessions that are made of fakes, and what models and sandboxes are asked on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.system import FixedClock
from codetape.engine.ports import EventStore
from codetape.replay.fork import fork
from codetape.replay.reading import open_tape
from codetape.states.events import Resumed
from codetape.states.job import Budget
from codetape.states.session import Session
from tests.support.sessions import ID, Made, engine


def forked(
    store: EventStore, at: int, *, id: str = "fork00000001", of: str = ID, **changes: Any
) -> Session:
    """Fork a session of a store."""
    tape = open_tape(store, of)
    return fork(tape, at, store=store, id=id, clock=FixedClock(), owner="a test", **changes)


def resumed(
    store: EventStore,
    session: str,
    script: Mapping[str, Sequence[Any]] | None = None,
    runs: Sequence[Any] = (),
) -> Made:
    """Go on with a session, past its pauses, to its end, with a model that says what `script` says."""
    llm, sandbox = ScriptedLlm(script or {}), FakeSandbox((), runs)
    return asyncio.run(_resumed(store, session, llm, sandbox))


async def _resumed(store: EventStore, session: str, llm: ScriptedLlm, sandbox: FakeSandbox) -> Made:
    run = engine(store, llm, sandbox)
    after = await run.resume(session)
    while not after.done:
        after = await run.resume(session, Resumed(budget=Budget()))
    return Made(after, store, llm, sandbox)
