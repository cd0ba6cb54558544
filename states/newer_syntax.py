"""Newer syntax in older words, so that the rules read a text alike on every Python that they run on.

They read by one grammar, that of OLDEST. An f-string that it cannot parse is read as one of the words
in it, the parameters of types are left out, and so on; lines stay the same lines. Whether the Python
of the sandbox takes the text, only a run says.
"""

from __future__ import annotations

import keyword
import re
from functools import lru_cache

OLDEST = (3, 11)
"""The oldest Python that the rules run on; a newer one parses by its grammar too."""

NESTED = 8
"""Levels of f-strings inside f-strings that are read."""

_QUOTE = r"\"\"\"|'''|\"|'"
_STRING = re.compile(rf"(?<!\w)(?P<prefix>[rRbBuUfFtT]{{0,2}})(?P<quote>{_QUOTE})")
_PART = re.compile(
    rf"(?P<comment>\#[^\n]*)"
    rf"|(?<!\w)(?P<prefix>[rRbBuUfFtT]{{0,2}})(?P<quote>{_QUOTE})"
    r"|^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+[ \t]*(?P<types>(?=\[))"
    r"|^[ \t]*(?P<alias>type[ \t]+)(?P<name>\w+)[ \t]*(?=[=\[])"
    r"|^[ \t]*except\*?[ \t]+(?P<caught>[^\n():#,]+,[^\n():#]*?)[ \t]*(?=:)"
    r"|^[ \t]*(?P<lazy>lazy[ \t]+)(?=import\b|from\b)",
    re.MULTILINE,
)
_END = {
    **{q: re.compile(rf"(?:\\.|[^\\{q}\n])*{q}", re.DOTALL) for q in ('"', "'")},
    **{q: re.compile(rf"(?:\\.|[^\\])*?{q}", re.DOTALL) for q in ('"""', "'''")},
}
"""Where a string ends, by the quote that it begins with."""
Older = tuple[int, int, str | None]
"""Where a part of a text begins and ends, and what is read in its place; None if it stays."""

_WORD = re.compile(r"[^\W\d]\w*")
_UNKNOWN = re.compile(r"[\[({]\s*\*{1,2}[^\n]*\bfor\b|^[ \t]*\w+[ \t]*:[ \t]*for\b", re.MULTILINE)
"""Syntax that no Python of today is known to lack for long, and that is put in no older words."""


@lru_cache(maxsize=64)
def in_older_words(source: str) -> str:
    """Return a text without the newer syntax that is known, in as many lines.

    A text with a string or a bracket that nothing closes is broken, and stays as it is.
    """
    made: list[str] = []
    kept = at = 0
    while part := _PART.search(source, at):
        older = _older(source, part)
        if older is None:
            return source
        start, at, words = older
        if words is not None:
            made += [source[kept:start], words]
            kept = at
    return "".join([*made, source[kept:]])


def may_be_newer(source: str) -> bool:
    """True if only a newer Python can say whether a text parses: nothing is wrong with it for sure."""
    return in_older_words(source) != source or _UNKNOWN.search(source) is not None


def _older(source: str, part: re.Match[str]) -> Older | None:
    """Return where a part of a text begins and ends, and its older words; None if it is broken."""
    end = part.end()
    if part["quote"]:
        return _string(source, part)
    if part["types"] is not None:
        return _without_types(source, end)
    if part["alias"]:
        types = _without_types(source, end)
        start = part.start("alias")
        return (start, types[1], f"{part['name']} {types[2] or ''}") if types else None
    if part["caught"]:
        return part.start("caught"), end, f"({part['caught']})"
    if part["lazy"]:
        return part.start("lazy"), end, ""
    return end, end, None


def _without_types(source: str, at: int) -> Older | None:
    """Put blanks in the place of what is in brackets at `at`, if there are any."""
    if not source.startswith("[", at):
        return at, at, None
    depth = 0
    for bracket in re.compile(r"[\[\]]").finditer(source, at):
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            return at, bracket.end(), re.sub(r"[^\n]", " ", source[at : bracket.end()])
    return None


