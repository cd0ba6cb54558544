"""A model that answers as it did once, from a tape: nothing is paid, and nothing is made up."""

from __future__ import annotations

from collections.abc import Iterable

from codetape.adapters.recordings import NotRecorded, Recording, Recordings
from codetape.engine.ports import LlmError
from codetape.states.values import Answer, CallFailure, LlmCall


class RecordedLlm:
    """Answers a call with what was recorded for that very call; implements `Llm`.

    `recorded` comes from `codetape.adapters.recordings.recordings`. A call that was not recorded is
    a failure that names the nearest ones (reason "script_dry").
    """

    def __init__(self, recorded: Iterable[Recording]) -> None:
        self.recordings = Recordings(r for r in recorded if isinstance(r.asked, LlmCall))

    async def complete(self, call: LlmCall) -> Answer:
        """Answer as it was recorded, at once. Raises LlmError as it was recorded, or for no answer."""
        try:
            outcome = self.recordings.take(call)
        except NotRecorded as missing:
            failure = CallFailure(reason="script_dry", message=str(missing))
            raise LlmError(failure) from missing
        if isinstance(outcome, CallFailure):
            raise LlmError(outcome)
        if not isinstance(outcome, Answer):
            raise TypeError(f"{type(outcome).__name__} is no outcome of a call")
        return outcome
