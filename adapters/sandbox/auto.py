"""The first of several sandboxes that works, found when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from codetape.engine.ports import Sandbox, SandboxBroken
from codetape.states.values import (
    BuildFailure,
    ImageRef,
    ImageSpec,
    RunOutcome,
    RunSpec,
    SandboxFailure,
)


class FirstWorking:
    """Tries sandboxes in order, once; the first that works is used from then on.

    A bare process is never among them unless the caller puts it there.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Sandbox]]) -> None:
        self._makers = makers
        self._chosen: Sandbox | None = None
        self._name = ""
        self._choosing = asyncio.Lock()

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        built = await (await self._sandbox(spec)).build(spec)
        if isinstance(built, ImageRef):
            return built.model_copy(update={"sandbox": self._name})
        return built

    async def run(self, spec: RunSpec) -> RunOutcome:
        return await (await self._sandbox(ImageSpec(base=""))).run(spec)

    async def close(self) -> None:
        if self._chosen is not None:
            await self._chosen.close()

    async def _sandbox(self, spec: ImageSpec) -> Sandbox:
        async with self._choosing:
            if self._chosen is None:
                self._chosen = await self._first(ImageSpec(base=spec.base, python=spec.python))
            return self._chosen

    async def _first(self, bare: ImageSpec) -> Sandbox:
        reasons: list[str] = []
        for name, make in self._makers.items():
            sandbox = make()
            found: ImageRef | BuildFailure | SandboxFailure
            try:
                found = await sandbox.build(bare)
            except SandboxBroken as broken:
                found = broken.failure
            if isinstance(found, ImageRef):
                self._name = name
                return sandbox
            reasons.append(f"{name}: {found.message}")
            await sandbox.close()
        message = f"no sandbox works here. {' | '.join(reasons)}"
        raise SandboxBroken(SandboxFailure(message=message, missing=True))
