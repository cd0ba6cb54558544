"""Makes a TestReport of what the runner wrote. The bytes are hostile: tested code may add some.

A line counts if it begins with the nonce (of the parent, or its half that the process of the tests
knows: each for its own kinds of line), is JSON, and is the next in the sequence. Everything else is
passed over, and a lost or damaged line breaks the sequence, so that the end marker is not reached:
garbage can spoil a report, it cannot complete one.

Reading costs a search through the bytes, and parsing of the lines that begin with the nonce. Only
forged lines among those are bad, so a few of them end the reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue, ValidationError

from codetape.adapters.sandbox.runner import token
from codetape.adapters.sandbox.runner.reporting import mark
from codetape.states.classify import NOT_TRUSTED
from codetape.states.null_solutions import KINDS
from codetape.states.values import NullRun, Problem, RunSpec, ScriptRun, TestReport, TestResult

MOST = 16 << 20  # bytes of a report that are read; a longer one is an unfinished one
LINE = 1 << 20  # bytes of one line; the runner writes a few tens of kilobytes at most
BAD = 100  # lines with the nonce that say nothing; after them nothing is read
LINES = 100_000  # lines with the nonce that are read
DIGITS = 19  # of a whole number; the runner writes no other numbers
ERRORS = 100  # errors that are kept
ENDS = ("exit", "script", "script end")  # lines that say how far a child came
BY_PARENT = (
    "begin",
    "exit",
    "null",
    "null end",
    "script",
    "script end",
)  # lines that the code cannot write
CUT = " bytes cut]\n"  # ends the note in the place of what was left out of a stream
UNTRUSTED = Problem(
    type=NOT_TRUSTED,
    message="a test that must fail was not reported as failed: the code changes how results are made",
)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child of the runner ended: one of `status` and `signal`, and its peak, in bytes.

    One that was `late`, and ended by the runner for it, has neither.
    """

    status: int | None
    signal: int | None
    peak_memory: int | None
    late: bool = False
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What a report says. None: it does not say."""

    report: TestReport | None = None
    exit: Exit | None = None
    script: ScriptRun | None = None
    nulls: tuple[NullRun, ...] = ()

    def has_outputs(self, spec: RunSpec) -> bool:
        """Say whether what lies among the outputs is what was asked for; tests may leave their own."""
        return not spec.script or self.script is not None

    def words(self, stdout: str, stderr: str, nonce: str) -> dict[str, Any]:
        """Return what followed the tests, and all streams, as fields of a RunOutcome."""
        if self.script is None:
            return {"stdout": stdout, "stderr": stderr, "nulls": self.nulls}
        (out, own_out), (err, own_err) = (_apart(text, nonce) for text in (stdout, stderr))
        script = self.script.model_copy(update={"stdout": own_out, "stderr": own_err})
        return {"stdout": out, "stderr": err, "script": script, "nulls": self.nulls}


def _apart(text: str, nonce: str) -> tuple[str, str]:
    """Return what stands before and after the mark; if that was cut, the tail is the script's."""
    tests, found, script = text.partition(mark(nonce))
    if found:
        return tests, script
    head, note, tail = text.rpartition(CUT)
    return (head + note, tail) if note else (text, "")


def read_report(data: bytes, nonce: str) -> Heard:
    """Read the lines of a report. Never raises, whatever the bytes are."""
    tests = reading = _Reading()
    bad, nulls = 0, _Nulls()
    ends: dict[str, Exit] = {}  # by the kind of the line
    for line in _lines(data[:MOST], nonce):
        fact = _fact(line, nonce)
        taken = reading.seq
        if fact is not None and fact.get("kind") in ENDS and (end := _exit(fact)):
            ends.setdefault(str(fact["kind"]), end)
        elif fact is not None and fact.get("kind") == "null":
            reading, taken = nulls.begin(fact), -1
        elif fact is not None and fact.get("kind") == "null end":
            nulls.end(fact)
            taken = -1
        elif fact is not None and fact.get("seq") == reading.seq + 1 and not reading.finished:
            reading.take(fact)
        bad += reading.seq == taken
        if bad > BAD:
            break
    return Heard(tests.report(), ends.get("exit"), _script(ends), nulls.runs())


def _script(ends: dict[str, Exit]) -> ScriptRun | None:
    """Return the run of the script, as far as it came; None if it did not begin."""
    if "script" not in ends:
        return None
    end = ends.get("script end", ends["script"])
    return ScriptRun(
        exit_status=end.status, signal=end.signal, timed_out=end.late, seconds=end.seconds
    )


def _lines(data: bytes, nonce: str) -> Iterator[bytes]:
    """Yield the lines that begin as those of the runner do, without a look at the others."""
    mark = f'{{"nonce": "{token(nonce)}'.encode()
    end = 0
    for _ in range(LINES):
        start = data.find(mark, end)
        if start < 0:
            return
        whole = start == 0 or data[start - 1 : start] == b"\n"
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end] if whole and end - start <= LINE else b""


def _fact(line: bytes, nonce: str) -> dict[str, JsonValue] | None:
    """Return the line as an object, or None if it is none of the runner's."""
    try:
        fact = json.loads(line.decode(), parse_int=_whole, parse_float=_none, parse_constant=_none)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fact, dict):
        return None
    known = nonce if fact.get("kind") in BY_PARENT else token(nonce)
    return fact if fact.get("nonce") == known else None


