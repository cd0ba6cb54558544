"""Whether a fix is in the text, where the fix itself names old and new text."""

from __future__ import annotations

import re

_EDIT = re.compile(
    r"(?:replace|change)\s+(?P<o>`{1,3})(?P<old>.+?)(?P=o)\s+(?:with|by|to|into)\s+"
    r"(?P<n>`{1,3})(?P<new>.+?)(?P=n)",
    re.IGNORECASE | re.DOTALL,
)

_LANGUAGE = re.compile(r"^(?:python|py)\s*\n")


def edits(fix: str) -> tuple[tuple[str, str], ...]:
    """Return the (old, new) pairs that a fix names: "replace `a < b` with `a <= b`"."""
    return tuple((_text(match["old"]), _text(match["new"])) for match in _EDIT.finditer(fix))


def _text(quoted: str) -> str:
    """Leave out the name of a language on the first line of a fenced block."""
    return _LANGUAGE.sub("", quoted).strip()


def is_applied(fix: str, before: str, after: str) -> bool | None:
    """True or False where the text of `fix` decides it, None where it names no old and new text.

    A named edit is in if the new text stands in `after` more often than in `before`, or the old one
    less often while the new one is there. An old text that was never there decides nothing. White
    space does not count.
    """
    verdicts = [
        _replaced(_bare(old), _bare(new), _bare(before), _bare(after)) for old, new in edits(fix)
    ]
    if False in verdicts:
        return False
    return True if verdicts and None not in verdicts else None


def _replaced(old: str, new: str, before: str, after: str) -> bool | None:
    if after.count(new) > before.count(new):
        return True
    if old not in before:
        return None
    return new in after and after.count(old) < before.count(old)


def _bare(text: str) -> str:
    return "".join(text.split())
