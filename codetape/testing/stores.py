"""The contract of `EventStore`, as tests. An adapter's author subclasses `EventStoreContract`:

    class TestMyStore(EventStoreContract):
        gaps = {"test_what_was_written_is_there_for_the_next_process": "it is kept in memory"}

        def make_store(self, clock, folder):
            return MyStore(folder / "tape", clock)

`gaps` names the tests that an adapter fails, with the reason; a gap that passes fails the suite.
"""

from __future__ import annotations

from codetape.testing.store_cases import HOSTILE_TEXTS, HandClock, make_event, write
from codetape.testing.store_forks import ForkContract
from codetape.testing.store_leases import LeaseContract, MarkContract, SessionContract
from codetape.testing.store_tapes import BlobContract, TapeContract


class EventStoreContract(
    TapeContract, SessionContract, LeaseContract, MarkContract, ForkContract, BlobContract
):
    """What every event store does."""


__all__ = ["HOSTILE_TEXTS", "EventStoreContract", "HandClock", "make_event", "write"]
