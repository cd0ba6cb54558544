"""A session driven by hand: each method is one outcome, and what follows by itself follows.

Driven().says(CODE).says(TESTS).builds().fails(test_a="assert 4 == 3").says(logic("test_a"))
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.job import Job
from codetape.states.machine import State
from codetape.states.session import Session
from codetape.states.tools.requests import RunScript
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    ImageRef,
    Outcome,
    Problem,
    RunOutcome,
    SandboxFailure,
    TestReport,
    TestResult,
    Usage,
)
from codetape.states.workflow import AUTOCODER, Workflow
from codetape.testing.bringing import expected_ids

JOB = Job(prompt="Write add(a, b).", plan=False, max_iterations=8)

WRONG = {"code": "def add(a, b):\n    return a - b\n"}
RIGHT = {"code": "def add(a, b):\n    return a + b\n"}
CODES = tuple({"code": f"def add(a, b):\n    return a - b - {n}\n"} for n in range(9))
TESTS = {
    "test_code": "from solution import add\n\n\ndef test_a():\n    assert add(1, 2) == 3\n\n\n"
    "def test_b():\n    assert add(0, 0) == 0\n"
}
FIX = "Replace `a - b` with `a + b`"
IN_WORDS = "Add the numbers."

Q = TypeVar("Q", bound=r.Request)


def finding(test: str, label: str = "logic", fix: str = "") -> dict[str, Any]:
    return {"test_name": test, "error_type": label, "suggested_fix": fix}


def diagnosis(*findings: dict[str, Any], **needs: Any) -> dict[str, Any]:
    return {"failures": list(findings), **needs}


def patch(test: str, *lines: str) -> dict[str, Any]:
    body = "".join(f"    {line}\n" for line in lines)
    return {"test_name": test, "fixed_code": f"def {test.rpartition('::')[2]}():\n{body}"}


def patches(*them: dict[str, Any]) -> dict[str, Any]:
    return {"patches": list(them)}


def assertion(message: str = "assert 4 == 3") -> Problem:
    return Problem(type="AssertionError", message=message)


def answer(body: object, **facts: Any) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    usage = Usage(input_tokens=10, output_tokens=1)
    return Answer(**{"text": text, "finish_reason": "stop", "usage": usage, "cost": 0.5, **facts})


class Driven:
    """A session and all that happened in it. `checked`: there is a sandbox."""

    def __init__(
        self, job: Job = JOB, *, checked: bool = True, workflow: Workflow = AUTOCODER
    ) -> None:
        self.workflow = workflow
        self.session = workflow.blank("s")
        self.events: list[e.Event] = []
        self.asked: list[r.Request] = []
        self.happens(e.SessionOpened(job=job, workflow=workflow.name, rules=1))
        if checked:
            check = self.wanted(r.CheckSandbox)
            self.brings(check, ImageRef(ref="base", spec_key=check.spec.key))

    @property
    def state(self) -> State:
        return self.session.state

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the calls to a model that were answered."""
        return [q.call.kind for q in self.asked if isinstance(q, r.ModelRequest)]

    @property
    def prompt(self) -> str:
        """What a model is asked now, all messages."""
        return "\n\n".join(m.text for m in self.wanted(r.ModelRequest).call.messages)

    @property
    def wanted_nothing(self) -> bool:
        """Nobody is asked for anything now."""
        return not self.workflow.wanted(self.session)

    def wanted(self, kind: type[Q]) -> Q:
        """The one request of this kind that the session waits for."""
        (request,) = [q for q in self.workflow.wanted(self.session) if isinstance(q, kind)]
        return request

    def happens(self, event: e.Event) -> Driven:
        """Advance by an event, and by all that follows from it."""
        following: e.Event | None = event
        while following is not None:
            self.session = self.workflow.advance(self.session, following)
            self.events.append(following)
            following = self.workflow.settle(self.session)
        return self

    def brings(self, request: r.Request, outcome: Outcome) -> Driven:
        self.asked.append(request)
        return self.happens(self.workflow.interpret(request, outcome))

    def says(self, body: object, **facts: Any) -> Driven:
        """The model answers."""
        return self.brings(self.wanted(r.ModelRequest), answer(body, **facts))

    def call_fails(self, reason: Any = "server_error", **facts: Any) -> Driven:
        failure = CallFailure(reason=reason, message="503", **{"retryable": True, **facts})
        return self.brings(self.wanted(r.ModelRequest), failure)

    def builds(self) -> Driven:
        build = self.wanted(r.BuildImage)
        return self.brings(build, ImageRef(ref="img", spec_key=build.spec.key))

    def build_fails(self, cause: Any, *packages: str) -> Driven:
        failure = BuildFailure(cause=cause, message=f"{cause}!", packages=packages, log="pip: no")
        return self.brings(self.wanted(r.BuildImage), failure)

    def runs(self, outcome: RunOutcome) -> Driven:
        return self.brings(self.wanted(r.RunTests), outcome)

    def breaks(self, missing: bool = False) -> Driven:
        (request, *_) = self.workflow.wanted(self.session)
        return self.brings(request, SandboxFailure(message="the socket is closed", missing=missing))

    def passes(self) -> Driven:
        return self.fails()

    def fails(self, problems: dict[str, Problem] | None = None, **messages: str) -> Driven:
        """The tests run: those that are named fail, the others pass."""
        failing = {**(problems or {}), **{test: assertion(m) for test, m in messages.items()}}
        ids = expected_ids(self.wanted(r.RunTests).spec.files[1].text)
        results = tuple(_result(test, failing.get(test)) for test in ids)
        assert failing.keys() <= set(ids)
        report = TestReport(finished=True, collected=ids, results=results)
        return self.runs(RunOutcome(exit_status=1 if failing else 0, report=report))

    def crashes(self, stderr: str = "ValueError: no", status: int = 1) -> Driven:
        """The script runs and ends with an error."""
        return self.script(RunOutcome(exit_status=status, stderr=stderr))

    def script(self, outcome: RunOutcome) -> Driven:
        """The script runs, without its tests."""
        return self.brings(self.wanted(RunScript), outcome)

    def not_collected(self, problem: Problem) -> Driven:
        return self.runs(RunOutcome(report=TestReport(finished=True, errors=(problem,))))


def _result(test: str, problem: Problem | None) -> TestResult:
    return TestResult(id=test, outcome="failed" if problem else "passed", problem=problem)


def ready(job: Job = JOB, code: object = None, tests: object = None) -> Driven:
    """A session whose tests are about to run."""
    driven = Driven(job).says(code or WRONG).says(tests or TESTS).builds()
    assert driven.state is State.TESTING
    return driven


def labels(session: Session) -> dict[str, str]:
    return {failure.test_id: failure.label.value for failure in session.failures}
