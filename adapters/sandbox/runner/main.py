"""The processes of the runner: one keeps the report, the other one imports what is tested.

Where null solutions or the script are to follow the tests, the first one has them run when the tests
have ended well.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time

from codetape.adapters.sandbox.runner import children, plugin
from codetape.adapters.sandbox.runner.reporting import mark, write_line
from codetape.adapters.sandbox.runner.spare import DONE, NONE_PASSED, UNKNOWN, Spare

PR_SET_DUMPABLE = 4
KEYCTL = {"x86_64": 250, "ppc64le": 271, "s390x": 280}  # numbers of the call; 219 elsewhere
JOIN_SESSION_KEYRING = 1
LEAST = 1.0  # seconds that the tests get against a null solution,
TIMES = 3.0  # and so many times what they took against the solution itself
# Taken before anything foreign is imported: replacing it later changes nothing here.
_exit = os._exit


def main() -> None:
    """Read the arguments, split into parent and child, and never return."""
    options = _options()
    where = _open(options.report)
    _leave_keys()
    if options.script or options.nulls:
        children.adopt()
    spare = Spare(options.nulls) if options.nulls else None
    child, told = _start(options, where, spare)
    nonce = _nonce(options.nonce)
    _close_up()
    _begin(where, nonce)
    _release(told, nonce)
    ended = children.wait(child, options.seconds)
    os.write(where, b"\n")  # the child may have ended in the middle of a line
    write_line(where, {"nonce": nonce, "kind": "exit", **ended.facts()})
    if spare and ended.status == 0:
        _empty_solutions(options, spare, where, nonce, ended.seconds)
    if options.script and ended.status == 0:
        _follow(options, where, nonce)
    _exit(ended.status if ended.status is not None else 128 + (ended.signal or 0))


def _begin(where: int, nonce: str) -> None:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    write_line(where, {"nonce": nonce, "seq": 1, "kind": "begin", "python": python})


def _start(options: argparse.Namespace, where: int, spare: Spare | None = None) -> tuple[int, int]:
    """Start the child, which waits; return its number and the pipe through which it is released."""
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        if spare:
            spare.to_child()
        _become(options, where, heard, spare)
    os.close(heard)
    if spare:
        spare.to_parent()
    return child, told


def _release(told: int, nonce: str) -> None:
    """Let the child begin, with its half of the nonce."""
    os.write(told, nonce[: len(nonce) // 2].encode())
    os.close(told)


def _empty_solutions(
    options: argparse.Namespace, spare: Spare, where: int, nonce: str, taken: float
) -> None:
    """Run the tests against the null solutions, each as if nothing had been there before.

    Where no test passes against one, the others would tell nothing new.
    """
    rest = options.seconds
    answer = DONE if spare.ready() else UNKNOWN
    for kind in options.nulls:
        children.end_all(but=spare.number)
        write_line(where, {"nonce": nonce, "kind": "null", "solution": kind})
        if answer == DONE and all(children.emptied(folder) for folder in options.empty):
            _begin(where, nonce)
            began = time.monotonic()
            answer = spare.run(kind, min(rest, LEAST + TIMES * taken))
            rest = max(0.0, rest - (time.monotonic() - began))
            os.write(where, b"\n")
        write_line(where, {"nonce": nonce, "kind": "null end", "known": answer != UNKNOWN})
        if answer == NONE_PASSED:
            break
    children.end_all()


def _follow(options: argparse.Namespace, where: int, nonce: str) -> None:
    """Run the script where the tests have run, as if nothing had been there before.

    Its words come after a mark, so that the host can tell them from those of the tests.
    """
    write_line(where, {"nonce": nonce, "kind": "script"})
    children.end_all()
    ended = children.Ended()
    if all(children.emptied(folder) for folder in options.empty):
        for stream in (1, 2):
            with contextlib.suppress(OSError):
                os.write(stream, mark(nonce).encode())
        options.purpose = "script"
        child, told = _start(options, where)
        _release(told, nonce)
        ended = children.wait(child, options.seconds)
    write_line(where, {"nonce": nonce, "kind": "script end", **ended.facts()})


def _options() -> argparse.Namespace:
    """Read the arguments; what follows the first `--` belongs to the solution, whatever it says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("purpose", choices=("tests", "script"))
    parser.add_argument("--report", required=True)
    parser.add_argument("--nonce", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--inputs", default="/var/inputs")
    parser.add_argument("--cwd", default=".")
    parser.add_argument("--limit", action="append", default=[])
    parser.add_argument("--script", action="store_true")
    parser.add_argument("--null", action="append", default=[], dest="nulls")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--empty", action="append", default=[])
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end])
    options.arguments = given[end + 1 :]
    return options


