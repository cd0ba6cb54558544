"""From a request to the adapter that answers it, with its time limit, through the boundary."""

from __future__ import annotations

import asyncio

from codetape.engine.boundary import Boundary
from codetape.engine.ports import Clock, Llm, LlmError, Sandbox, SandboxBroken
from codetape.states.requests import BuildRequest, ModelRequest, Request, RunRequest
from codetape.states.values import BuildFailure, CallFailure, Outcome, SandboxFailure, Value

RUN_GRACE = 120.0
"""Seconds that a sandbox has, beyond the limit of a run, to start and to collect."""


class Caller:
    """Makes requests. What comes back is an outcome, whatever happened; bugs alone raise."""

    def __init__(self, llm: Llm, sandbox: Sandbox, clock: Clock, boundary: Boundary) -> None:
        self._llm = llm
        self._sandbox = sandbox
        self._clock = clock
        self._boundary = boundary

    async def call(self, request: Request, delay: float) -> Outcome:
        """Wait `delay` seconds, make the request, and clean what it brings."""
        if delay:
            await self._clock.sleep(delay)
        started = self._clock.monotonic()
        outcome = await self._within_limit(request)
        if not isinstance(outcome, Value):
            raise TypeError(
                f"an adapter answered {request.name} with {outcome!r}, which is no outcome"
            )
        if "seconds" in type(outcome).model_fields and outcome.seconds is None:
            taken = round(self._clock.monotonic() - started, 3)
            outcome = outcome.model_copy(update={"seconds": taken})
        return self._boundary.clean(outcome)

    async def _within_limit(self, request: Request) -> Outcome:
        try:
            async with asyncio.timeout(_limit(request)) as limit:
                return await self._made(request)
        except TimeoutError as error:
            within = f"within {_limit(request):g} seconds" if limit.expired() else "in time"
            return _too_late(request, f"no answer {within}{f': {error}' if str(error) else ''}")

    async def _made(self, request: Request) -> Outcome:
        try:
            match request:
                case ModelRequest():
                    return await self._llm.complete(request.call)
                case BuildRequest():
                    return await self._sandbox.build(request.spec)
                case RunRequest():
                    return await self._sandbox.run(request.spec)
        except LlmError as error:
            return error.failure
        except SandboxBroken as error:
            return error.failure
        raise TypeError(f"{request.name} is no request that an adapter answers")


def _limit(request: Request) -> float:
    match request:
        case ModelRequest():
            return request.call.seconds
        case BuildRequest():
            return request.seconds
        case RunRequest():
            return request.spec.seconds + RUN_GRACE
    raise TypeError(f"{request.name} is no request that an adapter answers")


def _too_late(request: Request, message: str) -> Outcome:
    match request:
        case ModelRequest():
            return CallFailure(reason="timeout", message=message, retryable=True)
        case BuildRequest():
            return BuildFailure(cause="timeout", message=f"the build gave {message}")
    return SandboxFailure(message=f"the sandbox gave {message}")
