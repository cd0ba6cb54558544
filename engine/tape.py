"""Reading and writing one tape: the only way from events to rows and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from codetape.engine import codec
from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import Clock, DamagedTape, EventStore, Lease, StoredEvent
from codetape.states.events import Event
from codetape.states.session import Session
from codetape.states.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as it lies on a tape. `session` wrote it: of an inherited one, an ancestor."""

    seq: int
    event: Event
    source: str
    dest: str
    request_key: str | None
    at: str
    hash: str
    session: str = ""


class Source(Protocol):
    """Where tapes are read from: the reading half of an EventStore, or a file of one tape."""

    def read(self, session: str, after: int = 0) -> Iterator[StoredEvent]:
        """As EventStore.read."""
        ...

    def get_blob(self, hash: str) -> bytes:
        """As EventStore.get_blob."""
        ...


def read(store: Source, session: str, after: int = 0) -> Iterator[Recorded]:
    """Yield the events of a session. Raises UnknownSession, DamagedTape, UnreadableEvent."""
    for row in store.read(session, after):
        yield _recorded(store, row)


def request_of(store: Source, record: Recorded) -> dict[str, Any]:
    """Return what was asked for before an event that has a request. Raises DamagedTape."""
    with _blamed(record.session, record.seq):
        body = store.get_blob(str(record.request_key)).decode()
        return dict(codec.unpack_json(body, store.get_blob))


def _recorded(store: Source, row: StoredEvent) -> Recorded:
    with _blamed(row.session, row.seq):
        event = codec.unpack_event(row.name, row.version, row.data, store.get_blob)
    return _as_recorded(row, event)


@contextmanager
def _blamed(session: str, seq: int) -> Iterator[None]:
    """Say of a blob that is gone or damaged to which event it belongs."""
    try:
        yield
    except KeyError as missing:
        raise DamagedTape(session, seq, f"blob {missing} is gone") from missing
    except codec.UnreadableEvent:
        raise
    except ValueError as damage:
        raise DamagedTape(session, seq, str(damage)) from damage


def _as_recorded(row: StoredEvent, event: Event) -> Recorded:
    return Recorded(
        seq=row.seq,
        event=event,
        source=row.source,
        dest=row.dest,
        request_key=row.request_key,
        at=row.at,
        hash=row.hash,
        session=row.session,
    )


def fold(workflow: Workflow, session: str, records: Iterable[Recorded]) -> Session:
    """Return the session that the events lead to. Raises IllegalTransition."""
    folded = workflow.blank(session)
    for record in records:
        folded = workflow.advance(folded, record.event)
    return folded


class Writer:
    """Appends to the tape of one session, whose lease it holds."""

    def __init__(
        self, store: EventStore, workflow: Workflow, clock: Clock, lease: Lease, head: str = GENESIS
    ) -> None:
        self._store = store
        self._workflow = workflow
        self._clock = clock
        self._lease = lease
        self._head = head

    def record(
        self, session: Session, event: Event, asked: codec.Asked | None = None
    ) -> tuple[Session, Recorded]:
        """Append `event` and return the session after it.

        The session that comes back has folded the event as it was stored. Raises IllegalTransition
        before anything is written, and the errors of EventStore.append; then nothing has changed.
        """
        packed = codec.pack_event(event)
        blobs = dict(packed.blobs)
        stored = codec.unpack_event(event.name, event.version, packed.text, blobs.__getitem__)
        after = self._workflow.advance(session, stored)
        if asked:  # kept, so that a replay can show what was asked
            blobs |= {**asked.body.blobs, asked.key: asked.body.text.encode()}
        row = self._row(session, after, event, asked.key if asked else None, packed.text)
        self._store.append(self._lease, row, blobs)
        self._head = row.hash
        return after, _as_recorded(row, stored)

    def _row(
        self, before: Session, after: Session, event: Event, key: str | None, data: str
    ) -> StoredEvent:
        row = StoredEvent(
            session=before.id,
            seq=after.seq,
            name=event.name,
            version=event.version,
            source=before.state.value,
            dest=after.state.value,
            request_key=key,
            data=data,
            at=_checked(self._clock.now()),
            hash="",
        )
        return replace(row, hash=chained(self._head, row))

    def renew(self) -> None:
        """Say that this process is alive. Raises LeaseLost."""
        self._store.renew(self._lease)

    def release(self) -> None:
        """Let others go on with the session."""
        self._store.release(self._lease)


def moment_of(at: object) -> datetime | None:
    """Return the time that a tape tells, None for what no clock of ours says.

    It is in UTC and of the years 1970 to 2999, so that sums and differences of it can be told.
    """
    if not isinstance(at, str) or not at.isascii():
        return None
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    usual = moment.utcoffset() == timedelta() and 1970 <= moment.year < 3000
    return moment if usual else None


def _checked(at: str) -> str:
    """Return a time as a clock says it. Raises ValueError for one that could not be read again."""
    if moment_of(at):
        return at
    raise ValueError(
        f"the clock says {at!r}; a time is in UTC, as 2025-01-31T12:00:00.000000+00:00"
    )
