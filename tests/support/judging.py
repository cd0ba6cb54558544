"""Real runs in bubblewrap, judged: what the rules make of what a sandbox says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.states import events as e
from codetape.states.values import ImageRef, ImageSpec, RunOutcome, TestReport
from codetape.states.verdict import verdict
from codetape.testing.sandbox_runs import SOLUTION, run_spec


@dataclass(frozen=True, slots=True)
class Judged:
    """A run, and the event that it becomes."""

    event: e.Event
    run: RunOutcome

    @property
    def report(self) -> TestReport:
        assert self.run.report is not None
        return self.run.report

    @property
    def labels(self) -> dict[str, str]:
        """The label of each failure."""
        if isinstance(self.event, e.TestsFailed):
            return {failure.test_id: failure.label.value for failure in self.event.failures}
        if isinstance(self.event, e.TestsNotCollected):
            return {self.event.failure.test_id: self.event.failure.label.value}
        return {}


class Judge:
    """Runs tests in one sandbox."""

    def __init__(self) -> None:
        self._sandbox = BubblewrapSandbox()

    def tests(
        self, tests: str, solution: str = SOLUTION, requires: tuple[str, ...] = (), **more: Any
    ) -> Judged:
        """Run tests of a solution, in an image with pytest and what it `requires`."""

        async def once() -> Judged:
            needed = ImageSpec(base="", requirements=("pytest", *requires))
            image = await self._sandbox.build(needed)
            assert isinstance(image, ImageRef), image
            spec = run_spec(image, purpose="tests", solution=solution, tests=tests, **more)
            outcome = await self._sandbox.run(spec)
            return Judged(verdict(spec, outcome), outcome)

        return asyncio.run(once())

    def close(self) -> None:
        asyncio.run(self._sandbox.close())


@contextmanager
def judge() -> Iterator[Judge]:
    """Make a judge for as long as the block lasts."""
    made = Judge()
    try:
        yield made
    finally:
        made.close()
