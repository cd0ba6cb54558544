"""Whether a fix is in the text, where the fix itself names old and new text."""

from __future__ import annotations

import re

_EDIT = re.compile(
    r"(?:replace|change)\s+(?P<o>`{1,3})(?P<old>.+?)(?P=o)\s+(?:with|by|to|into)\s+"
    r"(?P<n>`{1,3})(?P<new>.+?)(?P=n)",
    re.IGNORECASE | re.DOTALL,
)


def edits(fix: str) -> tuple[tuple[str, str], ...]:
    """Return the (old, new) pairs that a fix names: "replace `a < b` with `a <= b`"."""
    return tuple((match["old"].strip(), match["new"].strip()) for match in _EDIT.finditer(fix))


def is_applied(fix: str, before: str, after: str) -> bool | None:
    """True or False where the text of `fix` decides it, None where it names no old and new text.

    A named edit is in if the new text stands in `after` more often than in `before`, or the old one
    less often while the new one is there. White space is folded.
    """
    pairs = edits(fix)
    if not pairs or not after:
        return None
    return all(_replaced(old, new, _folded(before), _folded(after)) for old, new in pairs)


def _replaced(old: str, new: str, before: str, after: str) -> bool:
    old, new = _folded(old), _folded(new)
    if new not in after:
        return False
    gone = after.count(old) < before.count(old)
    return gone or after.count(new) > before.count(new)


def _folded(text: str) -> str:
    return " ".join(text.split())
