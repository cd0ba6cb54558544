"""Sessions of both workflows on the real engine, with all that comes from outside left to chance."""

from __future__ import annotations

import asyncio
from typing import Any

from codetape.adapters.system import FixedClock
from codetape.engine.boundary import Boundary
from codetape.engine.loop import Engine
from codetape.engine.ports import EventStore, LlmError, SandboxBroken
from codetape.engine.tape import Recorded, fold, read
from codetape.states import requests as r
from codetape.states.events import Resumed
from codetape.states.job import Budget, Job
from codetape.states.session import Session
from codetape.states.tools.personas import PERSONAS
from codetape.states.values import Answer, CallFailure, LlmCall, Outcome, SandboxFailure
from codetape.states.workflow import AUTOCODER, TOOLMAKER, Workflow
from codetape.testing.bringing import outcome
from codetape.testing.chance import seeded

TROUBLE = (40, 15, 8)
"""How often something goes wrong in a session: one time in so many."""


class Killed(BaseException):
    """A session ends here, without a word."""


class RandomWorld:
    """Model and sandbox of one session: each request is answered by chance, from a seed."""

    def __init__(self, workflow: Workflow, session: Session, seed: str) -> None:
        self._workflow = workflow
        self._chance = seeded(seed, TROUBLE[hash_of(seed) % len(TROUBLE)])
        self.session = session
        self.kill_after: int | None = None

    def on_event(self, recorded: Recorded, session: Session) -> None:
        self.session = session

    async def complete(self, call: LlmCall) -> Answer:
        brought = self._brought(lambda q: isinstance(q, r.ModelRequest) and q.call == call)
        if isinstance(brought, CallFailure):
            raise LlmError(brought)
        assert isinstance(brought, Answer)
        return brought

    async def build(self, spec: Any) -> Any:
        return self._of_a_sandbox(lambda q: isinstance(q, r.BuildRequest) and q.spec == spec)

    async def run(self, spec: Any) -> Any:
        return self._of_a_sandbox(lambda q: isinstance(q, r.RunRequest) and q.spec == spec)

    async def close(self) -> None:
        pass

    def _of_a_sandbox(self, asked: Any) -> Any:
        brought = self._brought(asked)
        if isinstance(brought, SandboxFailure):
            raise SandboxBroken(brought)
        return brought

    def _brought(self, asked: Any) -> Any:
        if self.kill_after is not None and self.session.seq >= self.kill_after:
            raise Killed
        request = next(q for q in self._workflow.wanted(self.session) if asked(q))
        brought: Outcome = outcome(self._chance, request)
        return brought


def hash_of(seed: str) -> int:
    """A small number that is the same on every machine."""
    return sum(map(ord, seed))


def workflow_of(number: int) -> Workflow:
    """Every third session makes a tool."""
    return TOOLMAKER if number % 3 == 2 else AUTOCODER


def job_of(number: int) -> Job:
    """A small job that differs from its neighbours."""
    if workflow_of(number) is TOOLMAKER:
        return Job(prompt="Add two numbers.", personas=PERSONAS, fix_cycles=number % 4)
    return Job(
        prompt="Add two numbers.",
        plan=number % 2 == 0,
        max_iterations=1 + number % 7,
        skip_tests=number % 20 == 0,
        sandbox_retries=number % 3,
        budget=Budget(calls=number % 9) if number % 5 == 0 else Budget(),
    )


def start(
    store: EventStore, number: int, session: str, *, kill_after: int | None = None
) -> Session | None:
    """Run session `number` to its end, past its pauses; None if it was killed on the way."""
    workflow = workflow_of(number)
    world = RandomWorld(workflow, workflow.blank(session), f"session {number}")
    world.kill_after = kill_after
    return _driven(store, workflow, world, session, job_of(number))


def resume(store: EventStore, number: int, session: str, seed: str) -> Session:
    """Go on with a session to an end."""
    workflow = workflow_of(number)
    world = RandomWorld(workflow, fold(workflow, session, read(store, session)), seed)
    after = _driven(store, workflow, world, session, None)
    assert after is not None
    return after


def _driven(
    store: EventStore, workflow: Workflow, world: RandomWorld, session: str, job: Job | None
) -> Session | None:
    async def drive() -> Session:
        engine = Engine(
            workflow,
            store=store,
            llm=world,
            sandbox=world,
            clock=FixedClock(),
            boundary=Boundary({}),
            on_event=world.on_event,
            owner="a test",
        )
        after = await (engine.start(session, job) if job else engine.resume(session))
        while not after.done:
            held = after.held.packages if after.held else ()
            after = await engine.resume(session, Resumed(budget=Budget(), allow=held))
        return after

    try:
        return asyncio.run(drive())
    except Killed:
        return None