# --- f-strings ------------------------------------------------------------------------------------


def _string(source: str, part: re.Match[str]) -> Older | None:
    prefix, quote, start = part["prefix"].lower(), part["quote"], part.start()
    plain = _END[quote].match(source, part.end())
    after = plain.end() if plain else 0
    if not {"f", "t"} & set(prefix):
        return (start, after, None) if plain else None
    whole = _end_of_string(source, part.end(), quote, NESTED)
    if whole is None:
        return None
    text = source[start : whole[0]]
    if whole[1] or whole[0] != after:
        words = dict.fromkeys(w for w in _WORD.findall(text) if not keyword.iskeyword(w))
        lines = "\n" * text.count("\n")
        return start, whole[0], f'f"""{{({"".join(f"{w}, " for w in words)}){lines}}}"""'
    is_template = "t" in prefix
    body = source[part.start("quote") : after]
    return start, after, prefix.replace("t", "f") + body if is_template else None


def _end_of_string(text: str, at: int, quote: str, nested: int) -> tuple[int, bool] | None:
    """Return where an f-string ends whose body begins at `at`, and if a field of it is newer."""
    newer = False
    while at < len(text) and nested:
        if text.startswith(quote, at):
            return at + len(quote), newer
        if text[at] == "\\":
            at = _after_escape(text, at)
        elif text[at : at + 2] in ("{{", "}}"):
            at += 2
        elif text[at] == "{":
            if (field := _end_of_field(text, at + 1, quote, nested - 1)) is None:
                return None
            at, newer = field[0], newer or field[1]
        elif text[at] == "\n" and len(quote) == 1:
            return None
        else:
            at += 1
    return None


def _after_escape(text: str, at: int) -> int:
    if text.startswith("\\N{", at):
        return text.find("}", at) + 1 or len(text)
    return at + (1 if text[at + 1 : at + 2] in ("{", "}") else 2)


def _end_of_field(text: str, at: int, quote: str, nested: int) -> tuple[int, bool] | None:
    """Return where a field ends, and if OLDEST cannot parse it: a quote, a backslash or a comment."""
    depth, newer = 0, False
    while at < len(text):
        char = text[at]
        if depth == 0 and char == "}":
            return at + 1, newer
        if depth == 0 and char == ":":
            rest = _end_of_format(text, at + 1, quote, nested)
            return (rest[0], newer or rest[1]) if rest else None
        if string := _STRING.match(text, at):
            end = _end_of_nested(text, string, nested)
            if end is None:
                return None
            newer = newer or _is_newer(text[at:end], quote)
            at = end
            continue
        newer = newer or _is_newer(char, quote) or char == "#"
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return None
        word = _WORD.match(text, at)
        at = word.end() if word else text.find("\n", at) if char == "#" else at + 1
        if at < 0:
            return None
    return None


def _is_newer(part: str, quote: str) -> bool:
    """True for a part of a field that cannot stand in an f-string of OLDEST."""
    return "\\" in part or quote in part or ("\n" in part and len(quote) == 1)


def _end_of_nested(text: str, string: re.Match[str], nested: int) -> int | None:
    if {"f", "t"} & set(string["prefix"].lower()):
        whole = _end_of_string(text, string.end(), string["quote"], nested)
        return whole[0] if whole else None
    plain = _END[string["quote"]].match(text, string.end())
    return plain.end() if plain else None


def _end_of_format(text: str, at: int, quote: str, nested: int) -> tuple[int, bool] | None:
    newer = False
    while at < len(text) and not text.startswith(quote, at):
        if text[at] == "}":
            return at + 1, newer
        if text[at] == "{":
            if not nested or (field := _end_of_field(text, at + 1, quote, nested - 1)) is None:
                return None
            at, newer = field[0], newer or field[1]
        else:
            at += 1
    return None
