"""What runs inside a sandbox: pytest with a structured report, or the solution as a script.

Handed over as one file, `archive()`, and started by `start(where it lies)`, with these arguments:

    tests  --report WHERE --nonce N --python P --inputs DIR [--cwd DIR] [--limit NAME=N]…
           [--null KIND]… [--script] [--seconds S] [--empty DIR]… [-- ARGUMENT…]
    script --report WHERE --nonce N --python P --inputs DIR [--cwd DIR] [--limit NAME=N]… -- ARGUMENT…

With --null tests that end well are run again against a null solution of each kind, up to the first
against which none passes; with --script they are followed by the script. Before each of these runs
the processes that are left are ended, and each DIR is emptied. Before the script both streams get the
nonce on a line of its own: the words of the tests are before it and those of the script after it.
Tests, null solutions and script have S seconds each.

P is the Python of the environment; the runner itself is started by the interpreter behind it.

The other modules are self-contained (standard library and pytest, Python 3.9 and later).

WHERE is the path of a file that must not exist yet, or `fd:N` for an inherited descriptor (a socket
is best: who writes to a pipe can open it again and take back what was written). The nonce `-` is read
from standard input. The report is JSON lines, one fact each; report.py says what is made of them:

    {"nonce", "seq", "kind": "begin", "python"}      by the parent
    {"nonce", "seq", "kind": "collected", "ids", "lines"}   in parts; ids without the file name
    {"nonce", "seq", "kind": "warning", "message"}   a class that pytest left out
    {"nonce", "seq", "kind": "error", "problem"}     what kept pytest from finding tests
    {"nonce", "seq", "kind": "start", "id"}
    {"nonce", "seq", "kind": "result", "id", "outcome", "phase", "problem", "captured"}
    {"nonce", "seq", "kind": "witness", "id", …}     as a result, of a test of ours that must fail
    {"nonce", "seq", "kind": "end"}                  the end marker
    {"nonce", "kind": "exit", "status", "signal", "peak_memory", "late", "milliseconds"}
                                                     by the parent, when the child has ended
    {"nonce", "kind": "null", "solution"}            by the parent: a report of its own follows,
                                                     from "begin" to "end"
    {"nonce", "kind": "null end", "known"}           by the parent: whether it says anything
    {"nonce", "kind": "script"}                      by the parent: the script is to follow
    {"nonce", "kind": "script end", …}               as exit, of the script

Two processes: the parent, in which no code of a package runs, keeps the report and says how the
child ended, which neither a shell nor a container runtime can tell from an exit status of 128 + n.
The child, in a session of its own, imports what is tested and leaves by os._exit, so that threads
and atexit hooks do not outlive the end marker. The child only ever has the
first half of the nonce, and the parent is closed to it: what the parent says cannot be forged from
inside. What tested code and packages can still do: they share a process with pytest, and can forge
results.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from functools import cache
from importlib import resources

from codetape.states.null_solutions import KINDS
from codetape.states.values import RunSpec

FILE = "runner.zip"
"""The name under which the archive is handed over; only the ending means something to Python."""

MARGIN = 5.0
"""Seconds that the runner gets to end the tests or the script itself, and to tell."""

MODULES = (
    "children",
    "main",
    "pins",
    "plugin",
    "problems",
    "redirect",
    "reporting",
    "skips",
    "spare",
    "streams",
    "witness",
)
RULES = ("null_solutions",)
"""Rules that run in a sandbox, too."""

_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def start(where: str) -> tuple[str, ...]:
    """Return what follows the name of an interpreter so that it runs the archive at `where`.

    Without the environment's packages: each of them can have code that runs when a Python starts.
    Not as a script: `__main__` stays empty, for code that looks there and for multiprocessing.
    """
    code = f"import sys; sys.path.insert(0, {where!r}); from {__name__}.main import main; main()"
    return ("-I", "-S", "-c", code)


def then(spec: RunSpec, places: Iterable[str]) -> tuple[str, ...]:
    """Return the options for what follows the tests; `places` are emptied before each."""
    follow = [f"--null={kind}" for kind in KINDS if spec.nulls]
    follow += ["--script"] if spec.script else []
    if not follow:
        return ()
    each = f"--seconds={spec.limits.seconds}"
    return (*follow, each, *(f"--empty={place}" for place in places))


def longest(spec: RunSpec) -> float:
    """Return the seconds after which a sandbox ends all that runs; the runner ends each part."""
    return spec.seconds + (MARGIN if spec.script or spec.nulls else 0.0)


def token(nonce: str) -> str:
    """Return the half of the nonce that the process of the tests knows."""
    return nonce[: len(nonce) // 2]


@cache
def archive() -> bytes:
    """Return the modules in one file that Python can import from; equal bytes every time."""
    way = __name__.split(".")
    packages = ["/".join(way[:end]) for end in range(1, len(way) + 1)]
    bodies = {f"{package}/__init__.py": b"" for package in packages}
    for name in MODULES:
        body = resources.files(__name__).joinpath(f"{name}.py").read_bytes()
        bodies[f"{packages[-1]}/{name}.py"] = body
    bodies[f"{way[0]}/states/__init__.py"] = b""
    for name in RULES:
        body = resources.files(f"{way[0]}.states").joinpath(f"{name}.py").read_bytes()
        bodies[f"{way[0]}/states/{name}.py"] = body
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as file:
        for name, body in bodies.items():
            file.writestr(zipfile.ZipInfo(name, _LONG_AGO), body)
    return whole.getvalue()
