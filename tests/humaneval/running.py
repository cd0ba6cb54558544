"""Runs problems in bubblewrap, several at a time: each solution is a run of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.engine.ports import Sandbox
from codetape.states import events as e
from codetape.states.values import ImageRef, ImageSpec, Limits, RunSpec, TextFile
from codetape.states.verdict import verdict
from codetape.states.weak_tests import EMPTY
from tests.humaneval.problems import Problem

Kind = Literal["right", "wrong", "returning"]

AT_ONCE = 4
LIMITS = Limits(seconds=60.0)


@dataclass(slots=True)
class Score:
    """How many solutions of a kind were judged as they should be; `misjudged` says which were not."""

    of: int = 0
    misjudged: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def good(self) -> int:
        """How many were judged as they should be."""
        return self.of - len(self.misjudged)


KINDS: tuple[Kind, ...] = ("right", "wrong", "returning")
"""The right solution passes; the wrong one fails; tests that return what they compare are no pass."""


def scores(
    chosen: Iterable[Problem], after: Callable[[], None] = lambda: None
) -> dict[Kind, Score]:
    """Run each kind of these problems, and null solutions after it; returns the scores.

    `after` is called after each run.
    """
    return asyncio.run(_scores(list(chosen), after))


async def _scores(chosen: list[Problem], after: Callable[[], None]) -> dict[Kind, Score]:
    sandbox = BubblewrapSandbox()
    try:
        image = await sandbox.build(ImageSpec(base="", requirements=("pytest",)))
        assert isinstance(image, ImageRef), image
        return {kind: await _score(sandbox, image, chosen, after, kind) for kind in KINDS}
    finally:
        await sandbox.close()


async def _score(
    sandbox: Sandbox,
    image: ImageRef,
    chosen: list[Problem],
    after: Callable[[], None],
    kind: Kind,
) -> Score:
    began, turns = time.monotonic(), asyncio.Semaphore(AT_ONCE)

    async def judged(problem: Problem) -> e.Event:
        async with turns:
            spec = _spec(image, *_texts(problem, kind))
            event = verdict(spec, await sandbox.run(spec))
            after()
            return event

    events = await asyncio.gather(*(judged(problem) for problem in chosen))
    found = zip(chosen, events, strict=True)
    misjudged = {one.id: str(event)[:300] for one, event in found if not _fits(one, event, kind)}
    return Score(len(chosen), misjudged, time.monotonic() - began)


def _texts(problem: Problem, kind: Kind) -> tuple[str, str]:
    solution = problem.wrong if kind == "wrong" else problem.right
    return solution, problem.returning if kind == "returning" else problem.tests


def _spec(image: ImageRef, solution: str, tests: str) -> RunSpec:
    files = {"solution.py": solution, "test_solution.py": tests}
    texts = tuple(TextFile(name=name, text=text) for name, text in files.items())
    return RunSpec(purpose="tests", image=image, files=texts, limits=LIMITS, nulls=True)


def _fits(problem: Problem, event: e.Event, kind: Kind) -> bool:
    """Say whether the verdict is right; what is wrong has to fail in its test, not before."""
    if kind == "right":
        if not isinstance(event, e.TestsPassed):
            return False
        return not event.nulls_unknown and not event.weak_tests
    failed = isinstance(event, e.TestsFailed) and event.failures
    told = [(f.test_id, f.problem.type == EMPTY) for f in failed or ()]
    return told == [(problem.test, kind == "returning")]
