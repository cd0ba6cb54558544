"""What every store checks, whatever it keeps its rows in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from codetape.adapters.owner import alive, readable
from codetape.engine.chain import GENESIS, chained
from codetape.engine.codec import LARGEST_BLOB
from codetape.engine.ports import (
    ConcurrentAppend,
    DamagedTape,
    Lease,
    LeaseLost,
    SessionRow,
    StoredEvent,
    StoreError,
)

LEASE_SECONDS = 90  # three times the interval at which a running session renews
SKEW = 3600
"""Seconds that clocks of hosts may differ; a lease beyond that is of a clock that was set back."""

given_back: set[str] = set()
"""Tokens of leases that this process gave back, and could not write that down."""

LARGEST = 2**63 - 1  # of SQLite's integers


@dataclass(slots=True)
class Record:
    """The row of a session: what a list shows, the end of the tape, the lease."""

    id: str
    workflow: str
    name: str
    state: str = ""
    seq: int = 0
    head: str = GENESIS
    started_at: str = ""
    updated_at: str = ""
    parent: str | None = None
    parent_seq: int | None = None
    token: str | None = None
    owner: str | None = None
    expires: str | None = None

    @property
    def begun(self) -> bool:
        """True if the session has an event of its own."""
        return self.seq > (self.parent_seq or 0)

    def holder(self, now: str) -> str | None:
        """Return the owner of a lease that is alive at `now`, None if the session is free."""
        if self.owner is None or self.expires is None or self.token in given_back:
            return None
        lives = alive(self.owner)
        held = now < self.expires <= _later(now, LEASE_SECONDS + SKEW) if lives is None else lives
        return readable(self.owner) if held else None

    def listed(self, now: str) -> SessionRow:
        """Return what a list of sessions shows at `now`."""
        return SessionRow(
            id=self.id,
            workflow=self.workflow,
            name=self.name,
            state=self.state,
            seq=self.seq,
            head=self.head,
            started_at=self.started_at,
            updated_at=self.updated_at,
            owner=self.holder(now),
            parent=self.parent,
            parent_seq=self.parent_seq,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """The events `first` to `last` of a tape, which `session` has written."""

    session: str
    first: int
    last: int


def parts_of(record: Record, last: int, find: Callable[[str], Record | None]) -> list[Part]:
    """Return who has written the tape of `record` up to event `last`, the oldest ancestor first.

    Raises DamagedTape where the lineage is not one that `fork` makes.
    """
    parts: list[Part] = []
    one, seen = record, {record.id}
    while True:
        first = 1 if one.parent is None else one.parent_seq
        if not isinstance(first, int) or first < 1:
            raise DamagedTape(record.id, 1, f"where {one.id} forked is unreadable")
        first += one.parent is not None
        parts.append(Part(one.id, first, last))
        if one.parent is None:
            return [part for part in reversed(parts) if part.first <= part.last]
        last = min(last, first - 1)
        ancestor = None if one.parent in seen else find(one.parent)
        if ancestor is None:
            raise DamagedTape(record.id, 1, f"the events of its parent {one.parent} are gone")
        seen.add(one.parent)
        one = ancestor


def check_branch(parent: str, seq: int, events: Iterable[StoredEvent]) -> StoredEvent:
    """Return the first of `events`, where a fork begins. Raises StoreError if there is none."""
    event = next(iter(events), None) if seq > 0 else None
    if event is None:
        raise StoreError(f"session {parent} has no event {seq} to fork at")
    return event


def branched(session: str, parent: Record, at: StoredEvent) -> Record:
    """Return the row of a fork of `parent` at the event `at` that has nothing of its own yet."""
    return Record(
        id=session,
        workflow=parent.workflow,
        name=parent.name,
        state=at.dest,
        seq=at.seq,
        head=at.hash,
        parent=parent.id,
        parent_seq=at.seq,
    )


def utc_now() -> str:
    """Return the time in UTC, as `Clock.now` writes it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def expiry(now: str) -> str:
    """Return when a lease ends that is taken or renewed at `now`."""
    return _later(now, LEASE_SECONDS)


