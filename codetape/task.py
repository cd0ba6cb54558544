"""A solution as a function that can be called again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetape.both import both
from codetape.running import RunFailed

if TYPE_CHECKING:
    from codetape.result import Result


@dataclass(frozen=True)
class Task:
    """Call it with inputs by name and get the typed outputs; `aio` is awaited.

    `retries` is how often a run that failed is made again; `unverified` says that the code need not
    have passed its tests.
    """

    name: str
    result: Result
    retries: int = 0
    unverified: bool = False

    def __call__(self, **inputs: Any) -> Any:
        """Run in a sandbox. Raises ValueError for a wrong input, RunFailed."""
        return self.call(**inputs)

    @both
    async def call(self, /, **inputs: Any) -> Any:
        """Run in a sandbox. Raises ValueError for a wrong input, RunFailed."""
        for _ in range(self.retries):
            try:
                return await self.result.run.aio(unverified=self.unverified, **inputs)
            except RunFailed:
                continue
        return await self.result.run.aio(unverified=self.unverified, **inputs)

    async def aio(self, **inputs: Any) -> Any:
        """The same, awaited."""
        return await self.call.aio(**inputs)
