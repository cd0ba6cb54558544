"""What runs inside a sandbox: pytest with a structured report, or the solution as a script.

Self-contained (standard library and pytest, Python 3.9 and later): adapters hand over this file.

    python -I runner.py tests  --report WHERE --nonce N --inputs DIR [--cwd DIR] [--limit NAME=N]…
    python -I runner.py script --report WHERE --nonce N --inputs DIR [--cwd DIR] [--limit NAME=N]…
                               -- ARGUMENT…

WHERE is the path of a file that must not exist yet, or `fd:N` for an inherited descriptor (a pipe
is best: what was written cannot be taken back). The nonce `-` is read from standard input. The
report is JSON lines, one fact each; report.py says what the host makes of them:

    {"nonce", "seq", "kind": "begin", "python"}
    {"nonce", "seq", "kind": "collected", "ids"}     in parts; ids are what follows the file name
    {"nonce", "seq", "kind": "error", "problem"}     what kept pytest from finding tests
    {"nonce", "seq", "kind": "start", "id"}
    {"nonce", "seq", "kind": "result", "id", "outcome", "phase", "problem", "captured"}
    {"nonce", "seq", "kind": "end"}                  the end marker
    {"nonce", "kind": "exit", "status", "signal", "peak_memory"}    by the parent, at the very end

Two processes: the parent keeps the report and says how the child ended, which neither a shell nor
a container runtime can tell from an exit status of 128 + n. The child, in a session of its own,
imports what is tested and leaves by os._exit, so that threads and atexit hooks do not outlive the
end marker. What tested code can still do: it shares the process with pytest and can forge results.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
from collections.abc import Generator
from typing import Any

# Taken before anything foreign is imported: replacing os.write later changes nothing here.
_write, _exit, _getpid = os.write, os._exit, os.getpid

TEXT = 8_000  # characters kept of a message or of one test's output: half head, half tail
FRAMES = 40  # frames kept of a traceback: the outermost and the innermost half
IDS = 200  # ids in one line of the report
SILENT = ("pytest", "_pytest", "pluggy")  # packages whose frames are machinery, not evidence


def main() -> None:
    """Read the arguments, split into parent and child, and never return."""
    options = _options()
    where = _open(options.report)
    nonce = _nonce(options.nonce)
    report = Report(where, nonce)
    report.write("begin", python=f"{sys.version_info.major}.{sys.version_info.minor}")
    child = os.fork()
    if child == 0:
        os.setsid()
        _limit(options.limit)
        os.chdir(options.cwd)
        if options.purpose == "script":
            os.close(where)
            _script(options.inputs, options.arguments)
        report.adopt()
        _tests(report, os.path.abspath(options.inputs))
    _exit(_watch(child, where, nonce))


def _options() -> argparse.Namespace:
    """Read the arguments; what follows the first `--` belongs to the solution, whatever it says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("purpose", choices=("tests", "script"))
    parser.add_argument("--report", required=True)
    parser.add_argument("--nonce", required=True)
    parser.add_argument("--inputs", default="/var/inputs")
    parser.add_argument("--cwd", default=".")
    parser.add_argument("--limit", action="append", default=[])
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
    """Return the nonce; from here on standard input is at its end."""
    nonce = os.read(0, 1000).decode().strip() if given == "-" else given
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return nonce


def _limit(limits: list[str]) -> None:
    """Set resource limits of the child, each "NAME=N" with a name of RLIMIT_*; lower ones stay."""
    import resource

    for limit in limits:
        name, _, number = limit.partition("=")
        kind = getattr(resource, "RLIMIT_" + name.upper())
        _, hard = resource.getrlimit(kind)
        value = int(number) if hard == resource.RLIM_INFINITY else min(int(number), hard)
        resource.setrlimit(kind, (value, value))


