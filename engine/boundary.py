"""The one boundary that texts of models and sandboxes pass on their way to the rules and the tape.

What passes it is bounded, valid UTF-8 without NUL, free of NaN and infinities, and free of every
secret value that is known. Nothing behind it has to think of that again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_origin

from codetape.states.texts import well_formed
from codetape.states.values import Answer, Value

LONGEST = 1 << 20
"""Characters that are kept of one text: the head and the tail of a longer one."""

SHORTEST_SECRET = 4
"""A secret of fewer characters would stand in every second word; it is not looked for."""

V = TypeVar("V", bound=Value)

_SUSPECT = re.compile(r"\\u|NaN|Infinity")
"""What JSON has in it where a text holds a control character or a number is not finite."""


class Boundary:
    """Cleans values. `secrets` maps the name of each secret to its value."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        known = (secrets or {}).items()
        # The longest first, or a secret that starts with another one would be left in part.
        self._secrets = sorted(
            ((value, name) for name, value in known if len(value) >= SHORTEST_SECRET),
            key=lambda pair: (-len(pair[0]), pair),
        )
        self._as_json = [(json.dumps(value)[1:-1], name) for value, name in self._secrets]

    def clean(self, value: V) -> V:
        """Return `value` as it may be stored; an answer that had to be changed keeps its original."""
        if self._is_plainly_clean(value):
            return value
        cleaned: V = self._cleaned(value)
        if isinstance(value, Answer) and value.text is not None:
            redacted = self._redacted(value.text)
            if _plain(redacted) != redacted:
                return cleaned.model_copy(update={"raw": json.dumps(redacted)})
        return cleaned

    def _is_plainly_clean(self, value: Value) -> bool:
        """Tell cheaply, for nearly all values, that there is nothing to do; False means: look."""
        try:
            text = value.model_dump_json()
        except ValueError:
            return False
        if len(text) > LONGEST or not text.isascii() or _SUSPECT.search(text):
            return False
        return not any(secret in text for secret, _ in self._as_json)

    def text(self, text: str) -> str:
        """Return a text as it may be stored."""
        return _plain(self._redacted(text))

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, Value):
            return self._cleaned_fields(value)
        if type(value) is str:  # not an enum, whose values are ours
            return self.text(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {self._cleaned(key): self._cleaned(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._cleaned(item) for item in value)
        return value

    def _cleaned_fields(self, value: Value) -> Value:
        """Clean the fields of a value, but not those that can only hold words of ours."""
        fields = type(value).model_fields.items()
        free = [name for name, info in fields if get_origin(info.annotation) is not Literal]
        return value.model_copy(update={n: self._cleaned(getattr(value, n)) for n in free})

    def _redacted(self, text: str) -> str:
        for value, name in self._secrets:
            if value in text:
                text = text.replace(value, f"<secret {name}>")
        return text


def _plain(text: str) -> str:
    """Make a text valid UTF-8 without NUL, and bound it."""
    return bounded(well_formed(text), LONGEST)


def bounded(text: str, longest: int) -> str:
    """Return the head and the tail of a text that has more than `longest` characters."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
