"""A tape to look at: its events by number, and the session as it was after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codetape.engine import codec
from codetape.engine.codec import UnreadableEvent
from codetape.engine.ports import DamagedTape
from codetape.engine.tape import Recorded, Source
from codetape.engine.visible import in_html, safe
from codetape.replay.rules import opened
from codetape.states.events import Event, Forked, Resumed
from codetape.states.machine import State
from codetape.states.session import Session
from codetape.states.workflow import WORKFLOWS, Workflow


def open_intact(
    source: Source, session: str, workflows: Sequence[Workflow] = WORKFLOWS
) -> tuple[Tape, DamagedTape | UnreadableEvent | None]:
    """Read a tape up to its first fault, and return it with that fault; None if there is none.

    Raises UnknownSession, UnknownRules, and the fault itself if it is at the first event.
    """
    rules, records = opened(source, session, workflows)
    intact: list[Recorded] = []
    fault: DamagedTape | UnreadableEvent | None = None
    try:
        intact.extend(records)
    except (DamagedTape, UnreadableEvent) as error:
        fault = error
    return Tape(session, rules, tuple(intact), source), fault


KEPT = 64
"""Sessions of one tape that are kept, so that a walk over it folds no event very often."""

SHOWN = 2000
"""Characters of a value that a notebook shows."""


def open_tape(source: Source, session: str, workflows: Sequence[Workflow] = WORKFLOWS) -> Tape:
    """Read the tape of a session. Raises UnknownSession, DamagedTape, UnreadableEvent, UnknownRules."""
    rules, records = opened(source, session, workflows)
    return Tape(session, rules, tuple(records), source)


def is_redacted(source: Source) -> bool:
    """True for a file without prompts and data."""
    return bool(getattr(source, "redacted", False))


def as_recorded(rules: Workflow, before: Session, record: Recorded) -> Session:
    """Return the session after an event that led where the tape says, whatever the table says.

    Raises IllegalTransition for an event of another workflow.
    """
    facts = rules.with_facts(before, record.event)
    if record.dest not in {*State}:
        raise DamagedTape(record.session, record.seq, "it leads to no state that there is")
    after = replace(facts, state=State(record.dest), seq=record.seq)
    if not after.done:
        return after
    ending: Any = rules.ending(after, record.event)
    return replace(after, ending=ending)


def stored_request(get_blob: Callable[[str], bytes], key: str) -> dict[str, Any] | None:
    """Return what was asked when the tape was made, None if that is not there any more."""
    try:
        return codec.unpack_request(get_blob(key).decode(), get_blob)
    except (KeyError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a tape; `seq`, `event` and `state` are what one asks for most."""

    tape: Tape
    record: Recorded

    @property
    def seq(self) -> int:
        return self.record.seq

    @property
    def event(self) -> Event:
        return self.record.event

    @property
    def state(self) -> str:
        """The state that the event led to when it was recorded."""
        return self.record.dest

    @property
    def inherited(self) -> bool:
        """True if another session has written the event, and this one is its fork."""
        return self.record.session != self.tape.id

    @property
    def request(self) -> dict[str, Any] | None:
        """What was asked: its name and all that it said. None if nothing was, or if it is gone."""
        if self.record.request_key is None:
            return None
        return stored_request(self.tape.source.get_blob, self.record.request_key)

    @property
    def request_name(self) -> str:
        """The name of what was asked; empty if nothing was."""
        return str((self.request or {}).get("request", ""))

    @property
    def tells_of_a_crash(self) -> bool:
        """True if somebody went on there with a session that nobody had paused."""
        return isinstance(self.event, Resumed) and not self.tape.session_at(self.seq - 1).paused

    @property
    def session(self) -> Session:
        """The session after the event, under today's rules. Raises IllegalTransition."""
        return self.tape.session_at(self.seq)

    def __repr__(self) -> str:
        way = (
            self.state
            if self.record.source == self.state
            else f"{self.record.source} -> {self.state}"
        )
        return safe(
            f"<event {self.seq} of {self.tape.id}: {self.event.name}, {way}, {self.record.at}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the event with all that it tells."""
        facts = self.event.model_dump(mode="json", exclude_defaults=True)
        rows = [(name, str(value)) for name, value in facts.items()]
        return f"<p>{_text(repr(self)[1:-1])}</p>{_table(rows)}"


class Tape:
    """The events of a session, numbered from 1: `tape[12]`, `tape[-1]`, `for step in tape`."""

    def __init__(
        self, id: str, rules: Workflow, records: Sequence[Recorded], source: Source
    ) -> None:
        self.id = id
        self.rules = rules
        self.source = source
        self._records = records
        self._sessions = {0: rules.blank(id)}  # some of those that were asked for

    @property
    def workflow(self) -> str:
        """The name of its rules."""
        return self.rules.name

    @property
    def inherited(self) -> int:
        """How many of the first events are those of the session that this one is a fork of."""
        return sum(record.session != self.id for record in self._records)

    @property
    def simulated(self) -> bool:
        """True if an outcome on it was given by a person: what follows need not hold."""
        return any(isinstance(r.event, Forked) and r.event.given for r in self._records)

    @property
    def parent(self) -> str | None:
        """The session that this one is a fork of, None if it is none."""
        forks = [r.event.parent for r in self._records if isinstance(r.event, Forked)]
        return forks[-1] if forks else None

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Step]:
        return (Step(self, record) for record in self._records)

    def __getitem__(self, seq: int) -> Step:
        """Return event number `seq`, from the end if it is negative. Raises IndexError."""
        index = seq - 1 if seq > 0 else seq + len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"session {self.id} has events 1 to {len(self)}, not {seq}")
        return Step(self, self._records[index])

    def session_at(self, seq: int) -> Session:
        """Return the session after event `seq`, 0 for before the first one, under today's rules.

        Raises IndexError, and IllegalTransition where they refuse an event.
        """
        if seq:
            seq = self[seq].seq
        nearest = max(known for known in self._sessions if known <= seq)
        session = self._sessions[nearest]
        for record in self._records[nearest:seq]:
            session = self._after(session, record)
            if record.seq % self._apart == 0:
                self._sessions[record.seq] = session
        self._sessions[seq] = session
        if len(self._sessions) > 2 * KEPT:  # by a walk over all of them
            self._sessions = {n: s for n, s in self._sessions.items() if n % self._apart == 0}
        return session

    @property
    def _apart(self) -> int:
        """How far apart the sessions are that stay: each holds what all before it have brought."""
        return len(self) // KEPT + 1

    def _after(self, before: Session, record: Recorded) -> Session:
        """Fold an event; of a redacted tape the texts that guards would read are gone."""
        if is_redacted(self.source):
            return as_recorded(self.rules, before, record)
        return self.rules.advance(before, record.event)

    def __repr__(self) -> str:
        last = self._records[-1]
        return safe(
            f"<tape {self.id}: {self.workflow}, {len(self)} events, {last.dest} at {last.at}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: a row for each event."""
        rows = [
            (str(step.seq), step.event.name, step.state, "inherited" if step.inherited else "")
            for step in self
        ]
        return f"<p>{_text(repr(self)[1:-1])}</p>{_table(rows)}"


def _text(text: str) -> str:
    return in_html(text, SHOWN)


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    """Lay out rows of texts; each cell is escaped here."""
    style = 'style="text-align:left"'
    lines = ("".join(f"<td {style}>{_text(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
