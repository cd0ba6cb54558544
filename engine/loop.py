"""The loop: reconciles what the rules want with what is in flight, until the session is done.

The rules never act and the engine never decides. The loop knows no workflow by name.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

from codetape.engine.boundary import Boundary
from codetape.engine.calls import Caller
from codetape.engine.codec import Asked
from codetape.engine.flights import AdapterFault, Flight, Flights
from codetape.engine.ports import Clock, EventStore, LeaseLost, Llm, Sandbox, StoreError
from codetape.engine.tape import Recorded, Writer, read
from codetape.states.events import Event, Forked, Paused, Resumed, SessionOpened
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.workflow import Workflow

HEARTBEAT = 30.0
"""Seconds between two signs of life to the store; a lease lasts three of them."""

Observer = Callable[[Recorded, Session], None]

_log = logging.getLogger("codetape")


class Engine:
    """Runs sessions of one workflow with one set of adapters.

    `on_event` is called after each event is durable; what it raises is logged and harms nothing.
    """

    def __init__(
        self,
        workflow: Workflow,
        *,
        store: EventStore,
        llm: Llm,
        sandbox: Sandbox,
        clock: Clock,
        boundary: Boundary | None = None,
        on_event: Observer | None = None,
        owner: str = "",
        on_opened: Callable[[str, Job], None] | None = None,
    ) -> None:
        self._workflow = workflow
        self._store = store
        self._clock = clock
        self._boundary = boundary or Boundary()
        self._on_event = on_event
        self._owner = owner
        self._on_opened = on_opened
        caller = Caller(llm, sandbox, clock, self._boundary)
        self._flights = Flights(caller.call, clock.monotonic)
        self._posted: deque[Event] = deque()
        self._bell = asyncio.Event()

    @property
    def in_flight(self) -> Iterator[Flight]:
        """What is being waited for now."""
        return iter(self._flights)

    def post(self, event: Event) -> None:
        """Hand in an event from outside: a note, a pause, a cancellation. Call it in the loop's thread.

        It is recorded when the outcomes that have come in before it are.
        """
        self._posted.append(self._boundary.clean(event))
        self._bell.set()

    async def start(self, session_id: str, job: Job) -> Session:
        """Open a new session and run it to its end or its next pause."""
        name, owner = self._workflow.name, self._owner
        lease = self._store.create(session_id, name, self._boundary.text(job.name), owner)
        writer = Writer(self._store, self._workflow, self._clock, lease)
        opened = SessionOpened(job=job, workflow=name, rules=self._workflow.rules)
        async with self._held(writer):
            opened = self._boundary.clean(opened)
            if self._on_opened:
                self._on_opened(session_id, opened.job)
            blank = self._workflow.blank(session_id)
            return await self._run(writer, self._record(writer, blank, opened))

    async def resume(
        self,
        session_id: str,
        resumed: Resumed | None = None,
        admit: Callable[[Session], None] | None = None,
    ) -> Session:
        """Go on from the end of a tape. A session that is done comes back as it is.

        `resumed` says with which budget, and what becomes of packages that were held. It is recorded
        after a pause; and where a process died, if the table has a row for it: who counts such deaths
        can see them. A fork that was not run yet has lost nobody, and only what is said is recorded.
        `admit` is called with the session,
        under its lease, before anything happens, and may raise.
        """
        lease = self._store.acquire(session_id, self._owner)
        session, head, last = self._workflow.blank(session_id), "", ""
        try:
            for record in read(self._store, session_id):
                session, head = self._workflow.advance(session, record.event), record.hash
                last = record.event.name
            if admit:
                admit(session)
        except BaseException:
            self._store.release(lease)
            raise
        writer = Writer(self._store, self._workflow, self._clock, lease, head)
        async with self._held(writer):
            known = Resumed.name in self._workflow.machine.accepts(session.state)
            said = resumed or Resumed()
            if not session.done and (
                session.paused or (known and (last != Forked.name or said != Resumed()))
            ):
                session = self._record(writer, session, self._boundary.clean(said))
            return await self._run(writer, session)

    async def _run(self, writer: Writer, session: Session) -> Session:
        try:
            while not session.done and not session.paused:
                asked, event = None, self._workflow.settle(session)
                if event is None:
                    asked, event = await self._next(session)
                session = self._record(writer, session, event, asked)
        except asyncio.CancelledError:
            self._park(writer, session)
            raise
        except AdapterFault as fault:
            if isinstance(fault.error, Exception):  # others end the process, too
                self._record(writer, session, Paused(by="a fault of an adapter"))
            raise fault.error from None
        return session

    def _park(self, writer: Writer, session: Session) -> None:
        """Record what has come in already, because it was paid for, and then the pause."""
        while not session.done and not session.paused:
            asked, event = None, self._workflow.settle(session)
            if event is None:
                asked, event = self._landed(session) or (None, Paused(by="an interruption"))
            session = self._record(writer, session, event, asked)

    def _landed(self, session: Session) -> tuple[Asked, Event] | None:
        """What an outcome that has come in means, if there is one that is still wanted."""
        landed = self._flights.take(self._workflow.wanted(session))
        if landed is None:
            return None
        asked, outcome = landed
        return asked, self._workflow.interpret(asked.request, outcome)

    async def _next(self, session: Session) -> tuple[Asked | None, Event]:
        """Wait for the first outcome or for an event from outside.

        What has come in is recorded before what somebody says about it, and nothing new is asked for
        while somebody has something to say.
        """
        if self._posted and not self._flights.landed:
            return None, self._take_posted()
        wanted = self._workflow.wanted(session)
        if self._flights.landed and (fault := self._flights.fault(wanted)):
            return self._come_beside(fault, session)
        await self._flights.match(wanted, partial(self._workflow.delay, session))
        if landed := await self._flights.first(self._bell):
            asked, outcome = landed
            return asked, self._workflow.interpret(asked.request, outcome)
        return None, self._take_posted()

    def _come_beside(self, fault: AdapterFault, session: Session) -> tuple[Asked, Event]:
        """Return what came in beside an adapter's fault, for it was paid for; then raise the fault."""
        if landed := self._landed(session):
            return landed
        raise fault

    def _take_posted(self) -> Event:
        event = self._posted.popleft()
        if not self._posted:
            self._bell.clear()
        return event

    def _record(
        self, writer: Writer, session: Session, event: Event, asked: Asked | None = None
    ) -> Session:
        session, recorded = writer.record(session, event, asked)
        if self._on_event:
            try:
                self._on_event(recorded, session)
            except Exception:  # noqa: BLE001 - a subscriber's fault is not the session's
                _log.warning("a subscriber failed at event %d", recorded.seq, exc_info=True)
            except asyncio.CancelledError:  # it was cancelled with us, or wants us to be
                _this_task().cancel()
        return session

    @contextlib.asynccontextmanager
    async def _held(self, writer: Writer) -> AsyncIterator[None]:
        """Keep the lease alive meanwhile; in the end nothing is in flight and the lease is free."""
        run = _this_task()
        lost: list[LeaseLost] = []

        async def beat() -> None:
            while True:
                await asyncio.sleep(HEARTBEAT)
                try:
                    writer.renew()
                except LeaseLost as error:
                    lost.append(error)
                    run.cancel()
                    return
                except StoreError:  # it may pass; what cannot be appended later is said then
                    _log.warning("a sign of life could not be written", exc_info=True)

        heart = asyncio.ensure_future(beat())
        try:
            yield
        except asyncio.CancelledError:
            if lost:
                raise lost[0] from None
            raise
        finally:
            heart.cancel()
            try:
                await self._flights.close()
            finally:  # whoever waits for them may be cancelled once more
                _release(writer)


def _release(writer: Writer) -> None:
    """Give the lease back. Where that cannot be written, what came of the session still counts."""
    try:
        writer.release()
    except StoreError:
        _log.warning("a lease could not be given back", exc_info=True)


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None, "a coroutine of ours runs in a task"
    return task
