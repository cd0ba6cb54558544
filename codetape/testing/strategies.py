"""Hypothesis strategies for what comes in from outside, and for the sessions that come of it.

`answers(request)`, `builds(request)`, `runs(spec)` and `outcomes(request)` draw what an adapter may
bring: good and bad, of every kind that the rules know. `traces()` draws whole sessions, driven by the
rules without an engine; `event_sequences()` only their events, `scripts()` what a ScriptedLlm says,
`tapes()` tapes in a store. All of them shrink towards the happy path.

Needs the extra `codetape[testing]`.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock
from codetape.engine import codec
from codetape.engine.tape import Writer
from codetape.replay.reading import Tape, open_tape
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.job import Budget, Column, Job, Sample
from codetape.states.tools.personas import PERSONAS
from codetape.states.values import (
    Answer,
    BuildFailure,
    Declared,
    ImageRef,
    Outcome,
    RunOutcome,
    RunSpec,
)
from codetape.states.workflow import AUTOCODER, Workflow
from codetape.testing.answering import (
    Bodies,
    answer,
    good_answer,
    hostile_answer,
    malformed_answer,
    truncated_answer,
    unusable_answer,
)
from codetape.testing.bringing import build, outcome, run
from codetape.testing.chance import Chance
from codetape.testing.playing import Trace, played


@cache
def chances(size: int = 64) -> SearchStrategy[Chance]:
    """Draw a Chance of `size` bytes, calm or rough."""
    return st.builds(
        Chance, st.binary(min_size=size, max_size=size), st.sampled_from([40, 40, 15, 15, 6, 3])
    )


# --- one outcome ----------------------------------------------------------------------------------


def answers(request: r.ModelRequest, bodies: Bodies | None = None) -> SearchStrategy[Answer]:
    """Draw an answer to `request`: most can be read."""
    return chances().map(lambda chance: answer(chance, request, bodies))


def good_answers(request: r.ModelRequest, bodies: Bodies | None = None) -> SearchStrategy[Answer]:
    """Draw an answer in the form that was asked for; what it says may be right or wrong."""
    return chances().map(lambda chance: good_answer(chance, request, bodies))


def unusable_answers(request: r.ModelRequest) -> SearchStrategy[Answer]:
    """Draw an answer that is cut, refused, empty, no JSON, of another shape, or wrong in content."""
    return chances().map(lambda chance: unusable_answer(chance, request))


def truncated_answers(request: r.ModelRequest) -> SearchStrategy[Answer]:
    """Draw an answer that was cut off, or of which nothing came."""
    return chances().map(lambda chance: truncated_answer(chance, request))


def malformed_answers(request: r.ModelRequest) -> SearchStrategy[Answer]:
    """Draw an answer that is no JSON, of another shape, or wrong in what it says."""
    return chances().map(lambda chance: malformed_answer(chance, request))


def hostile_answers(request: r.ModelRequest) -> SearchStrategy[Answer]:
    """Draw an answer that attacks whoever reads it."""
    return chances().map(lambda chance: hostile_answer(chance, request))


def builds(request: r.BuildRequest) -> SearchStrategy[ImageRef | BuildFailure]:
    """Draw what a build brings."""
    return chances().map(lambda chance: build(chance, request))


def runs(spec: RunSpec) -> SearchStrategy[RunOutcome]:
    """Draw a run of the tests of `spec`: reports of all kinds, limits, and no report at all."""
    return chances().map(lambda chance: run(chance, spec))


def outcomes(request: r.Request, bodies: Bodies | None = None) -> SearchStrategy[Outcome]:
    """Draw what an adapter may bring for `request`."""
    return chances().map(lambda chance: outcome(chance, request, bodies))


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
        script_runs=st.booleans(),
        inputs=st.sampled_from([(), (), (Declared(name="limit", type="int"),)]),
        outputs=st.sampled_from([(), (Declared(name="total", type="int"),)]),
        sandbox_retries=st.integers(0, 2),
        personas=st.just(PERSONAS),
        fix_cycles=st.integers(0, 3),
        call_retries=st.integers(0, 3),
        base_packages=st.sampled_from([(), ("pandas",)]),
        fallback_models=st.sampled_from([(), (), ("another",)]),
        samples=st.sampled_from([(), (), (table,)]),
        constraints=st.sampled_from([(), ("value is positive", "no value is odd")]),
        budget=st.sampled_from(budgets),
        seed=st.integers(0, 9),
    )


@st.composite
def traces(
    draw: DrawFn,
    *,
    operated: bool = True,
    workflow: Workflow = AUTOCODER,
    bodies: Bodies | None = None,
) -> Trace:
    """Draw a session, as `played` plays it; with `operated`, an operator interferes a few times."""
    posted = dict(draw(_interference())) if operated else {}
    return played(draw(chances(400)), draw(jobs()), posted, workflow, bodies)


@cache
def _interference() -> SearchStrategy[list[tuple[int, e.Event]]]:
    return st.lists(st.tuples(st.integers(1, 40), outside_events()), max_size=4)


def event_sequences(
    workflow: Workflow = AUTOCODER, bodies: Bodies | None = None
) -> SearchStrategy[tuple[e.Event, ...]]:
    """Draw events that the table accepts one after the other, from the opening on."""
    drawn = traces(workflow=workflow, bodies=bodies)
    return drawn.map(lambda trace: tuple(step.event for step in trace))


def scripts(
    workflow: Workflow = AUTOCODER, bodies: Bodies | None = None
) -> SearchStrategy[dict[str, list[Answer]]]:
    """Draw what a ScriptedLlm says, by kind of call: all the answers of a whole session."""
    drawn = traces(operated=False, workflow=workflow, bodies=bodies)
    return drawn.map(_script)


def _script(trace: Trace) -> dict[str, list[Answer]]:
    script: dict[str, list[Answer]] = {}
    for step in trace:
        if isinstance(step.request, r.ModelRequest) and isinstance(step.outcome, Answer):
            script.setdefault(step.request.call.kind, []).append(step.outcome)
    return script


def tapes(workflow: Workflow = AUTOCODER, bodies: Bodies | None = None) -> SearchStrategy[Tape]:
    """Draw the tape of a whole session, in a memory store of its own."""
    drawn = traces(workflow=workflow, bodies=bodies)
    return drawn.map(lambda trace: tape_of(trace, workflow))


def tape_of(trace: Trace, workflow: Workflow = AUTOCODER) -> Tape:
    """Write a session that was played to a tape, as the engine would have."""
    store = MemoryStore()
    lease = store.create("s", workflow.name, "a drawn session", "a test")
    session, writer = workflow.blank("s"), Writer(store, workflow, FixedClock(), lease)
    for step in trace:
        asked = codec.pack_request(step.request) if step.request else None
        session, _ = writer.record(session, step.event, asked)
    writer.release()
    return open_tape(store, "s", workflows=(workflow,))
