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

from codetape.states.texts import DEEPEST, well_formed
from codetape.states.values import Answer, Value

LONGEST = 1 << 20
"""Characters that are kept of one text: the head and the tail of a longer one."""

SLACK = 100
"""Characters by which a text may be longer before it is cut: the remark on a cut needs some."""

SHORTEST_SECRET = 8
"""A secret of fewer characters is replaced only where it stands as a word of its own."""

ROUNDS = 20
"""A remark on a cut, or the rest of a mask that was cut, may hold a secret once more."""

V = TypeVar("V", bound=Value)

_SUSPECT = re.compile(r"\\u|NaN|Infinity")
"""What JSON has in it where a text holds a control character or a number is not finite."""


class Boundary:
    """Cleans values. `secrets` maps the name of each secret to its value."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        known = (secrets or {}).items()
        looked_for = sorted((name, value) for name, value in known if not is_common(value))
        texts = [(name, text) for name, value in looked_for for text in (well_formed(value), value)]
        forms = {form: name for name, text in texts for form in (_as_json(text), text)}
        self._masks = {form: f"<secret {name}>" for form, name in forms.items()}
        self._as_json = [_as_json(form) for form in forms]
        self._pattern = _pattern(self._masks)

    def clean(self, value: V) -> V:
        """Return `value` as it may be stored; an answer that had to be changed keeps its original."""
        if self._is_plainly_clean(value):
            return value
        cleaned: V = self._cleaned(value)
        if isinstance(value, Answer) and value.text is not None:
            redacted = self._redacted(value.text)
            if _plain(redacted) != redacted:
                return cleaned.model_copy(update={"raw": self._original(redacted)})
        return cleaned

    def _original(self, text: str) -> str | None:
        """Return a text as a JSON string; None if it holds a secret in that form, or once repaired."""
        raw = json.dumps(bounded(text, LONGEST // 8))  # an escape has up to six characters
        hidden = self._redacted(well_formed(text)) != well_formed(text)
        return None if hidden or self.text(raw) != raw else raw

    def _is_plainly_clean(self, value: Value) -> bool:
        """Tell cheaply, for nearly all values, that there is nothing to do; False means: look."""
        try:
            text = value.model_dump_json()
        except ValueError:
            return False
        if (
            len(text) > LONGEST
            or text.count("[") + text.count("{") > DEEPEST
            or not text.isascii()
            or _SUSPECT.search(text)
        ):
            return False
        return not any(secret in text for secret in self._as_json)

    def text(self, text: str) -> str:
        """Return a text as it may be stored. What was returned once comes back as it is."""
        for _ in range(ROUNDS):
            before, text = text, _plain(self._redacted(well_formed(text)))
            if text == before:
                break
        return text

    def _cleaned(self, value: Any, depth: int = 0) -> Any:
        if depth > DEEPEST and isinstance(value, Value | dict | list | tuple):
            return "[left out: nested too deep]"
        if isinstance(value, Value):
            return self._cleaned_fields(value, depth + 1)
        if type(value) is str:  # not an enum, whose values are ours
            return self.text(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {self._cleaned(k): self._cleaned(item, depth + 1) for k, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._cleaned(item, depth + 1) for item in value)
        return value

    def _cleaned_fields(self, value: Value, depth: int) -> Value:
        """Clean the fields of a value, but not those that can only hold words of ours."""
        fields = type(value).model_fields.items()
        free = [name for name, info in fields if get_origin(info.annotation) is not Literal]
        return value.model_copy(update={n: self._cleaned(getattr(value, n), depth) for n in free})

    def _redacted(self, text: str) -> str:
        """Put masks in the place of secrets, and leave the masks that are there as they are."""
        if not self._masks:
            return text
        before = ""
        while text != before:  # what was no word beside a secret may be one beside its mask
            before, text = text, self._pattern.sub(self._mask, text)
        return text

    def _mask(self, found: re.Match[str]) -> str:
        return self._masks.get(found[0], found[0])


def is_common(value: str) -> bool:
    """Say whether a value is no secret but a word, such as `test`: masking it would ruin texts."""
    word = value.isascii() and value.isalpha()
    return len(value) < 4 or (len(value) < SHORTEST_SECRET and word)


def _as_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _pattern(masks: Mapping[str, str]) -> re.Pattern[str]:
    """Match masks first, then secrets, the longest first: one that starts with another goes whole."""
    forms = sorted(masks, key=lambda form: (-len(form), form))
    secrets = [
        re.escape(form) if len(form) >= SHORTEST_SECRET else rf"(?<!\w){re.escape(form)}(?!\w)"
        for form in forms
    ]
    return re.compile("|".join([*map(re.escape, sorted(set(masks.values()))), *secrets]))


def _plain(text: str) -> str:
    """Make a text valid UTF-8 without NUL, and bound it."""
    text = well_formed(text)
    return text if len(text) <= LONGEST + SLACK else bounded(text, LONGEST)


def bounded(text: str, longest: int) -> str:
    """Return the head and the tail of a text that has more than `longest` characters."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
