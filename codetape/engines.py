"""From a job to an engine with its adapters: opened together, closed in order."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from codetape import composition, learning, shapes, validation
from codetape.authority import Authority, allowed_anyway, mark_image, permit
from codetape.engine.loop import Engine
from codetape.engine.ports import Clock, EventStore, Llm, Sandbox, StoreError
from codetape.engine.tape import Recorded, fold
from codetape.images import OwnImages
from codetape.marks import mark, mark_budget
from codetape.models import check_prices, prices
from codetape.needs import Act
from codetape.replay.rules import opened
from codetape.states.events import Resumed
from codetape.states.job import Budget, Job
from codetape.states.machine import IllegalTransition
from codetape.states.packages import name_of, requirement
from codetape.states.session import Session
from codetape.states.tools.session import ToolSession
from codetape.states.workflow import WORKFLOWS, Workflow
from codetape.tapes import find_session

if TYPE_CHECKING:
    from codetape.adapters.sandbox.gate import Policy

LOG = logging.getLogger("codetape")
"""The progress of sessions, at INFO: silent unless the caller sets a level."""

OnEvent = Callable[[Recorded, Session], None]
OnEngine = Callable[[Engine], None]


@dataclass(frozen=True, kw_only=True)
class Adapters:
    """What a caller has chosen for a run; see AutoCoderAgent for what each is.

    Without `gate` no policy is asked: the sandbox is a recorded one, which builds nothing. `foreign` is
    set for a session that others opened: only these packages are trusted then, and none of its tape.
    """

    store: str | Path | EventStore
    sandbox: str | Sandbox
    llm: Llm | None
    clock: Clock
    package_policy: str | Policy
    on_event: OnEvent | None
    on_engine: OnEngine | None
    lessons: bool = True
    gate: bool = True
    foreign: tuple[str, ...] | None = None


async def start(adapters: Adapters, workflow: Workflow, session: str, job: Job) -> Standing:
    """Open a session and run it to its end or its next pause."""
    with composition.lent(adapters.store) as store:
        async with Run(adapters, workflow, session, job, store, new=True) as run:
            if adapters.lessons:
                job = learning.taught(store, workflow, job, adapters.clock)
            after = await run.engine.start(session, job)
        mark_image(store, None, after)
        return _learned(adapters, Standing(workflow, after, store))


async def resume(
    adapters: Adapters, name: str, resumed: Resumed, authority: Authority | None = None
) -> Standing:
    """Go on with a session, by the rules and in the sandbox that it began with.

    `name` is its id, a unique prefix, or "last"; `authority` is what it may do here if others opened
    it. Raises ValueError for a limit of money that cannot be kept, NotGranted, UnknownSession,
    SessionOwned, DamagedTape.
    """
    with composition.lent(adapters.store) as store:
        return await _resumed(adapters, store, name, resumed, authority or Authority())


async def _resumed(
    adapters: Adapters, store: EventStore, name: str, resumed: Resumed, authority: Authority
) -> Standing:
    before = standing(store, name)
    answer = _in_asked_names(resumed, before.session)
    if resumed.budget is not None:
        authority = replace(authority, budget=True)  # the caller says what may be spent
    ours = permit(store, before.session, authority, _acts(adapters, before.session))
    if resumed.budget is not None:
        mark_budget(store, before.session.id, resumed.budget)
    trusted = (*allowed_anyway(store, before.session, authority), *answer.allow)
    if ours:
        _mark_answered(store, before, answer)
    else:
        adapters = replace(adapters, lessons=False, foreign=trusted)
    session, job = before.session.id, before.session.job
    budget = resumed.budget or job.budget
    job = job.model_copy(update={"sandbox": before.session.sandbox_name, "budget": budget})
    if budget.usd is not None and not before.session.done:
        known = prices(job, adapters.llm)  # it came with this resume, or with a fork
        if not ours:
            check_prices(job, known)
    async with Run(adapters, before.workflow, session, job, store) as run:
        await run.find_image(before.session, trusted)
        after = await run.engine.resume(session, answer, partial(_check_unchanged, before.session))
    if adapters.foreign is None:
        mark_image(store, before.session.image, after)
    return _learned(adapters, Standing(before.workflow, after, store))


def _mark_answered(store: EventStore, before: Standing, answer: Resumed) -> None:
    """Mark a session of this user with the permissions that it is given now."""
    with contextlib.suppress(IllegalTransition):  # it is done, or its table has no such row
        after = before.workflow.advance(before.session, answer)
        mark(store, after.id, after.job, after.allowed)


def _check_unchanged(before: Session, now: Session) -> None:
    """Raise StoreError if another process has changed what a session may do since it was looked at."""
    if (now.job, now.allowed) != (before.job, before.allowed):
        raise StoreError(f"session {now.id} was changed by another process meanwhile: try again")


def _acts(adapters: Adapters, session: Session) -> tuple[Act, ...]:
    """Return what going on does here with adapters that the tape chooses; a tool has a folder."""
    acts: list[Act] = ["folder"] if isinstance(session, ToolSession) else []
    if not session.done and isinstance(adapters.sandbox, str):
        acts.append("sandbox")
    elif not session.done:
        acts.append("run")
    if not session.done and adapters.llm is None:
        acts.append("model")
    return tuple(acts)


def _learned(adapters: Adapters, ended: Standing) -> Standing:
    """Learn from a session that ended after more than one attempt: something was repaired."""
    if adapters.lessons and ended.session.done and ended.session.attempts > 1:
        learning.learn_after(ended.store, ended.session.id)
    return ended


def decision(budget: Budget | None, allow: Iterable[str], deny: Iterable[str]) -> Resumed:
    """Return the event with which a caller goes on. Raises ValueError for a wrong argument."""
    if budget is not None:
        validation.budget(budget)
    answer = Resumed(
        budget=budget, allow=shapes.texts("allow", allow), deny=shapes.texts("deny", deny)
    )
    for name in sorted({*map(_canonical, answer.allow)} & {*map(_canonical, answer.deny)}):
        raise ValueError(f"allow: {name} is denied, too")
    return answer


def _in_asked_names(answer: Resumed, session: Session) -> Resumed:
    """Return an answer in the names of the question: NumPy is numpy>=1, if that was asked."""
    held = session.held
    if held is None or held.cause != "undecided_package":
        return answer
    asked = {_canonical(name): name for name in held.packages}
    given = {"allow": answer.allow, "deny": answer.deny}
    named = {w: tuple(asked.get(_canonical(n), n) for n in names) for w, names in given.items()}
    return answer.model_copy(update=named)


def _canonical(text: str) -> str:
    """Return the name in a requirement; what is none, as a command, is itself."""
    try:
        return name_of(requirement(text))
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a session stands: the rules that it lives under, its fold, and its store."""

    workflow: Workflow
    session: Session
    store: EventStore


