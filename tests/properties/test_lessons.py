"""What a tape teaches is the same every time, bounded, and nothing where nothing was repaired."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from codetape.states import events as e
from codetape.states.job import Job
from codetape.states.lessons import LONGEST_DIFF, LONGEST_PART, MOST, lessons
from codetape.states.tools.events import ScriptCrashed
from codetape.states.tools.personas import PERSONAS
from codetape.states.workflow import AUTOCODER, TOOLMAKER, Workflow
from codetape.testing.chance import Chance
from codetape.testing.playing import played
from codetape.testing.strategies import chances

LONGEST = 4 * LONGEST_PART + LONGEST_DIFF * 101
FAILED = (e.TestsFailed, e.TestsNotCollected, ScriptCrashed)


@pytest.mark.parametrize("workflow", [AUTOCODER, TOOLMAKER], ids=lambda one: one.name)
@settings(max_examples=60, deadline=None)
@given(chance=chances(400))
def test_what_a_tape_teaches(workflow: Workflow, chance: Chance) -> None:
    job = Job(prompt="Add.", personas=PERSONAS, max_iterations=6)
    events = [step.event for step in played(chance, job, workflow=workflow)]
    told = lessons(workflow, events)
    assert told == lessons(workflow, iter(events))
    assert len(told) <= MOST
    assert len(set(told)) == len(told)
    assert all(0 < len(lesson) <= LONGEST for lesson in told)
    before = lessons(workflow, events[:-1])
    assert told[: len(before)] == before  # what was learned stays as it is
    runs = [event for event in events if isinstance(event, e.Ran)]
    if not any(isinstance(event, FAILED) for event in runs[:-1]):
        assert told == ()
