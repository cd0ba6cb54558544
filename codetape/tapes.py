"""Tapes from the front door: opened by a session's prefix or `last`, and forked.

tape = open_tape("codetape.db", "last")
tape[12].state, tape[12].session.code, tape[12].request
other = fork(tape, at=12, model="gpt-4.1")
AutoCoderAgent(model="gpt-4.1").resume(other.id)
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from codetape import composition, shapes
from codetape.adapters.system import SystemClock, SystemIds
from codetape.authority import Authority, admit, lacking
from codetape.changes import changed
from codetape.engine.codec import UnreadableEvent, misfits
from codetape.engine.ports import EventStore, StoreError, UnknownSession
from codetape.engine.tape import Source
from codetape.marks import has_marked_budget, is_marked, mark_budget, mark_job
from codetape.needs import Act, Need
from codetape.replay import fork as forking
from codetape.replay.fork import CannotFork
from codetape.replay.imports import TapeFile, read_tape_file
from codetape.replay.reading import Tape
from codetape.replay.reading import open_tape as read_tape
from codetape.replay.rules import UnknownRules
from codetape.states.job import Job
from codetape.states.machine import IllegalTransition
from codetape.states.session import Session
from codetape.states.tools.session import ToolSession
from codetape.states.values import Answer, Outcome, Usage

LAST = "last"

NAMED = 5
"""So many sessions are named where a prefix fits several."""


def open_tape(
    source: str | Path | EventStore = composition.DEFAULT_STORE, session: str = LAST
) -> Tape:
    """Open a tape of a store, by its id, a unique prefix of it, or `last`; or the one of a file.

    A path that ends in .jsonl is an export, everything else a store. Raises UnknownSession,
    DamagedTape, UnreadableEvent, UnknownRules, BadTapeFile; FileNotFoundError for a store that is not
    there.
    """
    if isinstance(source, str | Path) and str(source).endswith(".jsonl"):
        file = read_tape_file(Path(source))
        return read_tape(file, file.session)
    if isinstance(source, str | Path) and not Path(source).exists():
        raise FileNotFoundError(f"there is no store {source}")
    store = composition.open_store(source)
    return read_tape(store, find_session(store, session))


def find_session(store: EventStore, name: str) -> str:
    """Return the id for a unique prefix or `last`, the one with the newest event.

    Raises UnknownSession, and ValueError for what is no text.
    """
    rows, name = store.sessions(), shapes.text("session", name)
    if name == LAST and rows:
        return max(reversed(rows), key=lambda row: row.updated_at).id  # of equals, the newest
    found = tuple(row.id for row in rows if row.id.startswith(name))
    if name in found:
        return name
    if len(found) != 1 or not name:
        raise UnknownSession(name, found[:NAMED] if name else ())
    return found[0]


def opened_here(store: EventStore, session: str) -> bool:
    """Say whether this user opened a session here; of one that cannot be read, nobody can tell."""
    try:
        last = read_tape(store, session)[-1].session
    except (StoreError, UnreadableEvent, UnknownRules, IllegalTransition):
        return False
    return is_marked(store, last.id, last.job, last.allowed)


def fork(
    tape: Tape,
    at: int,
    *,
    outcome: Outcome | str | None = None,
    authority: Authority | None = None,
    **changes: Any,
) -> Tape:
    """Start a session that shares the tape up to event `at`, and return its tape.

    `changes` are what is asked for from there on, by the names of an agent's arguments: prompt, model,
    max_iterations, timeout, budget and others (`codetape.changes.FIELDS`). `outcome` takes the place of
    what event `at` + 1 recorded: a value, its JSON, or the text of a model's answer. Nothing is asked
    and nothing runs: go on with `AutoCoderAgent.resume`. The tape that is forked is not touched.

    A fork of a session that was not opened here is as little this user's as that one. `authority`
    makes it so, if it grants all that the fork will want, its lists of packages too. Raises NotGranted
    for what it does not, ValueError for what makes no sense there, IndexError for an event that is not
    there.
    """
    store, before = _store_of(tape), tape[at].session
    job, opened = before.job, tape[at].record.session
    asked = changed(job, changes) if changes else job
    spends = asked.budget != job.budget or has_marked_budget(store, opened, job.budget)
    ours = is_marked(store, opened, job, before.allowed)
    if _is_bare_demo(job) and (changes or outcome is not None):
        ours = False
    if authority is not None:
        forked = dataclasses.replace(before, job=asked)
        admit(forked, authority, _acts_of(forked), asked, ours=ours, spends=spends)
    given = read_outcome(tape, tape[at].seq + 1, outcome) if isinstance(outcome, str) else outcome
    session = forking.fork(
        tape,
        at,
        store=store,
        id=SystemIds().new(),
        clock=SystemClock(),
        owner=composition.owner(),
        job=asked if changes else None,
        outcome=given,
        boundary=composition.boundary_for(job),
    )
    if ours or authority is not None:
        mark_job(store, session.id, session.job, session.allowed)
    if spends or authority is not None:
        mark_budget(store, session.id, session.job.budget)
    return read_tape(store, session.id)


def wanted_of(tape: Tape) -> tuple[Need, ...]:
    """Return what a session will want when it goes on and was not granted here; packages are asked
    about then."""
    store, session = tape.source, tape[-1].session
    ours = is_marked(store, session.id, session.job, session.allowed)
    spends = has_marked_budget(store, session.id, session.job.budget)
    acts = tuple(act for act in _acts_of(session) if act != "list")
    return lacking(session, None, acts, session.job, ours=ours, spends=spends)


def _acts_of(session: Session) -> tuple[Act, ...]:
    """Return what a fork does when it goes on, with nothing of the caller's own."""
    acts: tuple[Act, ...] = ("sandbox", "model", "list")
    return (*acts, "folder") if isinstance(session, ToolSession) else acts


def _is_bare_demo(job: Job) -> bool:
    """Say whether a job runs a shipped script in a bare process.

    Where no sandbox works the demo chooses that itself, for the code that is shipped and no other: a
    fork that may bring other code is asked about as a foreign one is.
    """
    return job.sandbox == "process" and job.model.startswith(composition.SCRIPTED)


def _store_of(tape: Tape) -> EventStore:
    source: Source | EventStore = tape.source
    if isinstance(source, TapeFile):
        raise CannotFork(f"the tape of {tape.id} is a file: import it into a store, then fork it")
    return source  # type: ignore[return-value]  # every other source is a store


def read_outcome(tape: Tape, seq: int, text: str) -> Outcome:
    """Return the outcome that a text gives in the place of what event `seq` recorded.

    That is the JSON of an outcome, `{"outcome": "run", …}`; for a model's answer any other text is the
    answer itself, which cost nothing. Raises CannotFork.
    """
    recorded = forking.answers(tape, seq).event.outcome
    try:
        value = _OUTCOME.validate_json(text)
    except ValidationError as error:
        if not isinstance(recorded, Answer):
            kind = recorded.outcome if recorded else ""
            fault = misfits(error)
            raise CannotFork(f"the outcome is no JSON of the form of {kind}: {fault}") from None
        return Answer(
            text=text,
            finish_reason="stop",
            usage=Usage(input_tokens=0, output_tokens=0),
            cost=0.0,
            notes=("given by a person",),
        )
    return value


_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
