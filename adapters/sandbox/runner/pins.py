"""Holds pytest and the tests to what they were: hooks, functions, and the parameters of each test.

Plugins are off from the beginning of collection on: none is imported for `pytest_plugins`, none can be
registered. A change behind the back of the plugin manager is found out when the next test has ended.
That is a fence: code of the same process can change what is compared here, too. Not held are the
contents of parameters, since a test may change a list that it is given, and values of fixtures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

HELD = (
    *(
        "_pytest.runner",
        "_pytest.python",
        "_pytest.reports",
        "_pytest.skipping",
        "_pytest.unittest",
    ),
    *("_pytest.nodes", "_pytest.fixtures", "_pytest.outcomes", "_pytest.main", "_pytest.subtests"),
    *("unittest.case", "pluggy._callers", "pluggy._hooks", "pluggy._manager"),
)
"""Modules that make results."""


class PluginsAreOff(Exception):
    """Raised by the registration of a plugin after the start."""


class Pins:
    """Compares with what was there when collection began; `hold` each test when it is found."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._tests: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {}
        _refuse(manager)
        self._hooks = _hooks(manager)
        self._functions = [
            (place, name, value, _code(value))
            for place in _places()
            for name, value in list(place.items())
            if _code(value) is not None
        ]

    def hold(self, item: Any) -> None:
        """Note the function and the parameters of a test."""
        function = getattr(item, "function", None)
        self._tests[item.nodeid] = (item, function, _code(function), _params(item))

    def differs(self, item: Any) -> bool:
        """Say whether a test is another one than the one that was held."""
        if item.nodeid not in self._tests:
            return True
        held, function, code, params = self._tests[item.nodeid]
        now = getattr(item, "function", None)
        if held is not item or now is not function:
            return True
        given = _params(item)
        same = all(name in given and given[name] is value for name, value in params.items())
        return _code(now) is not code or len(given) != len(params) or not same

    def changed(self) -> bool:
        """Say whether hooks or functions of pytest and unittest are others than at the beginning."""
        return _hooks(self._manager) != self._hooks or any(
            place.get(name) is not value or _code(value) is not code
            for place, name, value, code in self._functions
        )


def _refuse(manager: Any) -> None:
    def register(*_: object, **__: object) -> None:
        raise PluginsAreOff("plugins of pytest are off here: none can be registered")

    def nothing(*_: object, **__: object) -> None:
        """Import no plugin."""

    manager.register = register
    manager.consider_module = manager.consider_env = manager.import_plugin = nothing


def _hooks(manager: Any) -> list[object]:
    """Return all that is called for hooks, in its order; it stays alive, so that it can be compared."""
    found: list[object] = [getattr(manager, "_inner_hookexec", None)]
    for name, caller in vars(manager.hook).items():
        if name.startswith("pytest_"):
            impls = caller.get_hookimpls()
            found += [name, *impls, *(impl.function for impl in impls)]
    return found


def _places() -> Iterator[Any]:
    """Yield the names of each module that makes results, and those of its classes."""
    for module in [sys.modules[name] for name in HELD if name in sys.modules]:
        yield vars(module)
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                yield vars(value)


def _code(value: Any) -> object:
    """Return the code of a function or method; None for anything else."""
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    return value.__code__ if type(value) is FunctionType else None


def _params(item: Any) -> dict[str, Any]:
    return dict(getattr(getattr(item, "callspec", None), "params", {}))
