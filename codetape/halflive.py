"""Half-live: a session again, with one half of the world from its tape and the other half real.

With a real sandbox it shows what another environment changes, with a real model what another model
does. The run is a fork at the session's own first event. One with a real model is kept beside the
session that it repeats, for it was paid for; one with a real sandbox is not, or its store would count
what the recorded answers cost a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, cast

from codetape.adapters.llm.recorded import RecordedLlm
from codetape.adapters.recordings import Recording, Recordings, recordings
from codetape.adapters.sandbox.recorded import RecordedSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import SystemClock
from codetape.authority import Act, Authority, allowed_anyway, permit
from codetape.engine.loop import Engine, Observer
from codetape.engine.ports import EventStore, Llm, Sandbox
from codetape.engine.tape import Recorded
from codetape.engines import Adapters, Run
from codetape.replay.imports import put_tape, tape_of
from codetape.replay.reading import Tape, open_tape
from codetape.states.events import Cancelled, Noted, Paused, Resumed
from codetape.states.session import Session
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
    authority: Authority | None = None,
) -> tuple[Tape, Recordings]:
    """Repeat a session from its own first event, with real `live` and the rest from its tape.

    Returns its tape and what was recorded, which tells what was used out of order or not at all.
    What a person did is done again after the same event. A request that the tape has no outcome for
    ends the session, and its ending names what comes nearest. `llm` and `sandbox` stand for the real
    ones, `authority` is what the tape may do here if it was not made here. Raises ValueError if there
    is no such model or sandbox, NotGranted.
    """
    begin = tape.inherited + 1  # a fork is repeated from where it begins
    acts, last = _acts(live, llm, sandbox), tape.session_at(-1)
    first = tape.session_at(begin)  # its job runs, and what was allowed until the end
    ours = {permit(tape.source, each, authority, acts) for each in (first, last)} == {True}
    foreign = None if ours else allowed_anyway(tape.source, last, authority)
    recorded = [r for r in recordings(tape.source, tape.id) if r.seq > begin]
    again = fork(tape if live == "model" else _in_memory(tape), begin)
    store, person = cast("EventStore", again.source), _Person(tape, on_event)
    run, used = _run(tape, live, again.id, store, recorded, (llm, sandbox), person, on_engine)
    run.adapters = replace(run.adapters, foreign=foreign)
    async with run:
        await person.accompany(run.engine, again.id)
    return open_tape(store, again.id), used


def _acts(live: Live, llm: Llm | None, sandbox: Sandbox | None) -> tuple[Act, ...]:
    if live == "model":
        return () if llm else ("model",)
    return ("run",) if sandbox else ("sandbox",)


def _in_memory(tape: Tape) -> Tape:
    store = MemoryStore()
    put_tape(tape_of(tape.source, tape.id), store)
    return open_tape(store, tape.id)


def _run(
    tape: Tape,
    live: Live,
    session: str,
    store: EventStore,
    recorded: list[Recording],
    given: tuple[Llm | None, Sandbox | None],
    person: _Person,
    on_engine: Watcher | None,
) -> tuple[Run, Recordings]:
    """Return the run of one real half and one recorded one, and what was recorded for the other."""
    last = tape.session_at(-1)
    # A run from the cache would not be live; what a recorded build was refused for is on the tape.
    policy = last.job.package_policy if live == "sandbox" else "known"
    chosen = {"sandbox": last.sandbox_name, "cache": "disable", "package_policy": policy}
    job = last.job.model_copy(update=chosen)
    old_llm, old_sandbox = RecordedLlm(recorded), RecordedSandbox(recorded)
    llm, sandbox = given
    adapters = Adapters(
        store=store,
        llm=llm if live == "model" else old_llm,
        sandbox=(sandbox or job.sandbox) if live == "sandbox" else old_sandbox,
        clock=SystemClock() if live == "model" else _Hasty(),
        package_policy="known",
        on_event=person.observe,
        on_engine=on_engine,
        gate=live == "sandbox",
    )
    used = old_sandbox.recordings if live == "model" else old_llm.recordings
    return Run(adapters, tape.rules, session, job, store), used


class _Hasty(SystemClock):
    """Waits for nobody: what is recorded of a busy model is there at once."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, 0.0))


class _Person:
    """Does again, after the same event, what a person did while the tape was made."""

    def __init__(self, tape: Tape, on_event: Observer | None) -> None:
        own = [step for step in tape if not step.inherited and not step.tells_of_a_crash]
        self._posts = {
            step.seq - 1: step.event
            for step in own
            if isinstance(step.event, Noted | Paused | Cancelled)
        }
        self._resumed = [step.event for step in own if isinstance(step.event, Resumed)]
        self._on_event = on_event
        self._engine: Engine | None = None

    def observe(self, recorded: Recorded, session: Session) -> None:
        """Hand in what came after this event; the fork's own first one is none of the tape's."""
        event = self._posts.pop(recorded.seq - 1, None)
        if event and self._engine:
            self._engine.post(event)
        if self._on_event:
            self._on_event(recorded, session)

    async def accompany(self, engine: Engine, session: str) -> None:
        """Run a session, past the pauses that somebody ended."""
        self._engine = engine
        after = await engine.resume(session)
        while after.paused and not after.done and self._resumed:
            after = await engine.resume(session, self._resumed.pop(0))
