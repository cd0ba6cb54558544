"""Sessions of fakes, run by the engine to their end."""

from __future__ import annotations

from benchmarks.scripted import Script
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.system import FixedClock
from codetape.engine.loop import Engine
from codetape.engine.ports import EventStore
from codetape.engine.sync import run_sync
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER


def play(store: EventStore, session: str, script: Script) -> Session:
    """Run a session to its end, as an agent does."""
    engine = Engine(
        AUTOCODER,
        store=store,
        llm=ScriptedLlm(script.answers),
        sandbox=FakeSandbox(runs=script.runs),
        clock=FixedClock(),
        owner="benchmark",
    )
    return run_sync(engine.start(session, script.job))
