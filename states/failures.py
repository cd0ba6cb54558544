"""A failing test, its label, and what makes two failures the same."""

from __future__ import annotations

import re

from pydantic import Field

from codetape.states.values import FailureClass, Problem, Value

COLLECTION = "(collection)"
"""The test id of a failure that kept pytest from finding the tests."""

WHOLE_RUN = "(run)"
"""The test id of a failure that belongs to no single test."""

SCRIPT = "(script)"
"""The test id of a failure of the script itself."""

_MASKS = (
    (re.compile(r"0x[0-9a-fA-F]+"), "<address>"),
    (re.compile(r"(?:/[\w.+-]+){2,}"), "<path>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"), "#"),
    (re.compile(r"\s+"), " "),
)


_PASSING = (
    (re.compile(r"0x[0-9a-fA-F]+"), "<address>"),
    (re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T _]?\d\d[:.]?\d\d[\d:.+Z-]*|\d\d:\d\d:\d\d[\d.]*"), "<time>"),
    (re.compile(r"\d{9,}(?:\.\d+)?|0?\.\d{12,}"), "<number>"),
    (re.compile(r"(?:/[\w.+-]+){2,}"), "<path>"),
)
"""What the ids of parameters hold that is another one in each run: clocks and random numbers too."""


def lasting_id(test_id: str) -> str:
    """Return a test id without what differs from run to run; numbers that tell cases apart stay."""
    head, bracket, parameters = test_id.partition("[")
    for pattern, mask in _PASSING:
        parameters = pattern.sub(mask, parameters)
    return f"{head}{bracket}{parameters}"


def masked(text: str) -> str:
    """Return `text` without what differs from run to run: numbers, addresses, paths, ids."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text.strip()


def place_of(problem: Problem, first_line: int) -> str:
    """Return where an exception was raised, by the test, from its `first_line`, and by the code.

    Lines of the code move with each repair, so that of it only the function counts.
    """
    lines = [frame.line - first_line for frame in problem.frames if frame.place == "tests"]
    functions = [frame.function for frame in problem.frames if frame.place == "solution"]
    line = f"line {lines[-1]}" if lines and first_line else ""
    return ", ".join(filter(None, (line, *functions[-1:])))


class Failure(Value):
    """One failing test with its evidence and its present label.

    `because` is the evidence for a label that no model was asked for. `fix`, `root_cause`, `expected`
    and `actual` are the words of the diagnosis. `place` is where it was raised, by the test and by the
    code; empty where the report does not tell.
    """

    test_id: str
    problem: Problem
    phase: str = "call"
    captured: str = ""
    label: FailureClass = FailureClass.UNKNOWN
    because: str = ""
    fix: str = ""
    root_cause: str = ""
    expected: str = ""
    actual: str = ""
    place: str = Field(default="", exclude_if=lambda place: not place)

    @property
    def identity(self) -> str:
        """Equal for the same failure: test, exception type, and place.

        The wording of the message is left out, for repairs change it; it stands in where no place is
        known.
        """
        where = self.place or masked(self.problem.message)
        return f"{lasting_id(self.test_id)}|{self.problem.type}|{where}"

    @property
    def headline(self) -> str:
        """The line of the message that tells most: a traceback that a script printed has it last."""
        lines = self.problem.message.strip().split("\n")
        return lines[-1 if self.test_id == SCRIPT else 0]

    @property
    def base_id(self) -> str:
        """The test id without its parameters: `TestX::test_y[1]` is `TestX::test_y`."""
        return base_id(self.test_id)


def plain_id(name: str) -> str:
    """Return a test's id as a report has it, from the ways in which models write one.

    `test_solution.py::TestX::test_y[1]`, `TestX.test_y[1]` and `test_y()` are such ways.
    """
    head, bracket, parameters = name.strip().strip("`").partition("[")
    head = head.rpartition("test_solution.py::")[2].strip().removesuffix("()")
    head = head.replace(".", "::").removeprefix("test_solution::")
    return f"{head}{bracket}{parameters}"


def base_id(test_id: str) -> str:
    """Return a test id without the bracket of its parameters."""
    head, bracket, _ = test_id.partition("[")
    return head if bracket else test_id
