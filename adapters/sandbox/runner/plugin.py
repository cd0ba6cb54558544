"""Runs pytest in this process, and turns what it does into facts."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import sys
from collections.abc import Generator
from typing import Any

from codetape.adapters.sandbox.runner import witness
from codetape.adapters.sandbox.runner.pins import Pins
from codetape.adapters.sandbox.runner.problems import TEXT, Places, bounded, describe
from codetape.adapters.sandbox.runner.reporting import Report
from codetape.adapters.sandbox.runner.skips import Skips
from codetape.adapters.sandbox.runner.spare import NO_TEST_PASSED, Spare
from codetape.adapters.sandbox.runner.streams import Recorder, Tee, tees

WARNINGS = 50  # that are written
IDS = 200  # ids in one line of the report
ID = 2000  # bytes of an id; a longer one is told from others by a digest
PLENTY = 8 << 20  # bytes of a report; from then on texts are short, so that all results fit
SHORT = 200  # characters of such a text
SKIPPED = "SolutionSkipped"  # the type of the problem of a skip that the solution made
UNTRUSTED = "ResultsNotTrusted"  # the type of the problem of results that the code may have made
# Taken before anything foreign is imported: replacing it later changes nothing here.
_exit = os._exit


def run(where: int, token: str, inputs: str, spare: Spare | None = None) -> None:
    """Run pytest on test_solution.py, write the end marker and leave. Never returns.

    `where` is the descriptor of the report, which has one line already. A `spare` is left behind
    where nothing of the solution is here yet; forks of it do the same with null solutions.
    """
    report, places = Report(where, token, seq=1), Places(inputs)
    status = 1
    try:
        status = _pytest(report, places, spare)
    except BaseException as error:  # noqa: BLE001 - whatever ended pytest is a fact to report
        report.write("error", problem=describe(error, places))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the code may have closed or replaced it
            stream.flush()
    report.write("end")
    _exit(status)


def _pytest(report: Report, places: Places, spare: Spare | None) -> int:
    """Run pytest in this process without foreign configuration, conftest files and plugins."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ.pop("PYTEST_PLUGINS", None)
    sys.dont_write_bytecode = True
    import pytest

    # pytest's own words go nowhere: nobody reads them, and code that closes stdout would break it.
    streams = tees()
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - stays open as long as pytest
    sys.path.insert(0, places.inputs)
    sys.argv = ["pytest"]
    options = ["-c", os.devnull, "--rootdir", places.inputs, "--noconftest", "--color=no", "-s"]
    # Or pytest would look through every folder on the way from the root, however much is in it.
    options += ["--confcutdir", places.inputs, "-p", "no:cacheprovider", "--tb=line"]
    _decorate(pytest)
    plugin = Plugin(pytest, report, places, streams, spare)
    gc.freeze()  # takes what is here now out of what gc.get_objects finds
    status = int(pytest.main([*options, places.tests], [plugin]))
    if status == 1 and plugin.is_null and not plugin.passed:
        status = NO_TEST_PASSED
    if status in (3, 4) and not plugin.errors:  # an internal error or a usage error, told to nobody
        plugin.error({"type": "UsageError", "message": "pytest could not start on the test file"})
    return status


