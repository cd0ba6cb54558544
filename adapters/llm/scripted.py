"""A model that answers from a script: for tests, demonstrations and replays of a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from codetape.engine.ports import LlmError
from codetape.states.values import Answer, CallFailure, LlmCall, Usage

Item = JsonValue | Answer | CallFailure | Exception
CHARACTERS_PER_TOKEN = 4  # a rule of thumb for English text and code


def count_tokens(call: LlmCall, text: str | None) -> Usage:
    """Return what a provider would count, about: the same for the same texts."""
    asked = sum(len(message.text) for message in call.messages)
    return Usage(
        input_tokens=asked // CHARACTERS_PER_TOKEN,
        output_tokens=len(text or "") // CHARACTERS_PER_TOKEN,
    )


class ScriptedLlm:
    """Answers each kind of call from its own list, in order; implements `Llm`.

    An item of a list is one answer: a text is sent as it is, any other JSON value as JSON text, an
    `Answer` whole; an exception or a `CallFailure` is raised. `used` is how many items of each list
    were used before, so that a session that is resumed goes on where it was. `model` is the name that
    answers; `cost` is in US dollars per answer, None for unknown; `usage` counts the tokens.
    """

    def __init__(
        self,
        script: Mapping[str, Sequence[Item]],
        *,
        used: Mapping[str, int] | None = None,
        model: str = "scripted",
        cost: float | None = None,
        usage: Callable[[LlmCall, str | None], Usage] = count_tokens,
    ) -> None:
        self._script = {kind: tuple(items) for kind, items in script.items()}
        self._used = dict(used or {})
        self._model, self._cost, self._usage = model, cost, usage
        self._calls: list[LlmCall] = []

    @property
    def calls(self) -> tuple[LlmCall, ...]:
        """All that was asked of this object, in order."""
        return tuple(self._calls)

    def left_over(self) -> dict[str, int]:
        """Return how many answers are left of each kind that has some."""
        left = {kind: len(items) - self._used.get(kind, 0) for kind, items in self._script.items()}
        return {kind: count for kind, count in left.items() if count > 0}

    async def complete(self, call: LlmCall) -> Answer:
        """Answer from the script, at once. Raises what the script says, LlmError when it is dry."""
        self._calls.append(call)
        items, used = self._script.get(call.kind, ()), self._used.get(call.kind, 0)
        if used >= len(items):
            raise LlmError(_dry(call.kind, len(items)))
        self._used[call.kind] = used + 1
        return self._answer(call, items[used])

    def _answer(self, call: LlmCall, item: Item) -> Answer:
        if isinstance(item, Exception):
            raise item
        if isinstance(item, CallFailure):
            raise LlmError(item)
        if isinstance(item, Answer):
            return item
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        return Answer(
            text=text,
            finish_reason="stop",
            usage=self._usage(call, text),
            cost=self._cost,
            model=self._model,
        )


def _dry(kind: str, length: int) -> CallFailure:
    answers = "1 answer" if length == 1 else f"{length} answers"
    message = f"the script has {answers} of kind {kind!r}, and all of them are used"
    if length == 0:
        message = f"the script has no answer of kind {kind!r}"
    return CallFailure(reason="script_dry", message=message)
