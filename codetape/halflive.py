"""Half-live: a session again, with one half of the world from its tape and the other half real.

With a real sandbox it shows what another environment changes, with a real model what another model
does. The run is a fork at the session's own first event. One with a real model is kept beside the
session that it repeats, for it was paid for; one with a real sandbox is not, or its store would count
what the recorded answers cost a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, cast

from codetape import composition
from codetape.adapters.llm.recorded import RecordedLlm
from codetape.adapters.recordings import Recordings, recordings
from codetape.adapters.sandbox.recorded import RecordedSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import SystemClock
from codetape.engine.loop import Engine, Observer
from codetape.engine.ports import EventStore, Llm, Sandbox
from codetape.engine.tape import Recorded
from codetape.replay.imports import put_tape, tape_of
from codetape.replay.reading import Tape, open_tape
from codetape.states.events import Cancelled, Noted, Paused, Resumed
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER
from codetape.tapes import fork

Live = Literal["sandbox", "model"]

Watcher = Callable[[Engine], None]


async def half_live(
    tape: Tape,
    live: Live,
    *,
    llm: Llm | None = None,
    sandbox: Sandbox | None = None,
    on_event: Observer | None = None,
    on_engine: Watcher | None = None,
) -> tuple[Tape, Recordings]:
    """Repeat a session from its own first event, with real `live` and the rest from its tape.

    Returns its tape and what was recorded, which tells what was used out of order or not at all.
    What a person did is done again after the same event. A request that the tape has no outcome for
    ends the session, and its ending names what comes nearest. `llm` and `sandbox` stand for the real
    ones. Raises ValueError if there is no such model or sandbox.
    """
    run = _HalfLive(tape, live, llm, sandbox)
    begin = tape.inherited + 1  # a fork is repeated from where it begins
    other = fork(tape if live == "model" else _in_memory(tape), begin)
    store = cast("EventStore", other.source)
    try:
        run.engine = Engine(
            AUTOCODER,
            store=store,
            llm=run.llm,
            sandbox=run.sandbox,
            clock=SystemClock(),
            boundary=composition.boundary_for(tape[1].session.job),
            on_event=run.observed(on_event),
            owner=composition.owner(),
        )
        if on_engine:
            on_engine(run.engine)
        await run.to_its_end(other.id)
    finally:
        if run.sandbox is not sandbox:
            await run.sandbox.close()
    return open_tape(store, other.id), run.recordings


def _in_memory(tape: Tape) -> Tape:
    store = MemoryStore()
    put_tape(tape_of(tape.source, tape.id), store)
    return open_tape(store, tape.id)


class _HalfLive:
    """One half recorded, one half real, and what a person did while the tape was made."""

    engine: Engine

    def __init__(self, tape: Tape, live: Live, llm: Llm | None, sandbox: Sandbox | None) -> None:
        session = tape.session_at(-1)
        recorded = [r for r in recordings(tape.source, tape.id) if r.seq > tape.inherited + 1]
        old_llm, old_sandbox = RecordedLlm(recorded), RecordedSandbox(recorded)
        real = live == "sandbox"
        self.llm = old_llm if real else composition.make_llm(llm, tape[1].session.job)
        given = sandbox or session.sandbox_name
        self.sandbox = composition.make_sandbox(given) if real else old_sandbox
        self.recordings = old_llm.recordings if real else old_sandbox.recordings
        events = [(step.seq, step.event) for step in tape]
        self._posts = {
            seq - 1: event for seq, event in events if isinstance(event, Noted | Paused | Cancelled)
        }
        self._resumed: Iterator[Resumed] = iter([e for _, e in events if isinstance(e, Resumed)])

    def observed(self, on_event: Observer | None) -> Observer:
        """Return an observer that hands in what a person did after the same event."""

        def observe(recorded: Recorded, session: Session) -> None:
            # The fork's own first event is none of the tape's.
            if event := self._posts.pop(recorded.seq - 1, None):
                self.engine.post(event)
            if on_event:
                on_event(recorded, session)

        return observe

    async def to_its_end(self, session: str) -> None:
        """Run, past the pauses that somebody ended."""
        after = await self.engine.resume(session)
        while after.paused and not after.done and (resumed := next(self._resumed, None)):
            after = await self.engine.resume(session, resumed)
