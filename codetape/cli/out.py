"""Output that no screen lays out, such as JSON and help. Nothing else prints, so all is escaped."""

from __future__ import annotations

import json
import sys

from codetape.engine.visible import escaped


def put(text: str = "", *, error: bool = False, end: str = "\n") -> None:
    """Print a text on stdout, or on stderr."""
    print(escaped(text), end=end, file=sys.stderr if error else sys.stdout, flush=True)


def in_json(facts: object) -> str:
    """Return facts as JSON that a terminal can show: it holds visible ASCII, blanks and newlines."""
    return json.dumps(facts, indent=2).replace("\x7f", "\\u007f")
