"""Is what is on a tape what was written? Every hash of it is computed again, those of its blobs too."""

from __future__ import annotations

from dataclasses import dataclass

from codetape.engine.ports import DamagedTape
from codetape.engine.tape import Source
from codetape.replay.export import blobs_of


@dataclass(frozen=True, slots=True)
class Checked:
    """A session with how many of its events are intact, and the first fault (None: there is none)."""

    session: str
    events: int
    fault: DamagedTape | None = None


def verify(source: Source, session: str) -> Checked:
    """Check a tape to its end or to its first bad event. Raises UnknownSession."""
    intact = 0
    try:
        for row in source.read(session):
            for _ in blobs_of(row, source.get_blob):
                pass
            intact = row.seq
    except DamagedTape as fault:
        return Checked(session, intact, fault)
    return Checked(session, intact)
