"""Runs problems in bubblewrap, several at a time: each solution is a run of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.engine.ports import Sandbox
from codetape.states import events as e
from codetape.states.values import ImageRef, ImageSpec, Limits, RunSpec, TextFile
from codetape.states.verdict import verdict
from tests.humaneval.problems import Problem

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


def scores(
    chosen: Iterable[Problem], after: Callable[[], None] = lambda: None
) -> tuple[Score, Score]:
    """Run the right and the wrong solutions of these problems; returns the score of each kind.

    `after` is called after each run.
    """
    return asyncio.run(_scores(list(chosen), after))


async def _scores(chosen: list[Problem], after: Callable[[], None]) -> tuple[Score, Score]:
    sandbox = BubblewrapSandbox()
    try:
        image = await sandbox.build(ImageSpec(base="", requirements=("pytest",)))
        assert isinstance(image, ImageRef), image
        right = await _score(sandbox, image, chosen, after, wrong=False)
        return right, await _score(sandbox, image, chosen, after, wrong=True)
    finally:
        await sandbox.close()


async def _score(
    sandbox: Sandbox,
    image: ImageRef,
    chosen: list[Problem],
    after: Callable[[], None],
    *,
    wrong: bool,
) -> Score:
    began, turns = time.monotonic(), asyncio.Semaphore(AT_ONCE)

    async def judged(problem: Problem) -> e.Event:
        async with turns:
            spec = _spec(image, problem.wrong if wrong else problem.right, problem.tests)
            event = verdict(spec, await sandbox.run(spec))
            after()
            return event

    events = await asyncio.gather(*(judged(problem) for problem in chosen))
    found = zip(chosen, events, strict=True)
    misjudged = {one.id: str(event)[:300] for one, event in found if not _fits(one, event, wrong)}
    return Score(len(chosen), misjudged, time.monotonic() - began)


def _spec(image: ImageRef, solution: str, tests: str) -> RunSpec:
    files = {"solution.py": solution, "test_solution.py": tests}
    texts = tuple(TextFile(name=name, text=text) for name, text in files.items())
    return RunSpec(purpose="tests", image=image, files=texts, limits=LIMITS)


def _fits(problem: Problem, event: e.Event, wrong: bool) -> bool:
    """Say whether the verdict is right; a wrong solution has to fail in its test, not before."""
    if not wrong:
        return isinstance(event, e.TestsPassed)
    return isinstance(event, e.TestsFailed) and [f.test_id for f in event.failures] == [
        problem.test
    ]
