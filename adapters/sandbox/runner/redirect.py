"""Puts another file in the place of the solution, in one process and in programs that it starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

Word = Any  # str, bytes or a path


def escape(other: str) -> str:
    """Return the path of a file that is there if a Python was started that may not find `other`."""
    return f"{other}.escape"


def redirect(solution: str, other: str) -> None:
    """Have imports, and programs that are started, find `other` where the solution is named."""
    import _io
    import _posixsubprocess
    import io
    import subprocess

    read = _io.open_code

    def open_code(path: str) -> Any:
        return read(other if path == solution else path)

    _io.open_code = io.open_code = open_code
    replaced = _replacing(solution, other)
    fork_exec, posix_spawn, system = _posixsubprocess.fork_exec, os.posix_spawn, os.system
    _posixsubprocess.fork_exec = lambda words, *rest: fork_exec(replaced(words), *rest)
    for name in ("_fork_exec",):  # a name of its own since Python 3.11
        if hasattr(subprocess, name):
            setattr(subprocess, name, _posixsubprocess.fork_exec)
    os.posix_spawn = lambda path, words, *rest, **named: posix_spawn(
        path, replaced(words), *rest, **named
    )
    os.system = lambda command: system(replaced([command])[0])


def _replacing(solution: str, other: str) -> Callable[[Sequence[Word]], list[bytes]]:
    """Return what puts `other` into a command line."""
    import re  # here, for the parent has no use for it

    folder, name = os.path.split(os.fsencode(solution))
    module = name.rpartition(b".")[0]
    place = rb"(?:%s/|\./)?%s" % (re.escape(folder), re.escape(name))
    named = re.compile(rb"(?<![\w./-])(?:%s|-m\s+%s)(?![\w./])" % (place, module))
    there = os.fsencode(other)

    def replaced(words: Sequence[Word]) -> list[bytes]:
        given = [os.fsencode(word) for word in words]
        changed = [named.sub(lambda _: there, word) for word in given]
        for at in range(len(changed) - 1):
            if changed[at : at + 2] == [b"-m", module]:
                changed[at : at + 2] = [there, b""]
        if changed == given and _is_python(given):
            open(escape(other), "w").close()
        return [word for word in changed if word or word in given]

    return replaced


def _is_python(words: list[bytes]) -> bool:
    """Say whether a command line starts a Python, which could import the solution itself."""
    return any(b"python" in word.lower() for word in words[:3]) or (
        bool(words) and words[0] == os.fsencode(sys.executable)
    )