def _later(now: str, seconds: float) -> str:
    end = datetime.fromisoformat(now) + timedelta(seconds=seconds)
    return end.isoformat(timespec="microseconds")


def digest(body: bytes) -> str:
    """Return the name of a blob: its SHA-256 (hex)."""
    return hashlib.sha256(body).hexdigest()


def check_names(session: str, *texts: str) -> None:
    """Refuse an id that nobody can type (StoreError) and a text that is no UTF-8 (ValueError)."""
    if not session or " " in session or not session.isprintable():
        raise StoreError(
            f"{session!r} cannot name a session: it is empty or has blanks or controls"
        )
    for text in texts:
        text.encode()


def check_values(lease: Lease, event: StoredEvent, blobs: Mapping[str, bytes]) -> None:
    """Refuse, before anything is written, what could not be read again (ValueError)."""
    if event.session != lease.session:
        raise ValueError(f"a lease of {lease.session} is none of {event.session}")
    if not (0 < event.seq <= LARGEST and -LARGEST <= event.version <= LARGEST):
        raise ValueError(f"event {event.seq}, version {event.version}: out of range")
    for name, body in blobs.items():
        if len(body) > LARGEST_BLOB:
            raise ValueError(
                f"blob {name} of event {event.seq} is larger than {LARGEST_BLOB >> 20} MB"
            )
        if digest(body) != name:
            raise ValueError(f"blob {name} of event {event.seq} does not fit its hash")


def check_turn(record: Record | None, lease: Lease, event: StoredEvent) -> Record:
    """Return `record`, which is there, or refuse `event`: it has to be the next one of the tape.

    Raises LeaseLost, ConcurrentAppend, and ValueError for a gap or a hash that is not chained to
    the end of the tape: such an event could never be read again.
    """
    if record is None or record.token != lease.token:
        raise LeaseLost(lease.session, taken_by(record))
    if event.seq <= record.seq:
        raise ConcurrentAppend(lease.session, event.seq)
    if event.seq != record.seq + 1 or event.hash != chained(record.head, event):
        raise ValueError(f"event {event.seq} does not follow event {record.seq} of {record.id}")
    return record


def taken_by(record: Record | None) -> str | None:
    """Return who holds the lease now, as far as it is known."""
    return readable(record.owner) if record and record.owner else None


def verified(record: Record, events: Iterable[StoredEvent], after: int) -> Iterator[StoredEvent]:
    """Yield `events` with seq > `after`, checked against each other and the end in `record`.

    `events` begin with event `after`, if that is not 0: what follows is chained to it. Raises
    DamagedTape at the first event that is not what was written.
    """
    expected, previous = max(after, 1), None if after else GENESIS
    for event in events:
        if reason := _fault(record, event, expected, previous):
            raise DamagedTape(record.id, expected, reason)
        if expected > after:
            yield event
        expected, previous = expected + 1, event.hash
    if expected <= record.seq:
        raise DamagedTape(record.id, expected, f"it is missing; {record.seq} were written")


def _fault(record: Record, event: StoredEvent, seq: int, previous: str | None) -> str | None:
    """Return what is wrong with the event that should be number `seq`, None if nothing is."""
    if event.seq != seq:
        return "it is missing"
    if previous is not None and not _follows(previous, event):
        return "its hash does not fit its content and the event before it"
    if seq > record.seq:
        return f"it lies beyond the end of the tape; {record.seq} were written"
    if seq == record.seq and event.hash != record.head:
        return "the tape does not end in the hash that was written last"
    return None


def _follows(previous: str, event: StoredEvent) -> bool:
    try:
        return chained(previous, event) == event.hash
    except (TypeError, ValueError):  # a damaged row may hold values of any type
        return False