def standing(store: EventStore, name: str) -> Standing:
    """Fold a session of a store by its own rules. Raises UnknownSession, DamagedTape."""
    session = find_session(store, name)
    workflow, records = opened(store, session, WORKFLOWS)
    return Standing(workflow, fold(workflow, session, records), store)


class Run:
    """The adapters of one run, opened together and closed in order; the store stays open."""

    def __init__(
        self,
        adapters: Adapters,
        workflow: Workflow,
        session: str,
        job: Job,
        store: EventStore,
        *,
        new: bool = False,
    ) -> None:
        self.adapters, self._workflow, self._session, self._job = adapters, workflow, session, job
        self._stack = AsyncExitStack()
        self.store, self._new = store, new
        self._images: OwnImages | None = None
        self._prepare: Callable[[], None] | None = None

    async def __aenter__(self) -> Self:
        adapters, job = self.adapters, self._job
        answered = None if self._new else composition.answered(self.store, self._session)
        llm = composition.make_llm(adapters.llm, job, answered)
        self._prepare = getattr(llm, "prepare", None)
        self.engine = Engine(
            self._workflow,
            store=self.store,
            llm=llm,
            sandbox=self._sandbox(),
            clock=adapters.clock,
            boundary=composition.boundary_for(job),
            on_event=self._on_event,
            owner=composition.owner(),
            on_opened=partial(mark, self.store),
        )
        if adapters.on_engine:
            adapters.on_engine(self.engine)
        return self

    async def find_image(self, session: Session, trusted: Iterable[str]) -> None:
        """Find the image that a session goes on with. Of one of this user its packages and `trusted`
        have passed a gate; a sandbox that does not work is told by the rules. Raises NotGranted, and
        SandboxBroken if the image cannot be built again."""
        if self._images is None:
            return
        gate = None
        if self.adapters.foreign is None:
            gate = composition.gated(self._made, None, session.job, trusted)
        await self._images.find(session, gate)

    def _on_event(self, recorded: Recorded, session: Session) -> None:
        states = f"{recorded.source} -> {recorded.dest}"
        LOG.info("%s: event %d, %s, %s", session.id, recorded.seq, recorded.event.name, states)
        if self._images is not None:
            self._images.look(session)
        if self.adapters.on_event:
            self.adapters.on_event(recorded, session)
        if self._prepare and not session.done:
            self._prepare()  # when the first event has been shown, and beside the sandbox's check
            self._prepare = None

    def _sandbox(self) -> Sandbox:
        """The caller's sandbox, or one of ours, which is closed in the end and has a gate."""
        given, job = self.adapters.sandbox, self._job
        made = composition.make_sandbox(
            given if not isinstance(given, str) else job.sandbox,
            session=self._session,
            registry_secret=job.registry_secret,
        )
        ours = made is not given
        if ours:
            made = composition.remembering(made, job.cache)
            self._stack.push_async_callback(made.close)
        policy, foreign = self._policy(), self.adapters.foreign
        if not self.adapters.gate:
            return made
        chosen = policy if ours or policy != "known" else None
        if foreign is not None:
            gate = composition.gated_anew(made, chosen, foreign)
        else:
            gate = composition.gated(made, chosen, job)
        self._made, self._images = made, OwnImages(gate)
        return self._images

    def _policy(self) -> str | Policy:
        """The caller's policy. A session whose own was a function asks where there is none."""
        given, recorded = self.adapters.package_policy, self._job.package_policy
        if callable(given) or given != "known":
            return given
        if self.adapters.foreign is not None:
            return "ask" if isinstance(self.adapters.sandbox, str) else "known"
        return "ask" if recorded == "custom" else recorded

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
