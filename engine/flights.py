"""Requests in flight: started when wanted, cancelled when no longer wanted, finished one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass

from codetape.engine.codec import Asked, pack_request
from codetape.states.requests import Request
from codetape.states.values import Outcome


@dataclass(slots=True)
class Flight:
    """A request and the task that brings its outcome; `started` is the clock's monotonic time."""

    asked: Asked
    task: asyncio.Task[Outcome]
    started: float


class AdapterFault(Exception):
    """An adapter raised `error` in the place of an outcome."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Flights:
    """The requests in flight, by key, so that one survives a change of state if it is still wanted."""

    def __init__(
        self,
        start: Callable[[Request, float], Awaitable[Outcome]],
        monotonic: Callable[[], float],
    ) -> None:
        self._start = start
        self._monotonic = monotonic
        self._flights: dict[str, Flight] = {}

    def __iter__(self) -> Iterator[Flight]:
        return iter(tuple(self._flights.values()))

    @property
    def landed(self) -> bool:
        """True if an outcome has come in and was not taken yet."""
        return any(flight.task.done() for flight in self._flights.values())

    async def match(self, wanted: Iterable[Request], delay: Callable[[Request], float]) -> None:
        """Start what is wanted and not in flight; cancel what is in flight and no longer wanted.

        `delay` gives the seconds that a request waits before it is made.
        """
        keyed = {asked.key: asked for asked in map(pack_request, wanted)}
        await self._cancel([key for key in self._flights if key not in keyed])
        known, self._flights = self._flights, {}
        for key, asked in keyed.items():
            self._flights[key] = known.get(key) or self._launched(asked, delay(asked.request))

    def _launched(self, asked: Asked, delay: float) -> Flight:
        task = asyncio.ensure_future(self._start(asked.request, delay))
        return Flight(asked, task, self._monotonic())

    async def first(self, bell: asyncio.Event) -> tuple[Asked, Outcome] | None:
        """Return the first request to finish, or None if `bell` rings before one does.

        Of several that have finished, the first in the order in which they are wanted. Raises
        AdapterFault where none of them has an outcome.
        """
        if not self._flights:
            raise RuntimeError("nothing is in flight: the rules ask for nothing and are not done")
        ring = asyncio.ensure_future(bell.wait())
        try:
            tasks = [flight.task for flight in self._flights.values()]
            await asyncio.wait([*tasks, ring], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ring.cancel()
        if (landed := self._taken(self._flights)) is None and (fault := self._fault(self._flights)):
            raise fault
        return landed

    def take(self, wanted: Iterable[Request]) -> tuple[Asked, Outcome] | None:
        """Return an outcome that has come in and is still wanted, without waiting for one."""
        return self._taken(asked.key for asked in map(pack_request, wanted))

    def fault(self, wanted: Iterable[Request]) -> AdapterFault | None:
        """Return the fault of an adapter, if one came instead of an outcome that is still wanted."""
        return self._fault(asked.key for asked in map(pack_request, wanted))

    def _taken(self, keys: Iterable[str]) -> tuple[Asked, Outcome] | None:
        for flight in self._landed(keys):
            if _error(flight) is None:
                del self._flights[flight.asked.key]
                return flight.asked, flight.task.result()
        return None

    def _fault(self, keys: Iterable[str]) -> AdapterFault | None:
        error = next(filter(None, map(_error, self._landed(keys))), None)
        return AdapterFault(error) if error else None

    def _landed(self, keys: Iterable[str]) -> Iterator[Flight]:
        known = filter(None, map(self._flights.get, keys))
        return (flight for flight in known if flight.task.done())

    async def close(self) -> None:
        """Cancel everything and wait until it has ended."""
        await self._cancel(list(self._flights))

    async def _cancel(self, keys: list[str]) -> None:
        tasks = [self._flights.pop(key).task for key in keys]
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        # A cancelled request has no outcome; what it raises on the way out concerns nobody.
        await asyncio.gather(*tasks, return_exceptions=True)


def _error(flight: Flight) -> BaseException | None:
    """Return what the task of a flight that has ended raised; nobody cancelled it."""
    if flight.task.cancelled():
        name = flight.asked.request.name
        return RuntimeError(f"an adapter was cancelled from inside while it was to {name}")
    return flight.task.exception()
