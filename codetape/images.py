"""The image of a run, by what it holds: the name that a tape has for one is a word of others."""

from __future__ import annotations

from collections.abc import Iterable

from codetape.authority import NotGranted
from codetape.engine.ports import Sandbox, SandboxBroken
from codetape.needs import Need
from codetape.states.session import Session
from codetape.states.values import (
    BuildFailure,
    ImageRef,
    ImageSpec,
    RunOutcome,
    RunSpec,
    SandboxFailure,
)

KINDS = {
    "undecided_package": "package",
    "undecided_system_package": "system package",
    "undecided_command": "command",
}
"""Cause of a build that waits for a person, and the kind of thing that it waits for."""


class OwnImages:
    """A sandbox that runs only in images that it has built itself, or found by what they hold."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._specs: dict[str, ImageSpec] = {}
        self._built: dict[str, ImageRef] = {}

    def look(self, session: Session) -> None:
        """Learn what the image of a session has to hold."""
        self._specs[session.spec.key] = session.spec

    async def find(self, session: Session, gate: Sandbox | None = None) -> None:
        """Find the image that a session goes on with, or build it again behind a gate (its own).

        Of a sandbox that does not work the rules are told later. Raises SandboxBroken where there can
        be no image, NotGranted for what waits for a decision.
        """
        self.look(session)
        if session.done or session.image is None or session.image.spec_key != session.spec.key:
            return
        try:
            built = await (gate or self._sandbox).build(session.spec)
        except SandboxBroken:
            return
        if isinstance(built, BuildFailure):
            raise _not_built(session.id, built)
        self._built[session.spec.key] = built

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Build, and remember the image. Raises SandboxBroken."""
        built = await self._sandbox.build(spec)
        if isinstance(built, ImageRef):
            self._built[spec.key] = built
        return built

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Run in the image that was built for it. Raises SandboxBroken."""
        image = self._built.get(spec.image.spec_key) or await self._again(spec.image)
        if image.ref != spec.image.ref:
            facts = image.model_copy(update={"cached": None, "seconds": None})
            spec = spec.model_copy(update={"image": facts})
        return await self._sandbox.run(spec)

    async def _again(self, named: ImageRef) -> ImageRef:
        spec = self._specs.get(named.spec_key)
        built = await self.build(spec) if spec else None
        if not isinstance(built, ImageRef):
            why = built.message if built else "the tape does not say what it holds"
            raise _broken(f"the image {named.ref} was not built here: {why}")
        return built

    async def close(self) -> None:
        """Close the sandbox."""
        await self._sandbox.close()


def _not_built(session: str, failure: BuildFailure) -> Exception:
    """Return what to raise for a build that failed; a person may decide on what it waits for."""
    if kind := KINDS.get(failure.cause):
        return NotGranted(session, tuple(_needs(kind, failure.packages)))
    return _broken(f"the image of session {session} could not be built again: {failure.message}")


def _needs(kind: str, names: Iterable[str]) -> Iterable[Need]:
    return (Need(name, kind, name) for name in names)


def _broken(message: str) -> SandboxBroken:
    return SandboxBroken(SandboxFailure(message=message))
