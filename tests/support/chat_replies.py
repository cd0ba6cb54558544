"""What the chat server answers: replies, and their form in OpenAI's chat completions protocol."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Any
PIECES = 4  # chunks that a streamed text is sent in


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server does with one request.

    A `content` that is no text is sent as JSON text; None is a null content. A `status` other than
    200 sends `error` (the members of OpenAI's error object); with 200, a stream breaks off with it.
    `refuse` names members of a request that are answered with 400, without using this reply up.
    `parts` are sent as a content of typed parts, in a stream one by one.
    """

    content: Json = ""
    parts: Sequence[Json] | None = None
    finish_reason: str | None = "stop"
    choices: Literal["one", "none", "null_message"] = "one"
    refusal: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Json] = field(default_factory=dict)
    delay: float = 0.0  # seconds of silence before the first byte
    cut: Literal["no", "at_once", "in_body"] = "no"  # the connection is dropped
    silent: bool = False  # the first chunk of a body, then nothing more
    whole: bool = False  # one piece, also where a stream was asked for
    page: str | None = None  # a page of HTML instead of all that
    usage: bool | tuple[int, int] = True  # tokens in and out; True counts some
    model: str | None = None  # the model that answers, if not the one that was asked
    refuse: tuple[str, ...] = ()

    @property
    def text(self) -> str | None:
        """The content as it is sent."""
        if self.content is None or isinstance(self.content, str):
            return self.content
        return json.dumps(self.content)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came: header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Json]


def halves(text: str) -> list[str]:
    """Return `text` in two chunks."""
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def completion(reply: Reply, body: Mapping[str, Json]) -> Json:
    """Return the object that answers a request whole."""
    content = reply.text if reply.parts is None else list(reply.parts)
    message = {"role": "assistant", "content": content, "refusal": reply.refusal}
    choice = {
        "index": 0,
        "finish_reason": reply.finish_reason,
        "message": None if reply.choices == "null_message" else message,
    }
    choices = [] if reply.choices == "none" else [choice]
    usage = {"usage": _usage(reply, body)} if reply.usage else {}
    return _frame(reply, body, "chat.completion", choices) | usage


def events(reply: Reply, body: Mapping[str, Json]) -> list[str]:
    """Return the server-sent events that answer a request as a stream."""
    chunks = [_frame(reply, body, "chat.completion.chunk", choices) for choices in _deltas(reply)]
    if reply.error:
        return [_event(chunks[0]), _event({"error": dict(reply.error)})]
    if reply.usage and (body.get("stream_options") or {}).get("include_usage"):
        usage = {"usage": _usage(reply, body)}
        chunks.append(_frame(reply, body, "chat.completion.chunk", []) | usage)
    return [*map(_event, chunks), "data: [DONE]\n\n"]


def _event(data: Json) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _deltas(reply: Reply) -> Iterator[Json]:
    """Yield the choices of each chunk."""
    if reply.choices == "none":
        yield []
        return
    for delta in _pieces(reply) if reply.choices == "one" else ():
        yield [{"index": 0, "delta": delta}]
    last: Json = None if reply.choices == "null_message" else {}
    yield [{"index": 0, "delta": last, "finish_reason": reply.finish_reason}]


def _pieces(reply: Reply) -> Iterator[dict[str, Json]]:
    if reply.parts is not None:
        yield from ({"role": "assistant", "content": [part]} for part in reply.parts)
        return
    text = reply.text
    size = max(1, math.ceil(len(text or "") / PIECES))
    first = None if text is None else text[:size]
    yield {"role": "assistant", "content": first, "refusal": reply.refusal}
    for at in range(size, len(text or ""), size):
        yield {"content": (text or "")[at : at + size]}


def _frame(reply: Reply, body: Mapping[str, Json], kind: str, choices: Json) -> dict[str, Json]:
    model = reply.model or body["model"]
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": model, "choices": choices}


def _usage(reply: Reply, body: Mapping[str, Json]) -> Json:
    asked, answered = len(json.dumps(body["messages"])) // 4, len(reply.text or "") // 4
    if isinstance(reply.usage, tuple):
        asked, answered = reply.usage
    total = asked + answered
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": total}
