"""How far a long work has come, on stderr, where a person looks at it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def progress(items: Sequence[T], doing: str) -> Iterator[T]:
    """Yield `items`; in a terminal say how many are done. Nothing of it stays on the screen."""
    shown = sys.stderr.isatty() and len(items) > 1
    try:
        for number, item in enumerate(items):
            if shown:
                print(f"\r{doing}: {number:,} of {len(items):,}", end="", file=sys.stderr)
            yield item
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
