"""What a state asks for: the requests of a session, the one that the state waits for first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal

from codetape.states import prompts
from codetape.states import requests as r
from codetape.states.constraints import columns_of
from codetape.states.ladder import (
    faulty_code,
    faulty_tests,
    image_would_change,
    tests_to_patch,
    whole_file_due,
)
from codetape.states.machine import State
from codetape.states.script import not_run, with_script
from codetape.states.session import Session, base_spec
from codetape.states.values import HostFile, RunSpec, TextFile

FIRST_DELAY, LONGEST_DELAY = 1.0, 60.0
"""Seconds before the first and between the last of a row of calls, or of builds, that failed."""

LONGEST_ASKED = 3600.0
"""Seconds; some ask for a date of their own clock, or for days. The next failure can say it again."""


def wanted(s: Session) -> tuple[r.Request, ...]:
    """Return the requests that the session calls for; none if it is paused or done."""
    if s.done or s.paused:
        return ()
    if s.sandbox is None:
        return (r.CheckSandbox(spec=base_spec(s.job), seconds=s.job.build_seconds),)
    return _WANTED[s.state](s)


def _needs_code(s: Session) -> tuple[r.Request, ...]:
    if unread := _constraints(s):
        return unread
    if s.plan is None and s.job.plan and not s.unplanned:
        return (r.WritePlan(call=prompts.plan(s)),)
    if s.repair and s.repair.verdict == "unproven":
        fixes = tuple(f.fix for f in faulty_code(s.failures) if f.fix)
        return (r.VerifyCode(call=prompts.verify_code(s, fixes), fixes=fixes),)
    return (r.WriteCode(call=prompts.code(s)),)


def _constraints(s: Session) -> tuple[r.Request, ...]:
    """The constraints that may be checks of a sample's columns; they are read side by side."""
    columns = columns_of(s.job)
    left = [c for c in dict.fromkeys(s.job.constraints) if columns and c not in s.parsed]
    return tuple(
        r.ParseConstraint(
            call=prompts.parse_constraint(s, text, columns), constraint=text, columns=columns
        )
        for text in left
    )


def _needs_tests(s: Session) -> tuple[r.Request, ...]:
    ahead = _build(s) if image_would_change(s) and s.unanswered is None else ()
    return (_test_request(s), *ahead)


def _test_request(s: Session) -> r.Request:
    faults = faulty_tests(s.failures)
    if s.tests is None:
        return r.WriteTests(call=prompts.tests(s))
    if whole_file_due(s):
        return r.WriteTests(call=prompts.tests(s), previous=s.tests.source)
    if s.repair and s.repair.verdict == "unproven":
        fixes = tuple(f.fix for f in faults if f.fix)
        return r.VerifyTests(call=prompts.verify_tests(s, fixes), fixes=fixes)
    failing = tuple(f.test_id for f in tests_to_patch(s))
    return r.PatchTests(call=prompts.patch_tests(s), source=s.tests.source, failing=failing)


def rebuild(s: Session) -> tuple[r.Request, ...]:
    """The image, or first another name for a package that does not exist."""
    if rejected := s.unanswered:
        system = rejected.kind == "system_package"
        call = prompts.replace_package(s, rejected)
        return (r.ReplacePackage(call=call, rejected=rejected.name, system=system),)
    return _build(s)


def _build(s: Session) -> tuple[r.Request, ...]:
    if s.spec.key in s.failed_builds or s.held:
        return ()
    return (r.BuildImage(spec=s.spec, seconds=s.job.build_seconds),)


def _testing(s: Session) -> tuple[r.Request, ...]:
    spec = with_script(s.job, run_of_tests(s))
    if s.job.script_runs and s.broken == 0:  # what they may have broken is run without them
        spec = spec.model_copy(update={"nulls": True})
    named = s.weak_named or s.attempts + 1 >= s.job.attempts
    return (r.RunTests(spec=spec, not_run=not_run(s.job), weak_named=spec.nulls and named),)


def run_of_tests(s: Session) -> RunSpec:
    """Return the run of the present tests against the present code."""
    if s.code is None or s.tests is None:
        raise ValueError("Testing is entered with code and tests")
    code = TextFile(name="solution.py", text=s.code.source)
    return run_of(s, "tests", (code, TextFile(name="test_solution.py", text=s.tests.source)))


def run_of(s: Session, purpose: Literal["tests", "script"], files: tuple[TextFile, ...]) -> RunSpec:
    """Return a run of `files` in the present image, as the job allows it."""
    if s.image is None:
        raise ValueError("Testing is entered with an image")
    return RunSpec(
        purpose=purpose,
        image=s.image.model_copy(update={"cached": None, "seconds": None}),
        files=files,
        host_files=tuple(HostFile(name=x.file, path=x.path) for x in s.job.samples),
        environment=s.job.environment,
        secrets=s.job.secrets,
        network=s.job.network_access,
        limits=s.job.limits,
    )


def _diagnosing(s: Session) -> tuple[r.Request, ...]:
    call = prompts.diagnosis(s)
    return (r.Diagnose(call=call, failures=s.failures, imports=s.imports),)


def nothing(_: Session) -> tuple[r.Request, ...]:
    """A state that asks nobody."""
    return ()


_WANTED: dict[State, Callable[[Session], tuple[r.Request, ...]]] = {
    State.NEEDS_CODE: _needs_code,
    State.NEEDS_TESTS: _needs_tests,
    State.NEEDS_REBUILD: rebuild,
    State.TESTING: _testing,
    State.DIAGNOSING: _diagnosing,
    State.RECLASSIFY: nothing,
    State.DONE: nothing,
}


def delay(s: Session, request: r.Request) -> float:
    """Return the seconds to wait before a request: a call to a model or a build after one that failed.

    What the provider asked for, up to LONGEST_ASKED, else doubling with a jitter of a quarter that
    comes from the seed, so that it is the same in each run and differs between sessions.
    """
    if isinstance(request, r.BuildImage):
        return _doubling(s, s.broken_builds)
    if not isinstance(request, r.ModelRequest) or s.call_failure is None:
        return 0.0
    if asked := s.call_failure.retry_after:  # to ask for no wait is to leave it to us
        return min(asked, LONGEST_ASKED)
    return _doubling(s, s.call_failures)


def _doubling(s: Session, failures: int) -> float:
    if failures == 0:
        return 0.0
    longest = min(FIRST_DELAY * 2.0 ** min(failures - 1, 9), LONGEST_DELAY)
    draw = hashlib.sha256(f"{s.job.seed} {s.id} {s.seq}".encode()).digest()[0] / 255
    return round(longest * (0.75 + 0.25 * draw), 3)
