"""Libraries hidden from another library that would import them only because they are there."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def hidden(*names: str) -> Iterator[None]:
    """Let imports of `names` fail for a while, in this thread only; one that is loaded stays seen."""
    finder = _Hiding(frozenset(names), threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Hiding:
    """A finder that says there is no such module; a finder is asked before any file is looked at."""

    def __init__(self, names: frozenset[str], thread: int) -> None:
        self._names, self._thread = names, thread

    def find_spec(self, name: str, *_: object) -> None:
        """Raise ModuleNotFoundError for a hidden module; leave others to the next finder."""
        if name in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is hidden", name=name)


def load_store_library() -> None:
    """Import sqlite-utils without pandas and numpy, which it brings along: they take half a second.

    Only for a process of our own: elsewhere sqlite-utils has to know the types of both.
    """
    with hidden("pandas", "numpy"):
        import_module("sqlite_utils")
