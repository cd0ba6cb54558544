"""A sandbox that answers as one did once, from a tape: nothing is built and nothing runs."""

from __future__ import annotations

from collections.abc import Iterable

from codetape.adapters.recordings import NotRecorded, Recording, Recordings
from codetape.engine.ports import SandboxBroken
from codetape.states.values import (
    BuildFailure,
    ImageRef,
    ImageSpec,
    Outcome,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    Value,
)


class RecordedSandbox:
    """Answers a build or a run with what was recorded for that very one; implements `Sandbox`.

    `recorded` comes from `codetape.adapters.recordings.recordings`. What was not recorded is a broken
    sandbox that names the nearest ones; trying again is of no use.
    """

    def __init__(self, recorded: Iterable[Recording]) -> None:
        self.recordings = Recordings(
            r for r in recorded if isinstance(r.asked, ImageSpec | RunSpec)
        )

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Return what the build brought. Raises SandboxBroken as it did, or for no recording."""
        outcome = self._taken(spec)
        if not isinstance(outcome, ImageRef | BuildFailure):
            raise TypeError(f"{type(outcome).__name__} is no outcome of a build")
        return outcome

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Return what the run brought. Raises SandboxBroken as it did, or for no recording."""
        outcome = self._taken(spec)
        if not isinstance(outcome, RunOutcome):
            raise TypeError(f"{type(outcome).__name__} is no outcome of a run")
        return outcome

    async def close(self) -> None:
        """Nothing is to be freed."""

    def _taken(self, asked: Value) -> Outcome:
        try:
            outcome = self.recordings.take(asked)
        except NotRecorded as missing:
            failure = SandboxFailure(message=str(missing), missing=True)
            raise SandboxBroken(failure) from missing
        if isinstance(outcome, SandboxFailure):
            raise SandboxBroken(outcome)
        return outcome