def _whole(digits: str) -> int:
    """Read a whole number. A long one is refused unread: reading it takes the square of its length."""
    if len(digits) > DIGITS:
        raise ValueError("too many digits")
    return int(digits)


def _none(text: str) -> float:
    raise ValueError(f"no number of the runner's: {text[:DIGITS]}")


def _exit(fact: dict[str, JsonValue]) -> Exit | None:
    numbers = [fact.get(name) for name in ("status", "signal", "peak_memory", "milliseconds")]
    if any(number is not None and type(number) is not int for number in numbers):
        return None
    status, signal, peak, taken = (n if isinstance(n, int) else None for n in numbers)
    seconds = None if taken is None else taken / 1000
    return Exit(status, signal, peak, fact.get("late") is True, seconds)


def _line(number: JsonValue) -> int:
    return number if type(number) is int else 0


class _Nulls:
    """What is said of the tests against null solutions, in order."""

    def __init__(self) -> None:
        self._read: list[tuple[Any, _Reading]] = []
        self._known: list[bool] = []

    def begin(self, fact: dict[str, JsonValue]) -> _Reading:
        """Begin the report of the next one."""
        reading = _Reading()
        if len(self._read) < len(KINDS) and fact.get("solution") in KINDS:
            self._read.append((fact["solution"], reading))
        return reading

    def end(self, fact: dict[str, JsonValue]) -> None:
        """End it; the runner says whether anything is known of it."""
        self._known.append(fact.get("known") is True)

    def runs(self) -> tuple[NullRun, ...]:
        """Return them as far as they came."""
        runs = []
        for at, (solution, reading) in enumerate(self._read):
            ended = at < len(self._known)
            failed = _failed(reading.report()) if ended and self._known[at] else None
            runs.append(NullRun(solution=solution, failed=failed, ended=ended))
        return tuple(runs)


def _failed(report: TestReport | None) -> tuple[str, ...] | None:
    """Return the tests that failed; None where pytest did not come to run and end them all."""
    if report is None or not report.finished or report.errors or not report.results:
        return None
    return tuple(result.id for result in report.results if result.outcome == "failed")


@dataclass(slots=True)
class _Reading:
    """The report as far as it has been read."""

    seq: int = 0
    finished: bool = False
    python: str | None = None
    running: str | None = None
    witnessed: bool = False  # the test that must fail did
    collected: dict[str, None] = field(default_factory=dict)  # an ordered set
    lines: list[int] = field(default_factory=list)  # of the tests that were collected
    warnings: list[str] = field(default_factory=list)
    results: dict[str, TestResult] = field(default_factory=dict)
    errors: list[Problem] = field(default_factory=list)

    def take(self, fact: dict[str, JsonValue]) -> None:
        """Take the next line. One that does not fit is left out, and so is all that follows it."""
        try:
            fits = self._fit(fact)
        except ValidationError:
            fits = False
        self.seq += fits

    def _fit(self, fact: dict[str, JsonValue]) -> bool:
        """Merge `fact`; False if it cannot come from the runner here."""
        body = {name: fact[name] for name in fact.keys() - {"nonce", "seq", "kind"}}
        if (fact.get("kind") == "begin") != (self.seq == 0):
            return False
        match fact.get("kind"):
            case "begin":
                return self._begin(body.get("python"))
            case "end":
                self.finished = self.running is None
                return self.finished
            case "error":
                self.errors.append(Problem.model_validate(body.get("problem")))
                return len(self.errors) <= ERRORS
            case "collected":
                return self._collect(body.get("ids"), body.get("lines"))
            case "warning":
                self.warnings.append(str(body.get("message")))
                return len(self.warnings) <= ERRORS
            case "start":
                return self._start(body.get("id"))
            case "result":
                return self._result(TestResult.model_validate(body))
            case "witness":
                self.witnessed = body.get("outcome") == "failed" and body.get("phase") == "call"
                return self.running is None
        return False

    def _begin(self, python: JsonValue) -> bool:
        self.python = python if isinstance(python, str) else None
        return self.python is not None

    def _collect(self, ids: JsonValue, lines: JsonValue) -> bool:
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            return False
        if lines is not None and (not isinstance(lines, list) or len(lines) != len(ids)):
            return False
        for at, one in enumerate(ids):
            if one not in self.collected:
                self.collected[str(one)] = None
                self.lines += [_line(lines[at])] if isinstance(lines, list) else []
        return True

    def _start(self, test: JsonValue) -> bool:
        if self.running is not None or test not in self.collected or test in self.results:
            return False
        self.running = str(test)
        return True

    def _result(self, result: TestResult) -> bool:
        if result.id != self.running:
            return False
        self.results[result.id] = result
        self.running = None
        return True

    def _errors(self) -> list[Problem]:
        if self.finished and self.results and not self.errors and not self.witnessed:
            return [UNTRUSTED]
        return self.errors

    def report(self) -> TestReport | None:
        """Return the report, or None if not even its beginning was there."""
        if self.seq == 0:
            return None
        return TestReport(
            finished=self.finished,
            collected=tuple(self.collected),
            lines=tuple(self.lines),
            warnings=tuple(self.warnings),
            results=tuple(self.results.values()),
            errors=tuple(self._errors()),
            running=self.running,
            python=self.python,
        )
