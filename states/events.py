"""Everything that can happen in a session, in the past tense.

An event is a few facts, frozen. `name` and `version` are what a tape holds; a changed payload gets a
new version and an upcast. An event that tells of an outcome carries it whole, so that a replay can
ask today's rules what they make of it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from codetape.states.constraints import Check
from codetape.states.failures import Failure
from codetape.states.job import Budget, Job
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    FailureClass,
    ImageRef,
    Outcome,
    RunOutcome,
    SandboxFailure,
    Value,
    WeakTest,
)

KNOWN: dict[str, type[Event]] = {}
"""All events by name: an event is known once its class is defined."""


class Event(Value):
    """Base of all events. A class that sets `name` is an event; two of one name are a TypeError."""

    name: ClassVar[str]
    version: ClassVar[int] = 1

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if "name" not in cls.__dict__:
            return
        other = KNOWN.setdefault(cls.name, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{cls.__qualname__}: there is an event {cls.name} already, {other}")
        KNOWN[cls.name] = cls

    @property
    def outcome(self) -> Outcome | None:
        """What an adapter brought, where this event tells of it."""
        return None


class Answered(Event):
    """Base of the events that a model's answer brought.

    `repairs` tell what a lenient reader changed in the form of the answer.
    """

    answer: Answer
    repairs: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        return self.answer


class Built(Event):
    """Base of the events that a finished build brought."""

    image: ImageRef

    @property
    def outcome(self) -> Outcome | None:
        return self.image


class BuildEnded(Event):
    """Base of the events that a build without an image brought."""

    failure: BuildFailure

    @property
    def outcome(self) -> Outcome | None:
        return self.failure


class Ran(Event):
    """Base of the events that a run brought.

    `expected` are the tests that the text of the file defines for certain; those that pytest found are
    in the report.
    """

    run: RunOutcome
    expected: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        return self.run


# --- opening --------------------------------------------------------------------------------------


class SessionOpened(Event):
    """Somebody asked for something. `rules` numbers the rule set that the session lives under."""

    name = "session_opened"
    job: Job
    workflow: str
    rules: int


class Forked(Event):
    """The tape goes on from event `seq` of the session `parent`, whose events are its first ones.

    `job` is what is asked for from here on, None if that is as it was; `changed` names what differs.
    `given` says that the next event tells of an outcome which did not happen: a person gave it.
    """

    name = "forked"
    parent: str
    seq: int
    job: Job | None = None
    changed: tuple[str, ...] = ()
    given: bool = False


class SandboxReady(Built):
    """There is a sandbox; nothing was paid for before this."""

    name = "sandbox_ready"


# --- NeedsCode ------------------------------------------------------------------------------------


class Planned(Answered):
    name = "planned"
    description: str
    approach: str


class ConstraintParsed(Answered):
    """A constraint was read; `check` is None if it is none of a column. `unread`: see FixesVerified."""

    name = "constraint_parsed"
    constraint: str
    check: Check | None = None
    unread: str = ""


class CodeWritten(Answered):
    """A solution that parses. `packages` are distributions: what the answer lists and the imports."""

    name = "code_written"
    source: str
    packages: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()


class FixesVerified(Answered):
    """A model read whether the fixes are in the code; `missing` are those that are not.

    `unread` says why an answer could not be read: then nothing is known, and the run decides.
    """

    name = "fixes_verified"
    missing: tuple[str, ...] = ()
    unread: str = ""


# --- NeedsTests -----------------------------------------------------------------------------------


class TestsWritten(Answered):
    """A test file that parses and has tests."""

    __test__: ClassVar[bool] = False

    name = "tests_written"
    source: str
    packages: tuple[str, ...] = ()


class TestsPatched(Answered):
    """Failing tests were replaced. `unpatched` failed too and got no usable patch."""

    __test__: ClassVar[bool] = False

    name = "tests_patched"
    source: str
    packages: tuple[str, ...] = ()
    patched: tuple[str, ...]
    unpatched: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class PatchRefused(Answered):
    """No patch could be used: it weakens a test, drops one, does not parse or changes nothing."""

    name = "patch_refused"
    reasons: tuple[str, ...]


class PatchesVerified(Answered):
    """A model read whether the fixes are in the tests; like FixesVerified."""

    name = "patches_verified"
    missing: tuple[str, ...] = ()
    unread: str = ""


# --- NeedsRebuild ---------------------------------------------------------------------------------


class ImageBuilt(Built):
    name = "image_built"


class PackageRejected(BuildEnded):
    """A package does not exist, or a policy refuses it, or a command failed. It is remembered."""

    name = "package_rejected"


class PackagesHeld(BuildEnded):
    """A policy leaves it to a person whether packages may be installed; nothing was built."""

    name = "packages_held"


class PackageReplaced(Answered):
    """A model named another package for a rejected one, or none; `unread` as in FixesVerified."""

    name = "package_replaced"
    rejected: str
    replacement: str | None = None
    unread: str = ""


class BuildFailed(BuildEnded):
    """The image could not be built for a reason that no single package has."""

    name = "build_failed"


# --- Testing --------------------------------------------------------------------------------------


class TestsPassed(Ran):
    """Every expected test was reported, one passed at least, none failed, the end marker is there.

    If the run tells of the script itself, it ended well and left every declared output in its type;
    `script_not_run` says why it could not be run. `weak_tests` check no result and are not counted:
    others do; `nulls_unknown` says why that is not known.
    """

    __test__: ClassVar[bool] = False

    name = "tests_passed"
    script_not_run: str = ""
    weak_tests: tuple[WeakTest, ...] = ()
    nulls_unknown: str = ""


class TestsFailed(Ran):
    __test__: ClassVar[bool] = False

    name = "tests_failed"
    failures: tuple[Failure, ...]


class ScriptFailed(Ran):
    """The tests passed; the script itself failed, or left a declared output out, or in another type."""

    name = "script_failed"
    failures: tuple[Failure, ...]


class TestsNotCollected(Ran):
    """No test was executed; the label of `failure` says whose fault it is."""

    __test__: ClassVar[bool] = False

    name = "tests_not_collected"
    failure: Failure


class SandboxBroke(Event):
    """The sandbox, not the code. `run` is set where a run ended without any evidence."""

    name = "sandbox_broke"
    failure: SandboxFailure
    run: RunOutcome | None = None

    @property
    def outcome(self) -> Outcome | None:
        return self.run or self.failure


class RepairFailed(Event):
    """A repair changed nothing that a run could show: the same code, tests and image ran before."""

    name = "repair_failed"
    reason: str


# --- Diagnosing, Reclassify -----------------------------------------------------------------------


class Needs(Value):
    """What a diagnosis asks the image to hold."""

    packages: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class Diagnosed(Event):
    """Every failure has a label. `answer` is None where evidence alone was enough."""

    name = "diagnosed"
    by: Literal["evidence", "model"]
    failures: tuple[Failure, ...]
    needs: Needs = Needs()
    answer: Answer | None = None
    repairs: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        return self.answer


class Relabelled(Value):
    """The label of one failure before and after."""

    test_id: str
    before: FailureClass
    after: FailureClass


class Reclassified(Event):
    """What keeps coming back got the next label; the failures are the same ones."""

    name = "reclassified"
    labels: tuple[Relabelled, ...]


# --- anywhere -------------------------------------------------------------------------------------


class AnswerRejected(Answered):
    """An answer was paid for and cannot be used."""

    name = "answer_rejected"
    kind: str
    reason: Literal["truncated", "refused", "empty", "malformed", "invalid"]
    detail: str


class CallFailed(Event):
    """A call brought no answer; whether and when it is made again is a rule."""

    name = "call_failed"
    kind: str
    failure: CallFailure

    @property
    def outcome(self) -> Outcome | None:
        return self.failure


class AttemptsSpent(Event):
    name = "attempts_spent"
    attempts: int


class BudgetSpent(Event):
    """A limit of the budget does not allow the next call; the session pauses.

    `next` is the most that the call might take, as far as its own limits tell.
    """

    name = "budget_spent"
    limit: Literal["usd", "tokens", "calls", "seconds"]
    spent: float
    allowed: float
    next: float = 0.0


class Paused(Event):
    name = "paused"
    by: str


class Resumed(Event):
    """Somebody goes on, after a pause or a crash; `budget` replaces the old one where it is set.

    `allow` and `deny` decide on the packages that were held.
    """

    name = "resumed"
    budget: Budget | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Noted(Event):
    """An operator's note; what is asked from now on carries it, like the request itself."""

    name = "noted"
    text: str


class Cancelled(Event):
    name = "cancelled"
    by: str


EVENTS: tuple[type[Event], ...] = (
    SessionOpened,
    Forked,
    SandboxReady,
    ConstraintParsed,
    Planned,
    CodeWritten,
    FixesVerified,
    TestsWritten,
    TestsPatched,
    PatchRefused,
    PatchesVerified,
    ImageBuilt,
    PackageRejected,
    PackagesHeld,
    PackageReplaced,
    BuildFailed,
    TestsPassed,
    TestsFailed,
    ScriptFailed,
    TestsNotCollected,
    SandboxBroke,
    RepairFailed,
    Diagnosed,
    Reclassified,
    AnswerRejected,
    CallFailed,
    AttemptsSpent,
    BudgetSpent,
    Paused,
    Resumed,
    Noted,
    Cancelled,
)
"""The events of the auto-coder, in the order of a session's life."""
