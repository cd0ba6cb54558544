"""The hash that ties each event to the one before it."""

from __future__ import annotations

import hashlib

from codetape.engine.ports import StoredEvent
from codetape.states.values import canonical

GENESIS = "0" * 64
"""What the first event of a tape is chained to."""


def chained(previous: str, event: StoredEvent) -> str:
    """Return the SHA-256 (hex) of `event`, its own `hash` left out, tied to the hash before it."""
    facts = canonical(
        [
            previous,
            event.session,
            event.seq,
            event.name,
            event.version,
            event.source,
            event.dest,
            event.request_key,
            event.data,
            event.at,
        ]
    )
    return hashlib.sha256(facts.encode()).hexdigest()