def _watch(child: int, where: int, nonce: str) -> int:
    """Wait for the child, write how it ended, and return the exit status to leave with."""
    _, status, usage = os.wait4(child, 0)
    signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if signal is None else None
    peak = usage.ru_maxrss * 1024
    line = {"nonce": nonce, "kind": "exit", "status": code, "signal": signal, "peak_memory": peak}
    _write_all(where, b"\n" + json.dumps(line).encode() + b"\n")
    return code if code is not None else 128 + (signal or 0)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[_write(descriptor, data) :]


def _script(inputs: str, arguments: list[str]) -> None:
    """Become the solution, in a fresh interpreter. Never returns."""
    solution = os.path.join(inputs, "solution.py")
    os.execv(sys.executable, [sys.executable, "-B", solution, *arguments])  # noqa: S606


class Report:
    """Writes facts, in order, from one process: a child that a test forks stays silent."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        self._descriptor = descriptor
        self._nonce = nonce
        self._owner = _getpid()
        self._seq = 0

    def adopt(self) -> None:
        """Go on writing from this process, a child of the one that began."""
        self._owner = _getpid()

    def write(self, kind: str, **facts: object) -> None:
        """Append one line."""
        if _getpid() != self._owner:
            return
        self._seq += 1
        line = {"nonce": self._nonce, "seq": self._seq, "kind": kind, **facts}
        _write_all(self._descriptor, json.dumps(line).encode() + b"\n")


def _tests(report: Report, inputs: str) -> None:
    """Run pytest on test_solution.py, write the end marker and leave. Never returns."""
    places = Places(inputs)
    status = 1
    try:
        status = _pytest(report, places)
    except BaseException as error:  # noqa: BLE001 - whatever ended pytest is a fact to report
        report.write("error", problem=describe(error, places))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the code may have closed or replaced it
            stream.flush()
    report.write("end")
    _exit(status)


def _pytest(report: Report, places: Places) -> int:
    """Run pytest in this process without foreign configuration, conftest files and plugins."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ.pop("PYTEST_PLUGINS", None)
    sys.dont_write_bytecode = True
    import pytest

    # pytest's own words go nowhere: nobody reads them, and code that closes stdout would break it.
    streams = _tees()
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - stays open as long as pytest
    sys.path.insert(0, places.inputs)
    sys.argv = ["pytest"]
    options = ["-c", os.devnull, "--rootdir", places.inputs, "--noconftest", "--color=no", "-s"]
    options += ["-p", "no:cacheprovider", "--tb=line"]
    _decorate(pytest)
    plugin = Plugin(pytest, report, places, streams)
    status = int(pytest.main([*options, places.tests], [plugin]))
    if status in (3, 4) and not plugin.errors:  # an internal error or a usage error, told to nobody
        plugin.error({"type": "UsageError", "message": "pytest could not start on the test file"})
    return status


class Places:
    """Tells whose code a file is: "solution", "tests", "installed" or "other"."""

    def __init__(self, inputs: str) -> None:
        import sysconfig

        self.inputs = inputs
        self._solution = os.path.join(inputs, "solution.py")
        self.tests = os.path.join(inputs, "test_solution.py")
        paths = sysconfig.get_paths()
        self._installed = {os.path.join(paths[name], "") for name in ("purelib", "platlib")}
        self._stdlib = {os.path.join(paths[name], "") for name in ("stdlib", "platstdlib")}

    def of(self, file: str) -> tuple[str, str]:
        """Return the place of `file` and its shortest clear name."""
        if file in (self._solution, self.tests):
            return ("solution" if file == self._solution else "tests"), os.path.basename(file)
        for place, folders in (("installed", self._installed), ("other", self._stdlib)):
            for folder in folders:
                if file.startswith(folder):
                    return place, file[len(folder) :]
        return "other", file


def describe(error: BaseException, places: Places) -> dict[str, object]:
    """Return the facts of an exception: type, message, frames and the module that was missing."""
    kind = type(error)
    module = kind.__module__
    hidden = module == "builtins" or module.split(".")[0] in (*SILENT, "__main__")
    name = kind.__qualname__ if hidden else f"{module}.{kind.__qualname__}"
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 - a __str__ of the solution may do anything
        message = "(the exception has no readable message)"
    missing = error.name if isinstance(error, ImportError) else None
    return {
        "type": bounded(name, 200),
        "message": bounded(message),
        "frames": _frames(error, places),
        "module": bounded(missing, 200) if isinstance(missing, str) else None,
    }


