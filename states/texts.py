"""Texts and values as a tape can hold them, wherever they come from."""

from __future__ import annotations

import math


def well_formed(text: str) -> str:
    """Return a text as UTF-8 can hold it and without NUL.

    Surrogates that belong together become their character, lone ones the replacement character.
    """
    if "\x00" in text:
        text = text.replace("\x00", "\N{SYMBOL FOR NULL}")
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


DEEPEST = 100
"""Levels of nested lists and objects that are taken from outside."""


def storable(value: object, depth: int = 0) -> object:
    """Return what was read from JSON without what escapes smuggle in.

    JSON that is plain ASCII may still spell a lone surrogate, a NUL or a number that is not finite;
    such a number becomes None. Raises RecursionError for what is nested deeper than `DEEPEST`.
    """
    if depth > DEEPEST:
        raise RecursionError(f"it is nested deeper than {DEEPEST} levels")
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {storable(name): storable(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [storable(item, depth + 1) for item in value]
    return value
