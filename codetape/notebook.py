"""What agents and results look like in a notebook. Whatever a model wrote is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

LONGEST = 20_000
"""Characters of a text that are shown."""


def table(title: str, facts: Mapping[str, object]) -> str:
    """Return facts as a small HTML table."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<p><b>{escape(title)}</b></p><table>{rows}</table>"


def folded(title: str, text: str | None) -> str:
    """Return a text that one can open; nothing for no text."""
    if not text:
        return ""
    body = f"<pre>{escape(text[:LONGEST])}</pre>"
    return f"<details><summary>{escape(title)}</summary>{body}</details>"