def _open(where: str) -> int:
    """Return the descriptor of the report. Programs that the solution starts do not inherit it."""
    if where.startswith("fd:"):
        descriptor = int(where[3:])
    else:
        descriptor = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    os.set_inheritable(descriptor, False)
    return descriptor


def _nonce(given: str) -> str:
    return os.read(0, 1000).decode().strip() if given == "-" else given


def _close_up() -> None:
    """Close this process to others of the same user: ptrace, and most of /proc.

    Where there is no ctypes it stays open; the sandbox around it holds all the same.
    """
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _leave_keys() -> None:
    """Take an empty session keyring: no namespace hides that of whoever started us from the code.

    A container has one already, and may refuse another one.
    """
    with contextlib.suppress(Exception):
        import ctypes

        number = KEYCTL.get(os.uname().machine, 219)
        ctypes.CDLL(None).syscall(number, JOIN_SESSION_KEYRING, None)


def _become(
    options: argparse.Namespace, where: int, heard: int, spare: Spare | None = None
) -> None:
    """Wait until the parent is ready, then run the tests or become the solution. Never returns."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.setsid()
    _hear()
    token = os.read(heard, 1000).decode()
    os.close(heard)
    if not token:  # the parent is gone
        _exit(1)
    _limit(options.limit)
    os.chdir(options.cwd)
    if options.purpose == "script":
        os.close(where)
        _script(options.python, options.inputs, options.arguments)
    if spare:
        spare.load()
    _forget()
    _enter(options.python)
    plugin.run(where, token, os.path.abspath(options.inputs), spare)


def _hear() -> None:
    """Have Ctrl-C mean what it means to Python, also where whoever started us ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _limit(limits: list[str]) -> None:
    """Set resource limits of the child, each "NAME=N" with a name of RLIMIT_*; lower ones stay."""
    import resource

    for limit in limits:
        name, _, number = limit.partition("=")
        kind = getattr(resource, "RLIMIT_" + name.upper())
        _, hard = resource.getrlimit(kind)
        value = int(number) if hard == resource.RLIM_INFINITY else min(int(number), hard)
        resource.setrlimit(kind, (value, value))


def _script(python: str, inputs: str, arguments: list[str]) -> None:
    """Become the solution, in a fresh interpreter. Never returns."""
    solution = os.path.join(inputs, "solution.py")
    os.execv(python, [python, "-B", solution, *arguments])  # noqa: S606


def _enter(python: str) -> None:
    """Make this process one of the environment's Python, as if it had been started by that name.

    Code of packages runs here for the first time: the trusted parent is another process.
    """
    sys.executable = python
    folder = os.path.dirname(os.path.dirname(python))
    if os.path.exists(os.path.join(folder, "pyvenv.cfg")):
        sys.prefix = sys.exec_prefix = folder
    import site

    site.main()


def _forget() -> None:
    """Take the runner from where modules are found: tested code imports none of it by name."""
    place = sys.path.pop(0)
    sys.path_importer_cache.pop(place, None)
    root = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == root]:
        del sys.modules[name]
    vars(sys.modules["__main__"]).pop("main", None)
    sys.argv = [""]
    sys.orig_argv[:] = []
