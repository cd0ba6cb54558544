"""JSON values in a model's text: found, and repaired where only their form is wrong.

The strict reader comes first. A lenient one reads what a person would: a comma too many, comments,
other quotes, a lone backslash, a dictionary of Python. It completes no text that was cut.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from codetape.states.fences import PAIR, WORK, open_block, read_blocks
from codetape.states.python_source import parsed
from codetape.states.texts import storable

_LINE = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)
_AMONG_WORDS = re.compile(r'(?=(?:\[\s*)?\{\s*")')
_INSIDE = re.compile(r'(?:[,\[{]|"\s*:)\s*$')
"""The end of what stands before a value that is a part of another one, which may have been cut."""
_DECODER = json.JSONDecoder(strict=False)

LENIENT_LIMIT = 200_000
"""Characters of a text that are repaired at most: 100,000 of them take a second."""

LAST = 5
"""Beginnings of JSON at the end of a text that are looked at."""

HARMLESS = (
    "Found a stray escape sequence",
    "Found a delimiter that was escaped",
    "Found line comment",
    "Found block comment",
    "Found multi-line comment",
    "Found hash comment",
    "Converted unquoted",
    "While parsing a string in object value context, we found a comma that belongs to the string",
)
"""Beginnings of the repairs that change the form alone; any other one may have changed a value."""

NAMES = "names without quotes were read as those of JSON"

LENIENT = "JSON with a fault of form was read leniently"
PYTHON = "a dictionary of Python was read as JSON"

SMART = "quotes of a word processor were read as those of JSON"

_SMART_OPENING = re.compile("(?<=[{\\[,:])(\\s*)[\u201c\u201e\u2018]")
_SMART_CLOSING = re.compile("[\u201d\u201c\u2019](?=\\s*[,:}\\]])")
_KEYS = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(?P<before>[{,]\s*)(?P<name>[A-Za-z_]\w*)(?=\s*:)",
    re.DOTALL,
)
"""Texts in quotes, and names without them where an object has a name."""

_SENTINEL = "\n[0]"
"""A value after a text: what was cut takes it in, a whole one stands beside it."""
_BESIDE = "The parser returned early"
_PYTHONIC = re.compile(r"^\{\s*'|:\s*(?:\"{3}|'{3})")


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A JSON value, the characters of the text that it takes, and what was repaired in it."""

    value: object
    start: int
    end: int
    repairs: tuple[str, ...] = ()
    is_among_words: bool = False


def json_values(text: str) -> Iterator[list[FoundValue]]:
    """Yield the JSON values in `text` in their order, by the ways to find them, the surest one first.

    A value is the text itself, a block, or begins and ends a line; or it has a fault of form; or it
    stands among words. Those inside of others are left out.
    """
    lines = _decoded(text, _LINE, _ends_its_line)
    yield _outer([*_whole(text), *_in_blocks(text, _strict), *lines])
    yield _outer([*_in_blocks(text, _Lenient().read), *_span(text)])
    among_words = _decoded(text, _AMONG_WORDS, _is_no_part)
    yield [replace(one, is_among_words=True) for one in among_words]


def is_json(text: str, start: int) -> bool:
    """True if a value of JSON stands at a place of a text."""
    try:
        _DECODER.raw_decode(text, start + len(text[start:]) - len(text[start:].lstrip()))
    except (ValueError, RecursionError):
        return False
    return True


def ends_in_json(text: str) -> bool:
    """True for a text that ends in the middle of JSON."""
    text = text.rstrip()
    for begin in [*_AMONG_WORDS.finditer(text)][-LAST:]:
        try:
            _DECODER.raw_decode(text, begin.start())
        except json.JSONDecodeError as error:
            if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
                return True
        except (ValueError, RecursionError):
            return True
    return False


def _outer(found: list[FoundValue]) -> list[FoundValue]:
    outer: list[FoundValue] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not outer or one.end > outer[-1].end:
            outer.append(one)
    return outer


# --- strict ---------------------------------------------------------------------------------------


def _strict(text: str) -> tuple[object, tuple[str, ...]] | None:
    try:
        return storable(json.loads(text, strict=False)), ()
    except (ValueError, RecursionError):
        return None


def _whole(text: str) -> Iterator[FoundValue]:
    if read := _strict(text):
        yield FoundValue(read[0], 0, len(text))


Read = tuple[object, tuple[str, ...]]