def _frames(error: BaseException, places: Places) -> list[dict[str, object]]:
    """Return the frames from the first one in tests or solution on, without pytest's own."""
    frames = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        frames.append(_frame(code.co_filename, step.tb_lineno, code.co_name, places))
        step = step.tb_next
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frames.append(_frame(str(error.filename), error.lineno, "<module>", places))
    ours = [index for index, frame in enumerate(frames) if frame["place"] in ("tests", "solution")]
    kept = [frame for frame in frames[ours[0] if ours else 0 :] if not _silent(str(frame["file"]))]
    return kept if len(kept) <= FRAMES else kept[: FRAMES // 2] + kept[-FRAMES // 2 :]


def _frame(file: str, line: int, function: str, places: Places) -> dict[str, object]:
    place, name = places.of(file)
    return {
        "place": place,
        "file": bounded(name, 300),
        "line": line,
        "function": bounded(function, 200),
    }


def _silent(file: str) -> bool:
    first = file.replace("\\", "/").split("/")[0]
    return first in SILENT or file.startswith("<frozen") or file == __file__


def bounded(text: str, size: int = TEXT) -> str:
    """Return `text` without lone surrogates: whole, or its head and tail and how much was cut."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= size:
        return text
    half = size // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters cut]\n{text[-half:]}"


class Recorder:
    """Keeps the head and the tail of what was printed, at the same cost however much it was."""

    def __init__(self) -> None:
        self._head, self._tail, self._cut = "", "", 0

    def add(self, text: str) -> None:
        """Append `text`."""
        half = TEXT // 2
        room = half - len(self._head)
        self._head, rest = self._head + text[:room], text[room:]
        tail = self._tail + rest[-half:]
        self._cut += len(rest) - len(rest[-half:]) + max(0, len(tail) - half)
        self._tail = tail[-half:]

    def take(self) -> str:
        """Return what was kept and start anew."""
        middle = f"\n[{self._cut} characters cut]\n" if self._cut else ""
        text = self._head + middle + self._tail
        self._head, self._tail, self._cut = "", "", 0
        return text


class Tee(io.TextIOWrapper):
    """Standard output or error: writes through at once, and lets the recorder hear it."""

    def __init__(self, descriptor: int, recorder: Recorder) -> None:
        raw = io.FileIO(descriptor, "w", closefd=False)
        super().__init__(io.BufferedWriter(raw), "utf-8", "backslashreplace", write_through=True)
        self._recorder = recorder

    def write(self, text: str) -> int:
        """Write `text` to the stream."""
        self._recorder.add(text)
        written = super().write(text)
        self.flush()
        return written


def _tees() -> tuple[Tee, Tee, Recorder]:
    recorder = Recorder()
    return Tee(1, recorder), Tee(2, recorder), recorder


class Plugin:
    """Turns what pytest does into facts. Hooks marked by `_decorate` are wrappers."""

    def __init__(
        self, pytest: Any, report: Report, places: Places, streams: tuple[Tee, Tee, Recorder]
    ) -> None:
        self._pytest = pytest
        self._report = report
        self._places = places
        self._out, self._err, self._recorder = streams
        self._test: dict[str, Any] = {}
        self.errors = 0

    def error(self, problem: dict[str, object]) -> None:
        """Write what kept pytest from finding or running tests."""
        self.errors += 1
        self._report.write("error", problem=problem)

    def pytest_sessionstart(self) -> None:
        """Give the code its streams; pytest's terminal holds on to the one it found before."""
        sys.stdout, sys.stderr = self._out, self._err

    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        """Turn an exit at import, which would end pytest, into an error of collection."""
        try:
            return (yield)
        except (SystemExit, KeyboardInterrupt, self._pytest.exit.Exception) as stop:
            self.error(describe(stop, self._places))
            return self._pytest.CollectReport(collector.nodeid, "failed", str(stop), [])

    def pytest_exception_interact(self, call: Any, report: Any) -> None:
        """Write an error of collection; pytest wraps those of an import."""
        if isinstance(report, self._pytest.CollectReport):
            error = call.excinfo.value
            wrapped = isinstance(error, self._pytest.Collector.CollectError)
            self.error(
                describe(error.__cause__ if wrapped and error.__cause__ else error, self._places)
            )

    def pytest_internalerror(self, excinfo: Any) -> bool:
        """Write an error of pytest itself."""
        self.error(describe(excinfo.value, self._places))
        return True

    def pytest_collection_finish(self, session: Any) -> None:
        """Write the ids that were found."""
        ids = [_id(item.nodeid) for item in session.items]
        for start in range(0, len(ids), IDS):
            self._report.write("collected", ids=ids[start : start + IDS])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Write that a test begins."""
        self._recorder.take()
        self._test = {"outcome": "passed", "phase": "call", "problem": None}
        self._report.write("start", id=_id(nodeid))

    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        """Guard the fixtures of a test."""
        return (yield from self._guard())

    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        """Guard the test itself."""
        return (yield from self._guard())

    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        """Guard the end of its fixtures."""
        return (yield from self._guard())

    def _guard(self) -> Generator[None, Any, Any]:
        """Let what would end pytest (Ctrl-C, pytest.exit) fail the test that raised it."""
        try:
            return (yield)
        except (KeyboardInterrupt, self._pytest.exit.Exception) as stop:
            raise Stopped from stop

    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:  # noqa: ARG002
        """Note the result of one phase (or of a subtest)."""
        report = yield
        self._note(report, call.excinfo.value if call.excinfo else None)
        return report

    def _note(self, report: Any, error: BaseException | None) -> None:
        """Merge one phase into the result of the test: the first failure stays."""
        test = self._test
        expected = hasattr(report, "wasxfail")
        if test["outcome"] == "failed":
            return
        if report.failed:
            self._set("failed", report, error)
        elif report.skipped:
            self._set("xfailed" if expected else "skipped", report, error)
        elif report.when == "call":
            self._set("xpassed" if expected else "passed", report, None)

    def _set(self, outcome: str, report: Any, error: BaseException | None) -> None:
        self._test = {"outcome": outcome, "phase": report.when, "problem": None}
        if error is not None:
            error = error.__cause__ if isinstance(error, Stopped) and error.__cause__ else error
            problem = describe(error, self._places)
            if hasattr(error, "formatrepr"):  # a missing fixture: str() of it is not for readers
                problem["message"] = bounded(report.longreprtext)
            self._test["problem"] = problem
        elif outcome == "failed":  # a strict xfail that passed has words but no exception
            self._test["problem"] = {"type": "Failed", "message": bounded(report.longreprtext)}

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Write the result of a test when its teardown is over."""
        self._report.write(
            "result",
            id=_id(nodeid),
            captured=bounded(self._recorder.take(), 2 * TEXT),
            **self._test,
        )


class Stopped(Exception):
    """Stands for what would have ended pytest; that is its cause."""


def _decorate(pytest: Any) -> None:
    """Mark the wrappers among the hooks: pytest could not be imported when they were defined."""
    outer = pytest.hookimpl(wrapper=True, tryfirst=True)
    inner = pytest.hookimpl(wrapper=True, trylast=True)
    outer(Plugin.pytest_make_collect_report)
    outer(Plugin.pytest_runtest_makereport)
    for step in (Plugin.pytest_runtest_setup, Plugin.pytest_runtest_call):
        inner(step)
    inner(Plugin.pytest_runtest_teardown)


def _id(nodeid: str) -> str:
    """Return what follows the file name; the rest may hold anything, also `::`."""
    return nodeid.partition("::")[2].encode("utf-8", "backslashreplace").decode()


if __name__ == "__main__":
    main()
