"""What holds for every session, whatever models, sandboxes and operators do.

Hypothesis drives the rules of the auto-coder as the engine does, without an engine: settle, wanted,
an outcome for any of the requests in flight, interpret, advance. The invariants are those of the
testing kit; a failing example shrinks towards the happy path.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.tools.ending import harness_status, status
from codetape.states.workflow import AUTOCODER, TOOLMAKER
from codetape.testing import outcomes, traces, unusable_answers
from codetape.testing.invariants import check
from codetape.testing.playing import Trace


@pytest.mark.timeout(600)  # 300 sessions, on a loaded machine
@settings(max_examples=300, report_multiple_bugs=False)
@given(traces())
def test_every_session_keeps_the_invariants(trace: Trace) -> None:
    check(trace)


@settings(max_examples=150, report_multiple_bugs=False)
@given(traces(workflow=TOOLMAKER))
def test_every_making_of_a_tool_keeps_them_too(trace: Trace) -> None:
    check(trace, TOOLMAKER)


@settings(max_examples=40)
@given(traces(operated=False, workflow=TOOLMAKER))
def test_a_tool_that_nobody_touches_ends_with_a_status(trace: Trace) -> None:
    last = trace[-1].after
    paused = last.held or isinstance(trace[-1].event, e.BudgetSpent)
    assert paused or status(last) is not None
    assert status(last) not in ("passed", "fixed") or harness_status(last) == "passed"


@settings(max_examples=40)
@given(traces(), st.data())
def test_whatever_an_adapter_brings_is_an_event_that_is_accepted(
    trace: Trace, data: st.DataObject
) -> None:
    session = data.draw(st.sampled_from([step.after for step in trace]))
    for request in AUTOCODER.wanted(session):
        event = AUTOCODER.interpret(request, data.draw(outcomes(request)))
        assert AUTOCODER.advance(session, event).seq == session.seq + 1
        if isinstance(request, r.ModelRequest):
            unusable = AUTOCODER.interpret(request, data.draw(unusable_answers(request)))
            assert not isinstance(unusable, e.CodeWritten | e.TestsWritten | e.Diagnosed)


PROGRAM = """
import hashlib
from codetape.engine.codec import pack_event, pack_request
from codetape.states.job import Job
from codetape.testing.chance import Chance
from codetape.testing.playing import played

job = Job(prompt="Add.", max_iterations=6, sandbox_retries=1, base_packages=("b", "a"))
for seed in range(12):
    data = b"".join(hashlib.sha256(f"{seed} {n}".encode()).digest() for n in range(20))
    for step in played(Chance(data, trouble=10), job):
        print(hashlib.sha256(pack_event(step.event).text.encode()).hexdigest())
        print(step.request and pack_request(step.request).key)
"""


def test_no_event_and_no_request_depends_on_the_hash_seed() -> None:
    def told(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    one = told("0")
    assert len(one.split()) > 300
    assert one == told("1")


@settings(max_examples=60)
@given(traces(operated=False))
def test_a_session_that_nobody_touches_ends_or_waits_for_a_person(trace: Trace) -> None:
    last = trace[-1].after
    assert last.done or last.held or isinstance(trace[-1].event, e.BudgetSpent)