def _in_blocks(text: str, read: Callable[[str], Read | None]) -> Iterator[FoundValue]:
    """Yield the values of the blocks; a last one that is not closed is whole if its JSON is."""
    for block, (value, repairs) in read_blocks(text, read):
        yield FoundValue(value, block.start, block.end, repairs)
    last = open_block(text)
    if last and (found := read(last.text)):
        yield FoundValue(found[0], last.start, last.end, found[1])


def _decoded(
    text: str, opening: re.Pattern[str], stands: Callable[[str, int, int], bool]
) -> Iterator[FoundValue]:
    """Yield the values that begin where `opening` matches and that stand where one may stand."""
    at, left = 0, WORK * len(text) + 400_000
    while left > 0 and (begin := opening.search(text, at)):
        start = begin.end()
        at = start + 1
        try:
            read, end = _DECODER.raw_decode(text, start)
            value = storable(read)
        except json.JSONDecodeError as error:
            left -= error.pos - start + PAIR
        except (ValueError, RecursionError):
            left -= 10_000
        else:
            left -= end - start + PAIR
            if stands(text, start, end):
                yield FoundValue(value, start, end)
                at = end


def _ends_its_line(text: str, _: int, end: int) -> bool:
    stop = text.find("\n", end)
    return not text[end : stop if stop >= 0 else len(text)].strip()


def _is_no_part(text: str, start: int, _: int) -> bool:
    return not _INSIDE.search(text[max(0, start - 80) : start])


# --- lenient --------------------------------------------------------------------------------------


class _Lenient:
    """The reader of values with a fault of form; it reads no more than so many characters."""

    def __init__(self) -> None:
        self._left = LENIENT_LIMIT

    def read(self, text: str) -> Read | None:
        """Return an object whose form alone was wrong and what was repaired, else None."""
        text = text.strip()
        if not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
            return None
        if (left := self._left - len(text)) < 0:
            return None
        self._left = left
        try:
            return (
                _of_python(text)
                or _with_straight_quotes(text)
                or _with_quoted_names(text)
                or _repaired(text)
            )
        except (ValueError, RecursionError):
            return None


def _span(text: str) -> Iterator[FoundValue]:
    """Yield the text from the first line that opens an object to the last bracket that closes one."""
    opening, end = re.search(r"^[ \t]*(?=\{)", text, re.MULTILINE), text.rfind("}") + 1
    if opening and end > opening.end() and not text[end:].partition("\n")[0].strip():
        start = opening.end()
        if read := _Lenient().read(text[start:end]):
            yield FoundValue(read[0], start, end, read[1])


def _of_python(text: str) -> Read | None:
    """Return a dictionary of constants in Python's form: its escapes are others than those of JSON."""
    if not _PYTHONIC.search(text):
        return None
    try:
        (statement,) = parsed(text).body
        value = ast.literal_eval(statement.value) if isinstance(statement, ast.Expr) else None
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None
    return (storable(value), (PYTHON,)) if isinstance(value, dict) else None


def _with_straight_quotes(text: str) -> Read | None:
    """Return a value whose quotes are those of a word processor where JSON has its own."""
    straight = _SMART_OPENING.sub(r'\1"', _SMART_CLOSING.sub('"', text))
    read = _strict(straight) if straight != text else None
    return (read[0], (LENIENT, SMART)) if read else None


def _with_quoted_names(text: str) -> Read | None:
    """Return an object whose names have no quotes, as in JavaScript."""
    quoted = _KEYS.sub(
        lambda found: f'{found["before"]}"{found["name"]}"' if found["name"] else found[0], text
    )
    if quoted == text:
        return None
    read = _strict(quoted)
    if read is None and (repaired := _repaired(quoted)):
        read = repaired
    return (read[0], (*(read[1] or (LENIENT,)), NAMES)) if read else None


def _repaired(text: str) -> Read | None:
    import json_repair

    found, log = json_repair.repair_json(text + _SENTINEL, return_objects=True, logging=True)
    said = tuple(dict.fromkeys(entry["text"][:200] for entry in log))
    said = tuple(words for words in said if not words.startswith(_BESIDE))
    if not (isinstance(found, list) and len(found) == 2 and found[1] == [0]):
        return None
    if not all(words.startswith(HARMLESS) for words in said):
        return None
    value = storable(found[0])
    return (value, (LENIENT, *said)) if isinstance(value, dict | list) else None
