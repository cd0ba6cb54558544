"""One asynchronous method with two faces: `x.run(…)` waits, `x.run.aio(…)` is awaited."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from codetape.engine.sync import run_sync

Owner = TypeVar("Owner")
P = ParamSpec("P")
R = TypeVar("R")


class TwoFaced(Generic[P, R]):
    """A bound method: call it to wait for the result, or await what `aio` returns."""

    def __init__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> None:
        self._function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return run_sync(self._function(*args, **kwargs))

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Return a coroutine of the same work."""
        return self._function(*args, **kwargs)


class both(Generic[Owner, P, R]):  # noqa: N801 - it is used as a decorator
    """Make an asynchronous method two-faced."""

    def __init__(self, function: Callable[Concatenate[Owner, P], Coroutine[Any, Any, R]]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Owner]) -> both[Owner, P, R]: ...
    @overload
    def __get__(self, owner: Owner, kind: type[Owner] | None = None) -> TwoFaced[P, R]: ...
    def __get__(
        self, owner: Owner | None, kind: type[Owner] | None = None
    ) -> both[Owner, P, R] | TwoFaced[P, R]:
        if owner is None:
            return self
        return TwoFaced(functools.partial(self._function, owner))
