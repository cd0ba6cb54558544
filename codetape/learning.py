"""What earlier sessions taught, told to the next ones: no model is asked.

A session is told lessons before it opens, so that they are on its tape and a replay knows them. When it
has ended, its tape is read for what it teaches.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager

from codetape import composition
from codetape.adapters.store.library import Library
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.ports import Clock, EventStore, StoreError
from codetape.engine.tape import Recorded
from codetape.marks import is_marked
from codetape.replay.rules import opened as opened_tape
from codetape.states.job import Job
from codetape.states.lessons import lessons
from codetape.states.machine import State
from codetape.states.workflow import AUTOCODER, TOOLMAKER, WORKFLOWS, Workflow

LANES = {AUTOCODER.name: "autocoder", TOOLMAKER.name: "make_tool"}
"""The lane that each workflow learns in."""

_log = logging.getLogger(__name__)


def lane_of(workflow: Workflow) -> str:
    """The lane of a workflow; those of one's own learn with the auto-coder."""
    return LANES.get(workflow.name, LANES[AUTOCODER.name])


@contextmanager
def library_of(store: EventStore) -> Iterator[Library]:
    """Lend the lessons beside the tapes of a store. Raises StoreUnusable.

    Those of a store that is no file are kept in memory, as long as the store; where nobody can tell
    how long that is (it has `__slots__`), no longer than they are lent.
    """
    if isinstance(store, SqliteStore):
        with closing(Library.open(store.path)) as library:
            yield library
    elif _has_an_end(store):
        yield _in_memory(store)
    else:
        with closing(Library.open()) as library:
            yield library


_kept: dict[int, Library] = {}
"""Libraries in memory, by the identity of their stores: not every store can be hashed."""


def _in_memory(store: EventStore) -> Library:
    if id(store) not in _kept:
        _kept[id(store)] = Library.open()
        weakref.finalize(store, _drop, id(store))
    return _kept[id(store)]


def _has_an_end(store: EventStore) -> bool:
    """Say whether one is told when a store is gone."""
    try:
        weakref.ref(store)
    except TypeError:
        return False
    return True


def _drop(store: int) -> None:
    _kept.pop(store).close()


def guidance_for(store: EventStore, lane: str, request: str, now: str = "") -> tuple[str, ...]:
    """Return what a session with this request is told, and count that it was told.

    `now` is a time as a clock writes it; an empty one is the system's. Raises StoreUnusable.
    """
    with library_of(store) as library:
        told = library.guidance(lane, request, now=now)
        library.used(guidance.id for guidance in told)
    return tuple(guidance.text for guidance in told)


def taught(store: EventStore, workflow: Workflow, job: Job, clock: Clock) -> Job:
    """Return the job with what earlier sessions taught that is about it.

    The clock is not looked at where nothing was taught. Raises StoreUnusable.
    """
    lane = lane_of(workflow)
    if not (isinstance(store, SqliteStore) or id(store) in _kept):
        return job  # most stores in memory live for one session: it should not open a library
    with library_of(store) as library:
        if not library.lessons(lane):
            return job
    guidance = guidance_for(store, lane, job.prompt, clock.now())
    return job.model_copy(update={"guidance": (*job.guidance, *guidance)}) if guidance else job


def learn_from(store: EventStore, session: str) -> int:
    """Keep what the tape of a session teaches, and return how many lessons are added.

    A session that is not done, or was learned from before, adds none; nor does one that others wrote,
    or any part of it. Raises UnknownSession, DamagedTape, StoreUnusable.
    """
    workflow, records = _tape(store, session)
    if records[-1].dest != State.DONE or not _is_ours(store, workflow, records):
        return 0
    if not (texts := lessons(workflow, (record.event for record in records))):
        return 0
    with library_of(store) as library:
        lane, request = lane_of(workflow), _job(records).prompt
        return library.learn(session, lane, request, texts, records[-1].at)


def _is_ours(store: EventStore, workflow: Workflow, records: list[Recorded]) -> bool:
    """Say whether this user opened each session that has written these events: a fork has several."""
    after, ends = workflow.blank("-"), {}
    for record in records:
        after = workflow.advance(after, record.event)
        ends[record.session] = (after.job, after.allowed)
    return all(is_marked(store, name, job, allowed) for name, (job, allowed) in ends.items())


def learn_after(store: EventStore, session: str) -> None:
    """Learn from a session that has ended; if that cannot be, say so and harm nothing."""
    try:
        learn_from(store, session)
    except Exception as error:  # noqa: BLE001 - whatever it is, the result was paid for
        known = isinstance(error, StoreError)
        _log.warning("nothing was learned from session %s: %s", session, error, exc_info=not known)


def give_feedback(
    store: EventStore, session: str, good: bool, note: str = "", now: str = ""
) -> None:
    """Keep what a person says of a session; it takes the place of what was said of it before.

    The note is told to later sessions with similar requests: as something to do if the verdict is
    good, to avoid if it is bad. Secrets that the session knew are taken out of it. Raises
    UnknownSession, DamagedTape, StoreUnusable.
    """
    workflow, records = _tape(store, session)
    job = _job(records)
    note = composition.boundary_for(job).text(note)
    with library_of(store) as library:
        library.feedback(session, lane_of(workflow), good, note, job.prompt, now)


def _tape(store: EventStore, session: str) -> tuple[Workflow, list[Recorded]]:
    workflow, records = opened_tape(store, session, WORKFLOWS)
    return workflow, list(records)


def _job(records: list[Recorded]) -> Job:
    """Return what was asked for in the end: a fork may have changed it."""
    jobs = [job for record in records if (job := getattr(record.event, "job", None))]
    last: Job = jobs[-1]
    return last
