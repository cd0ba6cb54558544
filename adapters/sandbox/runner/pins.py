"""Holds pytest and the tests to what they were: hooks, functions, classes, and each test.

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
    *("_pytest.approx", "_pytest.python_api", "_pytest.raises", "_pytest.recwarn", "pytest"),
    *("unittest.case", "pluggy._callers", "pluggy._hooks", "pluggy._manager"),
)
"""Modules that make results, or compare for the tests."""


class PluginsAreOff(Exception):
    """Raised by the registration of a plugin after the start."""


class Pins:
    """Compares with what was there when collection began; `hold` each test when it is found."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._tests: dict[str, dict[str, Any]] = {}
        self._classes: dict[Any, dict[str, Any]] = {}
        _refuse(config.pluginmanager)
        self._hooks = _hooks(config)
        self._held = [
            (place, name, value, _code(value))
            for place in _places()
            for name, value in list(place.items())
            if _code(value) is not None or isinstance(value, type)
        ]

    def hold(self, item: Any) -> None:
        """Note the function, the class and the parameters of a test."""
        self._tests[item.nodeid] = _parts(item)
        if isinstance(own := getattr(item, "cls", None), type) and own not in self._classes:
            self._classes[own] = _methods(own)

    def differs(self, item: Any) -> bool:
        """Say whether a test is another one than the one that was held."""
        held, now = self._tests.get(item.nodeid, {}), _parts(item)
        same = held.keys() == now.keys() and all(held[name] is now[name] for name in held)
        return not same or _hides(item) or _hides(item.session)

    def changed(self) -> bool:
        """Say whether hooks, functions or classes are others than they were."""
        return (
            _hooks(self._config) != self._hooks
            or any(
                not methods.items() <= _methods(own).items()
                for own, methods in self._classes.items()
            )
            or any(
                place.get(name) is not value or _code(value) is not code
                for place, name, value, code in self._held
            )
        )


def _refuse(manager: Any) -> None:
    def register(*_: object, **__: object) -> None:
        raise PluginsAreOff("plugins of pytest are off here: none can be registered")

    def nothing(*_: object, **__: object) -> None:
        """Import no plugin."""

    manager.register = register
    manager.consider_module = manager.consider_env = manager.import_plugin = nothing


def _hooks(config: Any) -> list[object]:
    """Return all that is called for hooks, in its order; it stays alive, so that it can be compared."""
    manager = config.pluginmanager
    found: list[object] = [config.hook is manager.hook, getattr(manager, "_inner_hookexec", None)]
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


def _methods(own: type) -> dict[str, Any]:
    """Return the functions that a class of tests finds for each name, with their code."""
    found = {name: value for base in reversed(own.__mro__) for name, value in vars(base).items()}
    return {name: (value, _code(value)) for name, value in found.items() if _code(value)}


def _parts(item: Any) -> dict[str, Any]:
    """Return all that makes an item the test that it is, by name."""
    function = getattr(item, "function", None)
    around = {name: getattr(item, name) for name in ("parent", "session", "config")}
    params = getattr(getattr(item, "callspec", None), "params", {})
    own = {"item": item, "class": type(item), "function": function, "code": _code(function)}
    return {**around, **own, **{f"parameter {name}": value for name, value in params.items()}}


def _hides(node: Any) -> bool:
    """Say whether a node has something of its own in the place of a method of its class."""
    return any(callable(getattr(type(node), name, None)) for name in vars(node))
