"""What single models refuse, and how they are asked instead.

Models differ in what they take: some refuse a temperature, some a JSON schema, some know max_tokens
only by another name. What a model has refused once is left out of the next requests to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pydantic import JsonValue

from codetape.states.values import LlmCall

Request = dict[str, JsonValue]  # members of a request, by name

_TWINS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_ALIASES = {"response_format": "json_schema|structured outputs?", "stream": "streaming"}
_REFUSAL = re.compile(
    r"unsupported|not support|n't support|not allowed|not permitted|not available|unrecogni[sz]ed"
    r"|unknown|unexpected|deprecated|no longer|cannot both",
    re.IGNORECASE,
)
# What OpenAI's strict mode takes in a schema; anything else makes it refuse the whole request.
_STRICT_WORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
    *("anyOf", "$ref", "$defs", "description", "title"),
}


class Quirks:
    """What one model has refused so far."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def learn(self, name: str) -> None:
        """Remember that the model refuses the member `name`."""
        self._refused.add(name)
        if name == "stream":
            self._refused.add("stream_options")  # makes no sense without it

    def sent(self, wanted: Request) -> Request:
        """Return the members of `wanted` that the model takes, under the names that it takes."""
        names = {name: self._name(name, wanted) for name in wanted}
        return {names[name] or name: wanted[name] for name in wanted if names[name] is not None}

    def notes(self, wanted: Request) -> tuple[str, ...]:
        """Say what `sent` does to `wanted`, a sentence for each change."""
        return tuple(
            _note(name, self._name(name, wanted))
            for name in wanted
            if name in self._refused and name != "stream_options"
        )

    def _name(self, name: str, wanted: Request) -> str | None:
        if name not in self._refused:
            return name
        twin = _TWINS.get(name)
        return None if twin in self._refused or twin in wanted else twin


def _note(name: str, instead: str | None) -> str:
    if instead is not None:
        return f"{name} was sent as {instead}: the model refuses {name}"
    if name == "response_format":
        return "the JSON schema was sent in the prompt: the model refuses response_format"
    if name == "stream":
        return "the answer was not streamed, so only the total deadline held: the model refuses it"
    return f"{name} was left out: the model refuses it"


def refused_member(message: str, param: str | None, sent: Mapping[str, object]) -> str | None:
    """Return which member of a request a client error is about, if the model refuses it as such.

    A value out of range is the caller's own mistake and gives None; a schema that a model cannot
    work with is refused like one that it doesn't know.
    """
    name = (param or "").partition(".")[0]
    named = name if name in sent else _first_named(message, sent)
    if named is None or named == "response_format" or _REFUSAL.search(message):
        return named
    return None


def _first_named(message: str, sent: Mapping[str, object]) -> str | None:
    places: dict[int, str] = {}
    for name in sent:
        words = "|".join(filter(None, (re.escape(name), _ALIASES.get(name))))
        if found := re.search(rf"(?<!\w)(?:{words})(?!\w)", message, re.IGNORECASE):
            places[found.start()] = name
    return places[min(places)] if places else None


def response_format(call: LlmCall) -> Request:
    """Return the member that asks for the call's JSON schema; empty without a schema."""
    if call.answer_schema is None:
        return {}
    schema: JsonValue = json.loads(call.answer_schema)
    wanted: Request = {
        "name": re.sub(r"[^\w-]", "_", call.kind, flags=re.ASCII)[:64],
        "schema": schema,
        "strict": is_strict(schema),
    }
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


def messages(call: LlmCall, *, schema_in_prompt: bool) -> list[dict[str, str]]:
    """Return the messages as they are sent; the schema goes to the end of the system message."""
    sent = [{"role": message.role, "content": message.text} for message in call.messages]
    if not schema_in_prompt or call.answer_schema is None:
        return sent
    words = (
        "Answer with one JSON value that fits this JSON schema, and with nothing else:\n\n"
        + call.answer_schema
    )
    if not sent or sent[0]["role"] != "system":
        return [{"role": "system", "content": words}, *sent]
    return [{"role": "system", "content": f"{sent[0]['content']}\n\n{words}"}, *sent[1:]]


def is_strict(schema: JsonValue) -> bool:
    """Whether OpenAI's strict mode takes `schema`: closed objects, all of their members required."""
    return isinstance(schema, dict) and schema.get("type") == "object" and _is_strict(schema)


def _is_strict(schema: JsonValue) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= _STRICT_WORDS:
        return False
    below = [schema["items"]] if "items" in schema else []
    for word in ("properties", "$defs"):
        members = schema.get(word, {})
        below += members.values() if isinstance(members, dict) else [None]
    choices = schema.get("anyOf", [])
    below += choices if isinstance(choices, list) else [None]
    return _is_closed(schema) and all(map(_is_strict, below))


def _is_closed(schema: dict[str, JsonValue]) -> bool:
    if schema.get("type") != "object":
        return True
    members, required = schema.get("properties"), schema.get("required")
    return (
        isinstance(members, dict)
        and isinstance(required, list)
        and set(members) == set(required)
        and schema.get("additionalProperties") is False
    )
