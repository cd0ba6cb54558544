"""The words of a provider that LiteLLM changes or drops: contents of typed parts, reasons of an end.

LiteLLM reads contents that are texts and loses most others, and calls each end that it does not know
"stop". Answers in OpenAI's form are therefore seen here before LiteLLM reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

# Objects of the libraries below, and of servers: neither has types that are worth much.
Chunk = Any
Choice = Any
Stream = Any

_ENDS = frozenset(
    ["stop", "stop_sequence", "end_turn", "end", "complete", "completed", "eos", "eos_token", "eot"]
)
"""The words for the end of a whole answer."""

_WORD = re.compile(r"[A-Za-z][\w.:-]{0,59}")
_TEXT = ("text", "output_text")


class Received:
    """What a provider has sent in answer to one request."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.kinds: dict[str, None] = {}  # of the parts that are no text
        self.whole: Mapping[str, Any] = {}
        self.pieces: list[str] | None = None  # of a whole answer whose content is a list

    def keep(self, details: Mapping[str, Any]) -> None:
        """Keep a whole answer; LiteLLM calls this before it reads one."""
        told = details.get("original_response")
        if not isinstance(told, str) or not told.lstrip().startswith("{"):
            return
        try:
            self.whole = json.loads(told)
        except (ValueError, RecursionError):
            return
        for choice in _first(self.whole):
            self._take_reason(choice)
            content = _get(_get(choice, "message"), "content")
            self.pieces = [self.text_of(content) or ""] if _is_typed(content) else None

    def watch(self, stream: Stream) -> None:
        """See each chunk of a stream before LiteLLM reads it."""
        source: Stream = getattr(stream, "completion_stream", None)
        if (parse := getattr(source, "chunk_parser", None)) is not None:
            source.chunk_parser = lambda chunk: parse(chunk=self.seen(chunk))
        elif hasattr(source, "__aiter__"):
            stream.completion_stream = _Watched(source, self)

    def seen(self, chunk: Chunk) -> Chunk:
        """Return a chunk whose contents are texts."""
        for choice in _first(chunk):
            self._take_reason(choice)
            delta = _get(choice, "delta")
            if _is_typed(content := _get(delta, "content")):
                _set(delta, "content", self.text_of(content))
        return chunk

    def text_of(self, content: Any) -> str | None:
        """Return the joined text of typed parts; other kinds are kept by name."""
        texts = []
        for part in content if isinstance(content, list) else [content]:
            kind = "text" if isinstance(part, str) else _get(part, "type") or "text"
            text = part if isinstance(part, str) else _get(part, "text")
            text = text if isinstance(text, str) else _get(text, "value")
            if kind in _TEXT and isinstance(text, str):
                texts.append(text)
            else:
                self.kinds[_word(kind)] = None
        return "".join(texts) or None

    def end(self, mapped: str | None, native: object = None) -> str | None:
        """Return the reason of the end: LiteLLM's, or the provider's where it is no "stop"."""
        told = native or self.finish_reason
        if mapped != "stop" or told is None or str(told).lower() in _ENDS:
            return mapped
        return _word(told)

    def _take_reason(self, choice: Choice) -> None:
        self.finish_reason = _get(choice, "finish_reason") or self.finish_reason


class _Watched:
    """A stream of chunks that are seen first."""

    def __init__(self, source: Stream, received: Received) -> None:
        self._source, self._received = source, received

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        async for chunk in self._source:
            yield self._received.seen(chunk)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _first(answer: Chunk) -> list[Choice]:
    """Return the first choice of an answer, if it has any."""
    choices = _get(answer, "choices")
    return choices[:1] if isinstance(choices, list) else []


def _is_typed(content: object) -> bool:
    return isinstance(content, list | Mapping)


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _set(holder: Any, name: str, value: str | None) -> None:
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)


def _word(told: object) -> str:
    return told if isinstance(told, str) and _WORD.fullmatch(told) else "unknown"
