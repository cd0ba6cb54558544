"""The ports: all that the engine knows of the outside world.

An adapter file implements one of these protocols and is the only file that imports its library. The
contract of each port is a test suite in `codetape.testing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from codetape.engine.visible import safe
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    ImageRef,
    ImageSpec,
    LlmCall,
    RunOutcome,
    RunSpec,
    SandboxFailure,
)


class LlmError(Exception):
    """A call that brought no answer; `failure` says why and whether to try again."""

    def __init__(self, failure: CallFailure) -> None:
        super().__init__(f"{failure.reason}: {failure.message}")
        self.failure = failure


class SandboxBroken(Exception):
    """The sandbox itself did not work; `failure` says whether it is there at all."""

    def __init__(self, failure: SandboxFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Llm(Protocol):
    """A language model. Never retries: the rules own retries, and each attempt is an event."""

    async def complete(self, call: LlmCall) -> Answer:
        """Answer one call. Raises LlmError; cancelling the task ends the call."""
        ...


class Sandbox(Protocol):
    """A place where code that nobody has read may run."""

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Make the image of `spec`, or find it.

        A spec without packages and commands asks only whether there is a sandbox; it is cheap.
        Raises SandboxBroken. Cancelling the task ends the build.
        """
        ...

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Run once. Whatever the code does is an outcome; only a broken sandbox raises.

        Raises SandboxBroken. Cancelling the task ends the whole process tree.
        """
        ...

    async def close(self) -> None:
        """Stop what is running, then free everything. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One row of a tape. `data` is canonical JSON; texts over 1 KB in it are references to blobs."""

    session: str  # that wrote it: of an event that a fork has inherited, an ancestor
    seq: int  # 1, 2, 3, … without a gap
    name: str
    version: int
    source: str
    dest: str
    request_key: str | None
    data: str
    at: str  # ISO 8601, UTC, microseconds
    hash: str  # chained to the event before


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append to a session. Every append carries it; a lost one is refused."""

    session: str
    token: str
    owner: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What a list of sessions shows without reading a tape."""

    id: str
    workflow: str
    name: str
    state: str
    seq: int
    head: str  # hash of the last event
    started_at: str
    updated_at: str
    owner: str | None  # who holds a lease that is still alive
    parent: str | None = None
    parent_seq: int | None = None


class StoreError(Exception):
    """Base of what a store raises."""

    def __str__(self) -> str:
        """The message as it may be shown: names and texts in it come from elsewhere."""
        return safe(super().__str__())


class ConcurrentAppend(StoreError):
    """Another writer has appended this seq already: `session`, `seq`."""

    def __init__(self, session: str, seq: int) -> None:
        super().__init__(f"session {session} already has an event {seq}: another writer was faster")
        self.session = session
        self.seq = seq


class SessionOwned(StoreError):
    """Somebody alive holds the session: `session`, `owner`."""

    def __init__(self, session: str, owner: str) -> None:
        super().__init__(f"session {session} is being run by {owner}")
        self.session = session
        self.owner = owner


class LeaseLost(StoreError):
    """The lease was taken over; nothing was written: `session`, `owner` (the new one, if known)."""

    def __init__(self, session: str, owner: str | None) -> None:
        super().__init__(f"session {session} was taken over by {owner or 'another process'}")
        self.session = session
        self.owner = owner


class UnknownSession(StoreError):
    """There is no such session, or the prefix fits more than one: `prefix`, `candidates`."""

    def __init__(self, prefix: str, candidates: tuple[str, ...] = ()) -> None:
        hint = f"; it could be {', '.join(candidates)}" if candidates else ""
        super().__init__(f"no session {prefix!r}{hint}")
        self.prefix = prefix
        self.candidates = candidates


class DamagedTape(StoreError):
    """The tape is not what was written: `session`, `seq` of the first bad event, `reason`."""

    def __init__(self, session: str, seq: int, reason: str) -> None:
        super().__init__(f"session {session} is damaged at event {seq}: {reason}")
        self.session = session
        self.seq = seq
        self.reason = reason


class StoreUnusable(StoreError):
    """The store cannot be opened or written (full disk, read-only, newer version): `path`, `reason`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"store {path}: {reason}")
        self.path = path
        self.reason = reason


class EventStore(Protocol):
    """An append-only log of events, many sessions in one place. Safe for many processes.

    Methods are short and synchronous; an append returns when the event is durable.
    """

    def create(self, session: str, workflow: str, name: str, owner: str) -> Lease:
        """Reserve a new session for `owner`. It is listed from its first event on.

        Raises StoreError if the id is taken or empty.
        """
        ...

    def fork(self, session: str, parent: str, seq: int, owner: str) -> Lease:
        """Reserve a new session whose tape begins with events 1 to `seq` of `parent`.

        They are shared and not copied: they keep their session, number and hash, and what the fork
        appends begins at `seq` + 1 and is chained to them. It is listed from its own first event on.
        Raises UnknownSession for the parent, DamagedTape where it is, and StoreError if the id is
        taken or the parent has no such event.
        """
        ...

    def acquire(self, session: str, owner: str) -> Lease:
        """Take the lease of a session: a fresh token. Raises SessionOwned, UnknownSession."""
        ...

    def renew(self, lease: Lease) -> None:
        """Say that the owner is alive. Raises LeaseLost."""
        ...

    def release(self, lease: Lease) -> None:
        """Give the lease back; a lost one is ignored."""
        ...

    def append(self, lease: Lease, event: StoredEvent, blobs: Mapping[str, bytes]) -> None:
        """Write one event and its blobs in one durable transaction, or nothing.

        Raises ConcurrentAppend, LeaseLost, StoreUnusable.
        """
        ...

    def read(self, session: str, after: int = 0) -> Iterator[StoredEvent]:
        """Yield the events with seq > `after`, in order, as they were written; a fork's inherited
        ones first.

        Raises UnknownSession; DamagedTape at the first gap, broken chain or unreadable row, and where
        the tape is shorter than what was written.
        """
        ...

    def sessions(self) -> list[SessionRow]:
        """List the sessions that have an event, the oldest first, without reading their tapes."""
        ...

    def mark(self, session: str, mark: str) -> None:
        """Keep a mark beside a session, in the place of its old one; an empty one takes it away.

        It is no part of the tape, and goes with the session. Raises UnknownSession.
        """
        ...

    def mark_of(self, session: str) -> str | None:
        """Return the mark of a session; None if it has none, or is not there."""
        ...

    def put_blob(self, body: bytes) -> str:
        """Keep `body` and return its SHA-256 (hex)."""
        ...

    def get_blob(self, hash: str) -> bytes:
        """Return the body. Raises KeyError if there is none, ValueError if it does not fit its hash."""
        ...

    def close(self) -> None:
        """Free the store. May be called twice."""
        ...


class Clock(Protocol):
    """Time, and waiting for it."""

    def now(self) -> str:
        """The time in UTC: ISO 8601 with microseconds and "+00:00"."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Ids(Protocol):
    """Names that nobody else uses."""

    def new(self) -> str:
        """A fresh id: lower-case letters and digits, at least 12."""
        ...
