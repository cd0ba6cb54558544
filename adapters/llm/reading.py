"""How an answer is put together from what LiteLLM hands over: a stream of chunks, or one piece.

LiteLLM hides what the provider left out. It ends an empty stream with a finish reason of its own and
counts tokens itself where none were told. What only LiteLLM says is not taken for an answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codetape.adapters.llm.received import Received
from codetape.engine.ports import LlmError
from codetape.states.values import CallFailure, Usage

# The classes of LiteLLM's answers are not imported here: that takes seconds.
Part = Any
Stream = Any

_REQUEST_ID = ("llm_provider-x-request-id", "llm_provider-request-id", "request-id")
_ENDS = ("stop", "length", "content_filter")
_EVENTS = "text/event-stream"
_PAGES = ("text/html", "application/xhtml+xml")
_INVENTED_ID = re.compile(r"chatcmpl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # LiteLLM's own


class NotStreamed(Exception):
    """The server was asked for a stream and answered in one piece, which LiteLLM can't read."""


@dataclass
class Reading:
    """What has come of an answer so far."""

    pieces: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    counted: Any = None  # LiteLLM's usage; None where the provider told none
    model: str | None = None
    request_id: str | None = None
    media_type: str = ""
    received: Received = field(default_factory=Received)
    began: bool = False  # something came that is not of LiteLLM's own making
    chosen: bool = False  # … and there was a choice in it

    @property
    def text(self) -> str | None:
        return "".join(self.pieces) or None

    @property
    def usage(self) -> Usage:
        """What was counted. LiteLLM says 0 for what it was not told, and passes on what is below."""
        asked = getattr(self.counted, "prompt_tokens", None)
        answered = getattr(self.counted, "completion_tokens", None)
        return Usage(
            input_tokens=_at_least(1, asked),
            output_tokens=_at_least(1 if self.text else 0, answered),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """The kinds of the parts that are no text, and so no part of the answer."""
        kinds = ", ".join(self.received.kinds)
        return (f"parts of the answer that are no text were left out: {kinds}",) if kinds else ()

    def take(self, response: Part) -> None:
        """Take a chunk of a stream, or a whole response."""
        self._take_hidden(getattr(response, "hidden_params", None) or {})
        for choice in response.choices:
            if not choice.index:  # some servers don't number the only one
                self._take_choice(choice)

    def _take_hidden(self, hidden: Mapping[str, Any]) -> None:
        headers = hidden.get("additional_headers") or {}
        model, answer_id = hidden.get("provider_response_model"), hidden.get("received_model_id")
        if answer_id and _INVENTED_ID.fullmatch(answer_id):
            answer_id = None
        found = [headers.get(name) for name in _REQUEST_ID]
        self.request_id = next(filter(None, found), None) or answer_id or self.request_id
        self.media_type = headers.get("llm_provider-content-type", self.media_type)
        self.model = model or self.model
        self.began = self.began or bool(model or answer_id)

    def _take_choice(self, choice: Part) -> None:
        part = getattr(choice, "delta", None) or getattr(choice, "message", None)
        self.pieces.append(getattr(part, "content", None) or "")
        self.refusals.append(getattr(part, "refusal", None) or "")
        fields = getattr(choice, "provider_specific_fields", None) or {}
        end = self.received.end(choice.finish_reason, fields.get("native_finish_reason"))
        self.finish_reason = end or self.finish_reason
        self.began = self.began or bool(self.text)
        self.chosen = True


def _at_least(least: int, count: int | None) -> int | None:
    return None if count is None or count < least else count


def read_whole(response: Part, received: Received | None = None) -> Reading:
    """Read an answer that came in one piece."""
    received = received or Received()
    reading = Reading(began=True, model=response.model, received=received)
    reading.take(response)
    reading.pieces = received.pieces or reading.pieces
    usage = getattr(response, "usage", None)
    if usage is not None and usage.total_tokens:  # all zeros is LiteLLM's way to say unknown
        reading.counted = usage
    return reading


def read_received(received: Received, usage_of: Callable[..., Any]) -> Reading:
    """Read a whole answer that LiteLLM could not read: its content is a list without a text."""
    told = received.whole
    usage = told.get("usage")
    return Reading(
        pieces=received.pieces or [],
        finish_reason=received.end("stop" if received.finish_reason else None),
        counted=usage_of(**usage) if isinstance(usage, dict) else None,
        model=told.get("model"),
        request_id=told.get("id"),
        received=received,
        began=True,
    )


async def read_stream(stream: Stream, idle: float) -> Reading:
    """Read a stream to its end; silence of more than `idle` seconds after its first chunk ends it.

    Raises LlmError (silent, or over before it began), NotStreamed, and what LiteLLM raises.
    """
    reading = Reading()
    reading.received.watch(stream)
    try:
        await _read(stream, idle, reading)
    except Exception as error:
        # A provider that filters an answer may send a stream without choices.
        filtered = not reading.chosen and "finish_reason was received" in str(error)
        if not reading.began or not (filtered or _is_whole(stream, reading)):
            raise
    told = [getattr(chunk, "usage", None) for chunk in stream.chunks]
    if not any(told):
        reading.counted = None  # LiteLLM has counted by itself
    elif not reading.began:
        reading.began = True
    _check_begun(reading)
    return reading


def _is_whole(stream: Stream, reading: Reading) -> bool:
    """Whether all of an answer had come when its stream broke; it is paid, so it is taken then."""
    finish = getattr(stream, "received_finish_reason", None)
    if finish not in _ENDS:
        return False
    reading.finish_reason = finish
    told = [getattr(chunk, "usage", None) for chunk in stream.chunks]
    reading.counted = next(filter(None, reversed(told)), None)
    return True


async def _read(stream: Stream, idle: float, reading: Reading) -> None:
    patience = None  # how long a model thinks before its first word is up to the total deadline
    while True:
        try:
            async with asyncio.timeout(patience) as deadline:
                chunk = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if not deadline.expired():
                raise
            message = f"the stream has been silent for {idle:g} s in the middle of an answer"
            raise LlmError(CallFailure(reason="timeout", message=message, retryable=True)) from None
        reading.take(chunk)
        reading.counted = getattr(chunk, "usage", None) or reading.counted
        patience = idle


def _check_begun(reading: Reading) -> None:
    if reading.began:
        return
    media = reading.media_type.partition(";")[0]
    if media not in ("", _EVENTS, *_PAGES):
        raise NotStreamed  # not all servers say that it is JSON
    if media in _PAGES:
        message = f"the server answered with {media} and no answer in it: is its address right?"
        raise LlmError(CallFailure(reason="other", message=message))
    message = "the stream ended before its first word"
    raise LlmError(CallFailure(reason="connection", message=message, retryable=True))
