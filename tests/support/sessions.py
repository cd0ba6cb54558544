"""Sessions of the auto-coder made of fakes: scripts that are short to write and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock
from codetape.engine.boundary import Boundary
from codetape.engine.loop import Engine, Observer
from codetape.engine.ports import Clock, EventStore, Llm, Sandbox
from codetape.engine.tape import Recorded, read
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER

PLAN = {"description": "Add two numbers.", "approach": "One function."}
RIGHT = {"code": "def add(a, b):\n    return a + b\n"}
WRONG = {"code": "def add(a, b):\n    return a - b\n"}
TESTS = {"test_code": "from solution import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"}
FIX = "Replace `a - b` with `a + b`"
LOGIC = {"failures": [{"test_name": "test_add", "suggested_fix": FIX, "error_type": "logic"}]}

HAPPY: Mapping[str, Sequence[Any]] = {"plan": [PLAN], "code": [RIGHT], "tests": [TESTS]}
ONE_REPAIR: Mapping[str, Sequence[Any]] = {
    "plan": [PLAN],
    "code": [WRONG, RIGHT],
    "tests": [TESTS],
    "diagnosis": [LOGIC],
}

JOB = Job(prompt="Write add(a, b).", max_iterations=5)
ID = "session00001"


@dataclass
class Made:
    """A session that was run, with what it was run on."""

    session: Session
    store: EventStore
    llm: Llm
    sandbox: Sandbox

    @property
    def records(self) -> tuple[Recorded, ...]:
        return tuple(read(self.store, self.session.id))

    @property
    def path(self) -> list[tuple[str, str]]:
        """Event and destination, in order."""
        return [(record.event.name, record.dest) for record in self.records]


def engine(
    store: EventStore,
    llm: Llm,
    sandbox: Sandbox,
    *,
    clock: Clock | None = None,
    boundary: Boundary | None = None,
    on_event: Observer | None = None,
    owner: str = "test",
) -> Engine:
    """An engine on a clock of its own."""
    return Engine(
        AUTOCODER,
        store=store,
        llm=llm,
        sandbox=sandbox,
        clock=clock or FixedClock(),
        boundary=boundary,
        on_event=on_event,
        owner=owner,
    )


async def play(
    script: Mapping[str, Sequence[Any]],
    *,
    runs: Sequence[Any] = (),
    builds: Sequence[Any] = (),
    job: Job = JOB,
    store: EventStore | None = None,
    on_event: Callable[[Recorded, Session], None] | None = None,
    session_id: str = ID,
) -> Made:
    """Run a session from its script to its end."""
    kept = store or MemoryStore()
    llm, sandbox = ScriptedLlm(script), FakeSandbox(builds, runs)
    session = await engine(kept, llm, sandbox, on_event=on_event).start(session_id, job)
    return Made(session, kept, llm, sandbox)
