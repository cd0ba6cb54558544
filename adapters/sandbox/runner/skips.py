"""Tells a skip of the tests from one that the solution made: a solution must not excuse itself.

A skip (or an xfail) belongs to the tests if the file of tests says so in the statement that raised it,
or at all where no frame is known (marks, decorators); names say so, comments and texts do not. It
belongs to the solution if the innermost frame of both is the solution's, if code without a file raised
it, or if the statement of the tests that called it says nothing of skipping: `add = pytest.skip` has no
frame of its own.
"""

from __future__ import annotations

import ast
import builtins
import sys
import unittest
from collections.abc import Iterator
from types import CodeType
from typing import Any

from codetape.adapters.sandbox.runner.problems import TRACEBACK, Places

WORDS = frozenset(
    [
        *("skip", "skips", "skipif", "skipIf", "skipUnless", "skipTest", "importorskip"),
        *("SkipTest", "Skipped", "xfail", "XFailed", "expectedFailure", "__unittest_skip__"),
    ]
)
CONTEXT = vars(BaseException)["__context__"]
"""The attribute itself: a class of the solution's may have another one of this name."""

GROUP = getattr(builtins, "BaseExceptionGroup", None)  # since Python 3.11


class Skips:
    """Judges skips by the traceback and the text of the tests, read before anything foreign runs."""

    def __init__(self, pytest: Any, places: Places) -> None:
        self._kinds = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)
        self._places = places
        self._machinery = tuple(
            sys.modules[name].__file__ for name in ("_pytest.outcomes", "unittest.case")
        )
        try:
            with open(places.tests, encoding="utf-8") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.Module([], [])
        self._statements = sorted(_statements(tree))
        self._said = set(_said(tree))

    def by_solution(self, error: BaseException | None, outcome: str) -> bool:
        """Say whether the solution made a phase end as `outcome`, "skipped" or "xfailed"."""
        if error is None or (outcome == "xfailed" and not self.is_skip(error)):
            return not self._said
        return any(map(self._made, _parts(error)))

    def _made(self, error: BaseException) -> bool:
        while (place := self._place(error)) is None:
            before = CONTEXT.__get__(error)  # unittest keeps the exception there that it replaces
            if before is None or not self.is_skip(before):
                return not self._said
            error = before
        return place == "solution"

    def is_skip(self, error: BaseException | None) -> bool:
        """Say whether an exception is a skip or an xfail, whatever its class says of itself."""
        return any(kind in type(error).__mro__ for kind in self._kinds)

    def _place(self, error: BaseException) -> str | None:
        """Return whose code raised: "tests", "solution", or None if neither of both is in it."""
        found: str | None = None
        step = TRACEBACK.__get__(error)
        while step is not None:
            found = self._next(found, step.tb_frame.f_code, step.tb_lineno)
            step = step.tb_next
        return {"tests unsaid": "solution", "": None}.get(found or "", found)

    def _next(self, found: str | None, code: CodeType, line: int) -> str | None:
        """Return whose code it is, one frame further in."""
        place, _ = self._places.of(code.co_filename)
        if place == "solution":
            return place
        if place == "tests":
            return place if self._says(line) else "tests unsaid"
        if found is None or found == "solution":
            return found
        if code.co_filename.startswith("<") and not code.co_filename.startswith(
            "<frozen"
        ):  # code that was made from a text
            return "solution"
        return found if code.co_filename in self._machinery else "tests"

    def _says(self, line: int) -> bool:
        """Say whether the innermost statement at a line has such a name."""
        around = [
            (end - begin, begin, end) for begin, end in self._statements if begin <= line <= end
        ]
        _, begin, end = min(around, default=(0, line, line))
        return not self._said.isdisjoint(range(begin, end + 1))


def _parts(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, and those that it is a group of."""
    yield error
    if GROUP is not None and GROUP in type(error).__mro__:
        for part in vars(GROUP)["exceptions"].__get__(error):
            yield from _parts(part)


def _statements(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of each statement; of a compound one those of its head."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else node.end_lineno or node.lineno
            yield node.lineno, max(node.lineno, end - 1 if body else end)


def _said(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of names that skip; those of an import stand for its statement."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            words = {part for alias in node.names for part in alias.name.split(".")}
        else:
            words = {getattr(node, "attr", ""), getattr(node, "id", "")}
        if not words.isdisjoint(WORDS) and isinstance(node, (ast.expr, ast.stmt)):
            yield node.end_lineno or node.lineno
