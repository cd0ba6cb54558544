"""Hypothesis strategies for what comes in from outside: answers, builds, runs, an operator's events.

`answers(request)`, `builds(request)`, `runs(spec)` and `outcomes(request)` draw what an adapter may
bring: good and bad, of every kind that the rules know. `traces()` draws whole sessions, driven by the
rules without an engine. Texts come from small pools on purpose, so that things repeat: the rules that
matter are about what comes back.

Everything is chosen by a row of bytes, a Chance. It is quick to draw, and a failing example shrinks
towards zeros, which stand for the best outcome: what is left of it is what matters.

Needs the extra `codetape[testing]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from hypothesis.vendor.pretty import RepresentationPrinter

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.failures import base_id
from codetape.states.job import Budget, Column, Job, Sample
from codetape.states.python_source import defined_tests
from codetape.states.session import Session
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    Frame,
    ImageRef,
    ImageSpec,
    Outcome,
    Problem,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    TestReport,
    TestResult,
    Usage,
)
from codetape.states.workflow import AUTOCODER, Workflow

T = TypeVar("T")

SOLUTIONS = (
    "def add(a, b):\n    return a + b",
    "def add(a, b):\n    return a - b",
    "def add(a, b):\n    return b + a",
    "import requests\n\n\ndef add(a, b):\n    return a + b",
    "import yaml\nimport models\n\n\ndef add(a, b):\n    return a - b",
    'def add(a, b):\n    """Add.\n\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b',
)
"""Solutions that parse."""

TEST_FILES = (
    (
        "from solution import add\n\n\ndef test_a():\n    assert add(1, 2) == 3\n\n\n"
        "def test_b():\n    assert add(0, 0) == 0"
    ),
    (
        "import pytest\nfrom solution import add\n\n\n"
        '@pytest.mark.parametrize("x", [1, 2])\ndef test_p(x):\n    assert add(x, 1) == x + 1\n\n\n'
        "class TestAdd:\n    def test_zero(self):\n        assert add(0, 0) == 0  # zero\n\n"
        "    async def test_far(self):\n        assert add(2, 2) == 4"
    ),
    "import hypothesis\nfrom solution import add\n\n\ndef test_a():\n    assert add(1, 2) == 3",
)
"""Test files that parse and have tests."""

FIXES = (
    "",
    "Replace `a + b` with `a - b`.",
    "Replace `return a - b` by `return a + b`.",
    "Replace `== 3` with `== 4`.",
    "Treat an empty list as zero.",
)
"""Fixes of a diagnosis: none, with old and new text, in words."""

CHECKS: tuple[dict[str, Any], ...] = (
    {"column_name": "value", "check_type": "greater_than", "parameters": {"value": 0}},
    {"column_name": "", "check_type": "none"},
    {"column_name": "nowhere", "check_type": "not_null"},
    {"column_name": "value", "check_type": "between", "parameters": {}},
)
"""What a constraint may be read as; the last two are checks of nothing."""

PROBLEMS = (
    Problem(type="AssertionError", message="assert 4 == 3"),
    Problem(type="AssertionError", message="assert <Sum at 0x7f01> == 3"),
    Problem(type="KeyError", message="'total'"),
    Problem(type="ModuleNotFoundError", message="No module named 'requests'", module="requests"),
    Problem(
        type="ImportError",
        message="cannot import name 'x'",
        frames=(Frame(place="installed", file="/site-packages/y.py", line=1, function="<module>"),),
    ),
    Problem(type="MemoryError", message=""),
    Problem(type="FixtureLookupError", message="fixture 'db' not found"),
)
"""What a test may fail with."""

_IN_SOLUTION = (Frame(place="solution", file="solution.py", line=1, function="<module>"),)

COLLECTION_PROBLEMS = (
    Problem(type="ModuleNotFoundError", message="No module named 'yaml'", module="yaml"),
    Problem(type="ImportError", message="cannot import name 'sub'", module="solution"),
    Problem(type="SystemExit", message="0", frames=_IN_SOLUTION),
    Problem(type="ValueError", message="bad", frames=_IN_SOLUTION),
    Problem(type="SyntaxError", message="invalid syntax"),
)
"""What may keep pytest from finding the tests."""


# --- chance ---------------------------------------------------------------------------------------


