"""JSON values in a model's text: found, and repaired where only their form is wrong.

The strict reader comes first. A lenient one reads what a person would: a comma too many, comments,
other quotes, a lone backslash. It completes no text that was cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from codetape.states.fences import Block, blocks, open_block
from codetape.states.texts import storable

_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)

LENIENT_LIMIT = 200_000
"""Characters of the longest text that is repaired: 100,000 of them take a second."""

HARMLESS = (
    "Found a stray escape sequence",
    "Found line comment",
    "Found block comment",
    "Found multi-line comment",
    "Found hash comment",
    "Converted unquoted",
    "While parsing a string in object value context, we found a comma that belongs to the string",
)
"""Beginnings of the repairs that change the form alone; any other one may have changed a value."""

LENIENT = "JSON with a fault of form was read leniently"


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A JSON value, the lines of the text that it takes, and what was repaired in it."""

    value: object
    start: int
    end: int
    repairs: tuple[str, ...] = ()


def json_values(text: str) -> list[FoundValue]:
    """Return the JSON values in `text` in their order, those inside of others left out.

    A value is the text itself, a fenced block, or an object that stands on lines of its own.
    """
    found = [*_strict_values(text)] or [*_lenient_values(text)]
    outer: list[FoundValue] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not outer or one.end > outer[-1].end:
            outer.append(one)
    return outer


def _strict_values(text: str) -> Iterator[FoundValue]:
    whole = Block(text, 0, text.count("\n"), "")
    for block in (whole, *_fenced(text)):
        try:
            value = storable(json.loads(block.text, strict=False))
        except (ValueError, RecursionError):
            continue
        yield FoundValue(value, block.start, block.end)
    yield from _between_words(text)


def _between_words(text: str) -> Iterator[FoundValue]:
    """Yield the objects whose lines hold nothing else."""
    at = 0
    while opening := _OBJECT.search(text, at):
        at = opening.end()
        try:
            read, end = _DECODER.raw_decode(text, opening.end() - 1)
            value = storable(read)
        except (ValueError, RecursionError):
            continue
        if not text[end:].partition("\n")[0].strip():
            yield FoundValue(value, text.count("\n", 0, at), text.count("\n", 0, end))
            at = end


def _lenient_values(text: str) -> Iterator[FoundValue]:
    for block in (*_fenced(text), *_spans(text)):
        if (repaired := _repaired(block.text)) is not None:
            yield FoundValue(repaired[0], block.start, block.end, repaired[1])


def _fenced(text: str) -> Iterator[Block]:
    """Yield the fenced blocks; a last one that is not closed is whole if its JSON is."""
    yield from blocks(text)
    if last := open_block(text):
        yield last


def _spans(text: str) -> Iterator[Block]:
    """Yield the text from the first line that opens an object to the last bracket that closes one."""
    opening, end = _OBJECT.search(text), text.rfind("}") + 1
    if opening and end > opening.end() and not text[end:].partition("\n")[0].strip():
        start = opening.end() - 1
        yield Block(text[start:end], text.count("\n", 0, start), text.count("\n", 0, end), "")


def _repaired(text: str) -> tuple[object, tuple[str, ...]] | None:
    """Return an object whose form alone was wrong and what was repaired, else None."""
    import json_repair

    text = text.strip()
    if not (text.startswith("{") and text.endswith("}") and len(text) <= LENIENT_LIMIT):
        return None
    try:
        repaired, log = json_repair.repair_json(text, return_objects=True, logging=True)
        value = storable(repaired)
    except (ValueError, RecursionError):
        return None
    said = dict.fromkeys(entry["text"][:200] for entry in log)
    if not isinstance(value, dict) or not all(words.startswith(HARMLESS) for words in said):
        return None
    return value, (LENIENT, *said)
