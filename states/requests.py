"""What a state asks of the outside world.

A request is a frozen value and carries all that is needed to interpret its outcome, so that the rules
read an outcome the same way at once, after a crash and in a replay.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from codetape.states.failures import Failure
from codetape.states.values import ImageSpec, LlmCall, RunSpec, Value


class Request(Value):
    """Base of all requests; `name` is what people see of it."""

    name: ClassVar[str]


class ModelRequest(Request):
    """Base of the requests that a model answers."""

    call: LlmCall


class BuildRequest(Request):
    """Base of the requests that a sandbox builds for; `seconds` is the limit of wall clock."""

    spec: ImageSpec
    seconds: float


class RunRequest(Request):
    """Base of the requests that a sandbox runs."""

    spec: RunSpec


class CheckSandbox(BuildRequest):
    """Is there a sandbox? Asked before anything is paid."""

    name = "check_sandbox"


class ParseConstraint(ModelRequest):
    """Which check of which column is a constraint? `columns` are those of all samples."""

    name = "parse_constraint"
    constraint: str
    columns: tuple[str, ...]


class WritePlan(ModelRequest):
    name = "write_plan"


class WriteCode(ModelRequest):
    name = "write_code"


class VerifyCode(ModelRequest):
    """Are the fixes in the code? Asked only where their text does not tell."""

    name = "verify_code"
    fixes: tuple[str, ...]


class WriteTests(ModelRequest):
    """A test file; `previous` is the one that it replaces, which the prompt has too."""

    name = "write_tests"
    previous: str = Field(default="", exclude=True)  # no part of the key, which old tapes have


class PatchTests(ModelRequest):
    """Other bodies for the tests at fault, in the file `source`."""

    name = "patch_tests"
    source: str
    failing: tuple[str, ...]


class VerifyTests(ModelRequest):
    """Are the fixes in the tests? Asked only where their text does not tell."""

    name = "verify_tests"
    fixes: tuple[str, ...]


class BuildImage(BuildRequest):
    name = "build_image"


class ReplacePackage(ModelRequest):
    name = "replace_package"
    rejected: str
    system: bool


class RunTests(RunRequest):
    """The tests, and then what the spec says: null solutions, and the script itself.

    `not_run` says why the script is not run. `weak_named` says that tests which check no result are
    not to be named (again).
    """

    name = "run_tests"
    not_run: str = Field(default="", exclude_if=lambda reason: not reason)
    weak_named: bool = Field(default=False, exclude_if=lambda named: not named)


class Diagnose(ModelRequest):
    """Is the solution wrong, or the test? `failures` are all of this run, labelled ones included."""

    name = "diagnose"
    failures: tuple[Failure, ...]
    imports: tuple[str, ...] = ()
