"""What agents and results look like in a notebook. Whatever a model wrote is escaped."""

from __future__ import annotations

from collections.abc import Mapping

from codetape.engine.visible import in_html

LONGEST = 20_000
"""Characters of a text that are shown."""


def table(title: str, facts: Mapping[str, object]) -> str:
    """Return facts as a small HTML table."""
    rows = "".join(
        f'<tr><th style="text-align:left">{_text(name)}</th>'
        f'<td style="text-align:left">{_text(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<p><b>{_text(title)}</b></p><table>{rows}</table>"


def folded(title: str, text: str | None) -> str:
    """Return a text that one can open; nothing for no text."""
    if not text:
        return ""
    body = f"<pre>{_text(text)}</pre>"
    return f"<details><summary>{_text(title)}</summary>{body}</details>"


def _text(text: str) -> str:
    """Neither markup nor a mark that hides or reorders what stands there is left."""
    return in_html(text, LONGEST)