class Plugin:
    """Turns what pytest does into facts. Hooks marked by `_decorate` are wrappers."""

    def __init__(
        self,
        pytest: Any,
        report: Report,
        places: Places,
        streams: tuple[Tee, Tee, Recorder],
        spare: Spare | None,
    ) -> None:
        self._pytest = pytest
        self._report = report
        self._places = places
        self._skips = Skips(pytest, places)
        self._spare = spare
        self._out, self._err, self._recorder = streams
        self._test: dict[str, Any] = {}
        self._witness: Any = None
        self._pins: Any = None
        self._trusted = True
        self._warnings = WARNINGS
        self.errors = 0
        self.passed = 0  # tests that did
        self.is_null = False  # the solution is

    def error(self, problem: dict[str, object]) -> None:
        """Write what kept pytest from finding or running tests."""
        self.errors += 1
        self._report.write("error", problem=problem)

    def pytest_sessionstart(self) -> None:
        """Give the code its streams; pytest's terminal holds on to the one it found before."""
        sys.stdout, sys.stderr = self._out, self._err

    def pytest_collection(self, session: Any) -> None:
        """Hold pytest to what it is now: nothing foreign was imported yet. Leave the spare behind."""
        self._pins = Pins(session.config)
        if self._spare and self._spare.leave(self._places.solution):
            self._report.begin_again()
            self.is_null = True

    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        """Turn an exit at import, which would end pytest, into an error of collection."""
        try:
            report = yield
        except (SystemExit, KeyboardInterrupt, self._pytest.exit.Exception) as stop:
            self.error(describe(stop, self._places))
            return self._pytest.CollectReport(collector.nodeid, "failed", str(stop), [])
        self._collected(report)
        return report

    def _collected(self, report: Any) -> None:
        """Write an error where the solution skips the file that imports it."""
        call = report.call
        if report.skipped and self._skips.by_solution(call.excinfo.value, "skipped"):
            self.error(self._skipped(call.excinfo.value))

    def _skipped(self, error: BaseException | None) -> dict[str, object]:
        problem = describe(error or Stopped("for no reason"), self._places)
        problem.update(type=SKIPPED, message=f"the solution skips the test: {problem['message']}")
        return problem

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
        for item in session.items:
            self._pins.hold(item)
        ids = [_id(item.nodeid) for item in session.items]
        lines = [self._line(item) for item in session.items]
        for part in (slice(start, start + IDS) for start in range(0, len(ids), IDS)):
            self._report.write("collected", ids=ids[part], lines=lines[part])

    def _line(self, item: Any) -> int:
        """Return where the function of a test begins in the test file, 0 if it is not in it."""
        code = getattr(getattr(item, "function", None), "__code__", None)
        if code is None or code.co_filename != self._places.tests:
            return 0
        return int(code.co_firstlineno)

    def pytest_warning_recorded(self, warning_message: Any) -> None:
        """Write which classes pytest left out."""
        if warning_message.category is self._pytest.PytestCollectionWarning and self._warnings:
            self._warnings -= 1
            self._report.write("warning", message=bounded(str(warning_message.message), 500))

    def pytest_runtestloop(self, session: Any) -> Generator[None, Any, Any]:
        """Run the witness after all tests, as one of them: the same hooks, the same report."""
        ran = yield
        if session.items:
            failed, self._witness = session.testsfailed, witness.collect(self._pytest, session)
            self._pins.hold(self._witness)
            session.config.hook.pytest_runtest_protocol(item=self._witness, nextitem=None)
            session.testsfailed = failed
        return ran

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Write that a test begins."""
        self._recorder.take()
        self._test = {"outcome": "passed", "phase": "call", "problem": None}
        if self._witness is None:
            self._report.write("start", id=_id(nodeid))

    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        """Guard the fixtures of a test."""
        return (yield from self._guard())

    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, Any]:
        """Guard the test itself, which has to be the one that was collected."""
        self._look(self._pins.differs(item), f"{_id(item.nodeid)} is not the test that was found")
        return (yield from self._guard())

    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        """Guard the end of its fixtures."""
        return (yield from self._guard())

    def _look(self, odd: bool, message: str) -> None:
        """Say once that results are not to be trusted."""
        if odd and self._trusted:
            self._trusted = False
            self.error({"type": UNTRUSTED, "message": message})

    def _guard(self) -> Generator[None, Any, Any]:
        """Let what would end pytest (Ctrl-C, pytest.exit) fail the test that raised it."""
        try:
            return (yield)
        except (KeyboardInterrupt, self._pytest.exit.Exception) as stop:
            raise Stopped from stop

    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:  # noqa: ARG002
        """Note the result of one phase (or of a subtest)."""
        raised = _error(call)  # pytest replaces a SkipTest, and has what unittest caught only later
        report = yield
        self._note(report, _error(call), raised)
        return report

    def _note(self, report: Any, error: BaseException | None, raised: BaseException | None) -> None:
        """Merge one phase into the result of the test: the first failure stays."""
        test = self._test
        expected = hasattr(report, "wasxfail")
        outcome = "xfailed" if expected else "skipped"
        if test["outcome"] == "failed":
            return
        if report.failed:
            self._set("failed", report, error)
        elif report.skipped and self._skips.by_solution(raised or error, outcome):
            self._set("failed", report, raised or error)
            if not expected or self._skips.is_skip(error):
                self._test["problem"] = self._skipped(raised or error)
        elif report.skipped:
            self._set(outcome, report, error)
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
        much = self._report.size > PLENTY
        problem = self._test["problem"]
        if much and problem is not None:
            problem.update(
                message=bounded(problem["message"], SHORT), frames=problem["frames"][-2:]
            )
        self.passed += self._test["outcome"] in ("passed", "xpassed")
        self._look(self._pins.changed(), "the code changes how pytest makes results")
        self._report.write(
            "result" if self._witness is None else "witness",
            id=_id(nodeid),
            captured=bounded(self._recorder.take(), SHORT if much else 2 * TEXT),
            **self._test,
        )


def _error(call: Any) -> BaseException | None:
    return call.excinfo.value if call.excinfo else None


class Stopped(Exception):
    """Stands for what would have ended pytest; that is its cause."""


def _decorate(pytest: Any) -> None:
    """Mark the wrappers among the hooks: pytest could not be imported when they were defined."""
    outer = pytest.hookimpl(wrapper=True, tryfirst=True)
    inner = pytest.hookimpl(wrapper=True, trylast=True)
    pytest.hookimpl(tryfirst=True)(Plugin.pytest_collection)
    outer(Plugin.pytest_make_collect_report)
    outer(Plugin.pytest_runtestloop)
    outer(Plugin.pytest_runtest_makereport)
    for step in (Plugin.pytest_runtest_setup, Plugin.pytest_runtest_call):
        inner(step)
    inner(Plugin.pytest_runtest_teardown)


def _id(nodeid: str) -> str:
    """Return what follows the file name; the rest may hold anything, also `::`."""
    name = nodeid.partition("::")[2].encode("utf-8", "backslashreplace")
    if len(name) <= ID:
        return name.decode()
    digest = hashlib.sha256(name).hexdigest()[:16]
    return f"{name[:ID].decode(errors='ignore')}…{digest}]"