class Chance:
    """Choices by a row of bytes. One that has run out chooses the first of everything.

    `trouble` is how often something goes wrong: one time in so many.
    """

    def __init__(self, data: bytes, trouble: int = 12) -> None:
        self._data = iter(data)
        self._trouble = trouble

    def number(self, below: int) -> int:
        """Choose from 0 to `below` - 1."""
        return next(self._data, 0) % below

    def one(self, options: Sequence[T]) -> T:
        """Choose one of the options; the first is the simplest."""
        return options[self.number(len(options))]

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Choose up to `most` options, each at most once."""
        chosen = [self.one(options) for _ in range(self.number(most + 1))]
        return [option for n, option in enumerate(chosen) if option not in chosen[:n]]

    def trouble(self) -> bool:
        """Choose whether something goes wrong."""
        return self.number(self._trouble) == self._trouble - 1


@cache
def chances(size: int = 64) -> SearchStrategy[Chance]:
    """Draw a Chance of `size` bytes, calm or rough."""
    return st.builds(
        Chance, st.binary(min_size=size, max_size=size), st.sampled_from([40, 40, 15, 15, 6, 3])
    )


def answers(request: r.ModelRequest) -> SearchStrategy[Answer]:
    """Draw an answer to `request`: most can be read."""
    return chances().map(lambda chance: answer(chance, request))


def unusable_answers(request: r.ModelRequest) -> SearchStrategy[Answer]:
    """Draw an answer that is cut, refused, empty, no JSON, of another shape, or wrong in content."""
    return chances().map(lambda chance: unusable_answer(chance, request))


def builds(request: r.BuildRequest) -> SearchStrategy[ImageRef | BuildFailure]:
    """Draw what a build brings."""
    return chances().map(lambda chance: build(chance, request))


def runs(spec: RunSpec) -> SearchStrategy[RunOutcome]:
    """Draw a run of the tests of `spec`: reports of all kinds, limits, and no report at all."""
    return chances().map(lambda chance: run(chance, spec))


def outcomes(request: r.Request) -> SearchStrategy[Outcome]:
    """Draw what an adapter may bring for `request`."""
    return chances().map(lambda chance: outcome(chance, request))


def outcome(chance: Chance, request: r.Request) -> Outcome:
    """Choose what an adapter brings for `request`."""
    match request:
        case r.ModelRequest():
            return call_failure(chance) if chance.trouble() else answer(chance, request)
        case r.CheckSandbox():
            return ImageRef(ref="base", spec_key=request.spec.key)
        case r.BuildRequest():
            return sandbox_failure(chance) if chance.trouble() else build(chance, request)
        case r.RunRequest():
            return sandbox_failure(chance) if chance.trouble() else run(chance, request.spec)
    raise TypeError(f"no outcomes of {request.name}")


# --- answers of a model ---------------------------------------------------------------------------


def answer(chance: Chance, request: r.ModelRequest) -> Answer:
    """Choose an answer to `request`."""
    if chance.trouble():
        return unusable_answer(chance, request)
    return _said(chance, _body(chance, request))


def unusable_answer(chance: Chance, request: r.ModelRequest) -> Answer:
    """Choose an answer that the rules cannot use as it is."""
    match chance.number(4):
        case 0:
            return _paid(chance, Answer(text='{"code": "def', finish_reason="length"))
        case 1:
            return _paid(chance, Answer(text=chance.one(NO_ANSWERS), finish_reason="stop"))
        case 2:
            reason = chance.one(["content_filter", "length"])
            return _paid(chance, Answer(text=None, finish_reason=reason))
    return _said(chance, chance.one(_WRONG.get(request.call.kind, ({"other": 1},))))


NO_ANSWERS = ("I cannot do that.", "", " \n", "[1, 2]", "null", '{"other": 1}', "```json\n{", None)
"""Texts that are no answer to anything."""

_WRONG: dict[str, tuple[object, ...]] = {
    "code": (
        {"code": "def add(:"},
        {"code": ""},
        {"code": "fn main() {}", "language": "rust"},
        {"code": SOLUTIONS[0], "packages": ["pandas; id"]},
        {"code": SOLUTIONS[0], "packages": "pandas"},
    ),
    "tests": ({"test_code": "def helper(): pass"}, {"test_code": "def test_a(:"}),
    "diagnosis": ({"failures": [{"test_name": "test_a", "error_type": "weather"}]},),
    "patch_tests": ({"patches": "test_a"}, {"patches": []}),
}
"""Answers of the right shape, or nearly, that say what cannot be."""


def _said(chance: Chance, body: object) -> Answer:
    text = json.dumps(body)
    shapes = (text, f"```json\n{text}\n```", f"Here it is:\n\n```\n{text}\n```\nDone.")
    return _paid(chance, Answer(text=chance.one(shapes), finish_reason="stop"))


def _paid(chance: Chance, said: Answer) -> Answer:
    tokens = chance.one([(100, 10), (4000, 700), (None, 5), (None, None)])
    usage = Usage(input_tokens=tokens[0], output_tokens=tokens[1])
    cost = chance.one([0.25, 0.0, 0.5, None])
    return said.model_copy(update={"usage": usage, "cost": cost, "seconds": 1.5})


def _body(chance: Chance, request: r.ModelRequest) -> dict[str, Any]:
    match request:
        case r.ParseConstraint():
            return chance.one(CHECKS)
        case r.WritePlan():
            return {"description": "Add numbers.", "approach": "One function."}
        case r.WriteCode():
            return _code(chance)
        case r.WriteTests():
            return {"test_code": chance.one(TEST_FILES)}
        case r.VerifyCode(fixes=fixes) | r.VerifyTests(fixes=fixes):
            done = chance.one([True, False])
            missing = chance.one([[], list(fixes[:1])])
            return {"all_fixes_applied": done, "missing_fixes": [] if done else missing}
        case r.PatchTests():
            return _patches(chance, request)
        case r.ReplacePackage():
            return {"replacement": chance.one([None, "numpy", "nosuch==1", "no name at all"])}
        case r.Diagnose():
            return _diagnosis(chance, request)
    raise TypeError(f"no answers to {request.name}")


def _code(chance: Chance) -> dict[str, Any]:
    source = chance.one(SOLUTIONS)
    packages = ["numpy", "Requests>=2", "nosuch", "nosuch==9"]  # two of them make a CONFLICT
    return {
        "code": chance.one([source, f"````python\n{source}\n````"]),
        "packages": chance.some(packages, 2) if chance.number(4) == 3 else [],
        "system_packages": chance.some(["libxml2", "nolib"], 2) if chance.number(8) == 7 else [],
    }


def _patches(chance: Chance, request: r.PatchTests) -> dict[str, Any]:
    names = sorted({base_id(test) for test in request.failing})
    named = [name for name in names if not chance.trouble()]
    named += ["test_nobody"] if chance.trouble() else []
    return {"patches": [_patch(chance, request.source, name) for name in named]}


def _patch(chance: Chance, source: str, name: str) -> dict[str, str]:
    own, number = own_text(source, name), chance.number(4)
    bodies = (
        f"{own}    assert {number} + len('') == len('x' * {number})\n",
        own.replace("==", "<=" if number % 2 else ">="),
        f"def {name.rpartition('::')[2]}():\n    assert True\n",
        own.replace(":", ""),
        own,
        f"@pytest.mark.skip\n{own}",
    )
    return {"test_name": name, "fixed_code": bodies[chance.one([0, 0, 0, 1, 1, 2, 3, 4, 5])]}


def own_text(source: str, name: str) -> str:
    """The text of a test of the pool, moved to the left margin."""
    for test in defined_tests(source):
        if test.id == name:
            lines = source.split("\n")[test.first_line - 1 : test.last_line]
            margin = len(lines[0]) - len(lines[0].lstrip())
            return "".join(f"{line[margin:]}\n" for line in lines)
    return f"def {name}():\n    assert 1 == 1\n"


def _diagnosis(chance: Chance, request: r.Diagnose) -> dict[str, Any]:
    named = [failure.test_id for failure in request.failures if not chance.trouble()]
    named += ["test_nobody"] if chance.trouble() else []
    return {
        "failures": [_finding(chance, name) for name in named],
        "needs_language_packages": chance.some(["scipy", "--evil", "nosuch"], 2)
        if chance.trouble()
        else [],
        "needs_additional_commands": chance.some(["make fonts", " "], 2)
        if chance.trouble()
        else [],
    }


def _finding(chance: Chance, name: str) -> dict[str, Any]:
    return {
        "test_name": name,
        "error_type": chance.one(["logic", "test_error", "logic", "test_error", "environment"]),
        "suggested_fix": chance.one(FIXES),
    }


def call_failure(chance: Chance) -> CallFailure:
    """Choose why a call brought no answer; most calls may be made again."""
    if chance.number(10) == 9:
        return CallFailure(reason="auth", message="the key is refused")
    return chance.one(
        [
            CallFailure(reason="rate_limited", message="429", retryable=True, retry_after=3.0),
            CallFailure(reason="server_error", message="503", retryable=True),
            CallFailure(reason="timeout", message="no answer", retryable=True, seconds=600.0),
        ]
    )


# --- builds and runs ------------------------------------------------------------------------------


CONFLICT = {"numpy", "requests>=2"}
"""Requirements that no image has together."""


def build(chance: Chance, request: r.BuildRequest) -> ImageRef | BuildFailure:
    """Choose what a build brings.

    What does not exist ("nosuch", "nolib") is never built, nor what cannot be had together.
    """
    spec = request.spec
    if unknown := tuple(n for n in spec.requirements if n.startswith("nosuch")):
        return BuildFailure(cause="unknown_package", message="no such package", packages=unknown)
    if "nolib" in spec.system_packages:
        return BuildFailure(cause="unknown_system_package", message="no", packages=("nolib",))
    if set(spec.requirements) >= CONFLICT:
        return BuildFailure(cause="conflict", message="numpy and requests do not fit together")
    if chance.trouble() and spec.requirements:
        return _gated(chance, spec)
    if not chance.trouble():
        return ImageRef(ref=f"img:{spec.key[:6]}", spec_key=spec.key, seconds=2.0)
    if spec.commands:
        return BuildFailure(cause="command", message="failed", packages=spec.commands[:1])
    cause = chance.one(["conflict", "other", "unknown_package", "download"])
    return BuildFailure.model_validate({"cause": cause, "message": "the build failed"})


def _gated(chance: Chance, spec: ImageSpec) -> ImageRef | BuildFailure:
    """Choose a package that a policy refuses, or leaves to a person; what was allowed is let in."""
    cause, name = (
        chance.one(["undecided_package", "refused_package"]),
        chance.one(spec.requirements),
    )
    if name in spec.allowed:
        return ImageRef(ref=f"img:{spec.key[:6]}", spec_key=spec.key)
    failure = {"cause": cause, "message": "It is young.", "packages": (name,)}
    return BuildFailure.model_validate(failure)


def run(chance: Chance, spec: RunSpec) -> RunOutcome:
    """Choose what a run of the tests of `spec` brings."""
    if chance.trouble():
        return chance.one(ENDED_RUNS)
    if chance.trouble():
        report = TestReport(finished=True, errors=(chance.one(COLLECTION_PROBLEMS),))
        return RunOutcome(exit_status=2, report=report, seconds=0.5)
    return RunOutcome(exit_status=1, report=_report(chance, spec), seconds=0.5)


ENDED_RUNS = (
    RunOutcome(exit_status=0),
    RunOutcome(signal=9, stderr="Killed"),
    RunOutcome(timed_out=True, report=TestReport(finished=False)),
    RunOutcome(signal=9, out_of_memory=True),
    RunOutcome(exit_status=1, disk_full=True),
)
"""Runs that brought no whole report."""


def _report(chance: Chance, spec: RunSpec) -> TestReport:
    ids = expected_ids(spec.files[1].text)
    results = tuple(_result(chance, test) for test in ids)
    if not chance.trouble():
        return TestReport(finished=True, collected=ids, results=results)
    finished = chance.one([True, False])
    running = None if finished else ids[-1]
    return TestReport(finished=finished, collected=ids, results=results[:-1], running=running)


def _result(chance: Chance, test: str) -> TestResult:
    kind = chance.one(["passed", "failed", "failed", "passed", "failed", "failed", "skipped"])
    problem = chance.one([*PROBLEMS[:3], *PROBLEMS]) if kind == "failed" else None
    return TestResult.model_validate({"id": test, "outcome": kind, "problem": problem})


def expected_ids(source: str) -> tuple[str, ...]:
    """The ids that pytest would report for a test file of the pool; `test_p` has two parameters."""
    ids = [test.id for test in defined_tests(source)]
    return tuple(f"{i}[{n}]" if n else i for i in ids for n in ((1, 2) if i == "test_p" else (0,)))


def sandbox_failure(chance: Chance) -> SandboxFailure:
    """Choose how a sandbox broke; now and then it is gone."""
    missing = chance.number(10) == 9
    return SandboxFailure(message="the socket is closed", missing=missing)


# --- whole sessions -------------------------------------------------------------------------------


@cache
def outside_events() -> SearchStrategy[e.Event]:
    """Draw what an operator does."""
    noted, paused = e.Noted(text="The unit is kelvin."), e.Paused(by="an operator")
    decided = e.Resumed(allow=("numpy",), deny=("pyyaml", "libxml2"))
    resumed = [e.Resumed(), e.Resumed(budget=Budget(calls=500)), decided]
    cancelled = e.Cancelled(by="an operator")
    return st.sampled_from([noted, *resumed, paused, noted, *resumed, paused, cancelled])


@cache
def jobs() -> SearchStrategy[Job]:
    """Draw a small job."""
    columns = (Column(name="value", type="float", nullable=True),)
    table = Sample(name="t", path="/t.csv", file="t.csv", description="A table.", columns=columns)
    budgets = [Budget()] * 5 + [Budget(calls=9), Budget(usd=2.0), Budget(tokens=9000)]
    return st.builds(
        Job,
        prompt=st.just("Add two numbers."),
        max_iterations=st.sampled_from([8, 8, 6, 4, 2, 1]),
        skip_tests=st.sampled_from([False] * 9 + [True]),
        plan=st.booleans(),
        sandbox_retries=st.integers(0, 2),
        call_retries=st.integers(0, 3),
        base_packages=st.sampled_from([(), ("pandas",)]),
        fallback_models=st.sampled_from([(), (), ("another",)]),
        samples=st.sampled_from([(), (), (table,)]),
        constraints=st.sampled_from([(), ("value is positive", "no value is odd")]),
        budget=st.sampled_from(budgets),
        seed=st.integers(0, 9),
    )


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """One event, the sessions on both sides of it, and the request that brought it, if one did."""

    before: Session
    event: e.Event
    after: Session
    request: r.Request | None = None
    outcome: Outcome | None = None

    def __repr__(self) -> str:
        """A line that a person can read in a failing example."""
        return f"{self.before.state} {self.event.name} {self.after.state}"

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        """Hypothesis would print every field of both sessions."""
        printer.text("..." if cycle else repr(self))


Trace = tuple[Step, ...]

LONGEST_TRACE = 150
"""Events after which nobody waits for the end of a session any more."""


@st.composite
def traces(draw: DrawFn, *, operated: bool = True, workflow: Workflow = AUTOCODER) -> Trace:
    """Draw a session, as `played` plays it; with `operated`, an operator interferes a few times."""
    posted = dict(draw(_interference())) if operated else {}
    return played(draw(chances(400)), draw(jobs()), posted, workflow)


@cache
def _interference() -> SearchStrategy[list[tuple[int, e.Event]]]:
    return st.lists(st.tuples(st.integers(1, 40), outside_events()), max_size=4)


def played(
    chance: Chance,
    job: Job,
    posted: Mapping[int, e.Event] | None = None,
    workflow: Workflow = AUTOCODER,
) -> Trace:
    """Play a session from its opening to its end, or to a pause that nobody ends.

    What is in flight may finish in any order. `posted` are events from outside, by their place. Rules
    that never end are left after LONGEST_TRACE events.
    """
    opened = e.SessionOpened(job=job, workflow=workflow.name, rules=workflow.rules)
    steps = [_advanced(workflow, Step(workflow.blank("s"), opened, workflow.blank("s")))]
    while not (session := steps[-1].after).done and len(steps) < LONGEST_TRACE:
        event = (posted or {}).get(len(steps))
        if event is None and session.paused:
            if chance.one([True, False]):
                break
            held = session.held.packages if session.held else ()
            allow, deny = (held, ()) if chance.one([True, False]) else ((), held)
            event = e.Resumed(budget=Budget(), allow=allow, deny=deny)
        event = event or workflow.settle(session)
        step = _asked(workflow, session, chance) if event is None else Step(session, event, session)
        steps.append(_advanced(workflow, step))
    return tuple(steps)


def _asked(workflow: Workflow, session: Session, chance: Chance) -> Step:
    request = chance.one(workflow.wanted(session))
    brought = outcome(chance, request)
    return Step(session, workflow.interpret(request, brought), session, request, brought)


def _advanced(workflow: Workflow, step: Step) -> Step:
    return replace(step, after=workflow.advance(step.before, step.event))
