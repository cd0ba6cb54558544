"""What happens in a session of the tool maker, beyond what happens in every session."""

from __future__ import annotations

from codetape.states.events import Answered, Ran
from codetape.states.failures import Failure


class FindingWritten(Answered):
    """A persona answered; the text of the answer is the finding.

    `source` is the code in the answer of a persona that writes code, None if there is none that parses
    and for all others; `packages` are the distributions that it imports.
    """

    name = "finding_written"
    persona: str
    source: str | None = None
    packages: tuple[str, ...] = ()


class ScriptRan(Ran):
    """The script ran to its end with status 0."""

    name = "script_ran"


class ScriptCrashed(Ran):
    """The script ended with an error, or a limit ended it."""

    name = "script_crashed"
    failure: Failure


class HarnessWritten(Answered):
    """Assertions on the tool's own functions, as one test function."""

    name = "harness_written"
    source: str
    packages: tuple[str, ...] = ()


class HarnessRefused(Answered):
    """The harness asserts nothing, or redefines what it is to check."""

    name = "harness_refused"
    reasons: tuple[str, ...]
