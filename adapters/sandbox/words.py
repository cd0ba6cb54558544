"""Arguments and variables that go into a run: what no kernel hands to a program is refused here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codetape.engine.ports import SandboxBroken
from codetape.states.values import SandboxFailure

LONGEST = (128 << 10) - 1  # bytes of one word: the kernel's own limit
MOST = 1 << 20  # bytes of all of them: half of what the kernel takes with the usual stack


def check(arguments: Iterable[str], variables: Mapping[str, str]) -> None:
    """Raises SandboxBroken for words that no program can be given."""
    left = MOST
    for word in arguments:
        left -= _size("an argument", word)
    for name, value in variables.items():
        if not name or "=" in name:
            raise _refused(f"the variable {name!r}", "it is no name of a variable")
        left -= _size(f"the variable {name!r}", f"{name}={value}")
    if left < 0:
        raise _refused("what is handed over", f"it is longer than {MOST} bytes; use a file")


def _size(what: str, word: str) -> int:
    """Return the bytes of a word, with its end and the pointer to it. Raises SandboxBroken."""
    try:
        size = len(word.encode())
    except UnicodeEncodeError as error:
        raise _refused(what, "it is no text") from error
    if "\0" in word:
        raise _refused(what, "it has a NUL character")
    if size > LONGEST:
        raise _refused(what, f"it is longer than {LONGEST} bytes; use a file")
    return size + 9


def _refused(what: str, why: str) -> SandboxBroken:
    return SandboxBroken(SandboxFailure(message=f"{what} cannot be given to the code: {why}"))
