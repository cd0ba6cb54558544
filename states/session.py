"""The folded session: all that the rules may know, derived from the tape and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import chain
from typing import ClassVar, Literal

from codetape.states import packages
from codetape.states.constraints import Check
from codetape.states.failures import Failure
from codetape.states.job import Job
from codetape.states.machine import State
from codetape.states.python_source import imports_of
from codetape.states.values import (
    BuildFailure,
    CallFailure,
    FailureClass,
    ImageRef,
    ImageSpec,
    RunOutcome,
    WeakTest,
)

NO_JOB = Job(prompt="-")
"""Stands in a session before its first event."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What was paid: sums over the tape. Calls without a usage or a price are counted apart."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    uncounted_calls: int = 0
    unpriced_calls: int = 0

    @property
    def cost(self) -> float | None:
        """US dollars, or None if the price of any call is unknown."""
        return None if self.unpriced_calls else self.usd

    def without(self, other: Totals) -> Totals:
        """Return what was paid beyond `other`, which is a part of this."""
        parts = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Totals(*(mine - theirs for mine, theirs in parts))


@dataclass(frozen=True, slots=True)
class Solution:
    """The present code and what it needs."""

    source: str
    packages: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tests:
    """The present test file and what it needs."""

    __test__: ClassVar[bool] = False

    source: str
    packages: tuple[str, ...] = ()


Verdict = Literal["open", "unproven", "applied", "missing", "refused"]


@dataclass(frozen=True)
class Repair:
    """A repair under way, of the text `before`. `missing` are the fixes that the last answer left out.

    `verdict` is unproven while nobody has said whether the fixes are in; refused where no part of the
    answer could be used. `patched` are the tests that have a patch, of any round.
    """

    of: Literal["code", "tests"]
    before: str = ""
    rounds: int = 0
    verdict: Verdict = "open"
    missing: tuple[str, ...] = ()
    patched: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rejected:
    """A package that does not exist, or a command that fails. `answered`: the model was asked.

    `name` is the requirement as it was asked for: without a version all of the distribution is
    refused, with one only that version.
    """

    name: str
    kind: Literal["package", "system_package", "command"]
    reason: str
    answered: bool = False
    replacement: str | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended. `failure` is None if it ended well."""

    failure: FailureClass | None
    reason: str


@dataclass(frozen=True)
class Session:
    """The auto-coder's session after its last event.

    `tried` holds (identity of a failure, label) for each repair that was made; what was tried of the
    code starts anew when the test is rewritten. `fruitless` are those repairs that changed nothing, so
    that no run could show their worth. `runs` holds a key for each (code, tests, image) that
    ran. `rejections` counts answers of one kind in a row that could not be used, `call_failures` calls
    in a row that brought none, `broken` failures of the sandbox in a row.
    """

    id: str
    state: State = State.NEEDS_CODE
    seq: int = 0
    job: Job = NO_JOB
    sandbox: ImageRef | None = None
    parsed: tuple[str, ...] = ()  # the constraints that were read
    checks: tuple[Check, ...] = ()  # and what came of them
    plan: tuple[str, str] | None = None
    code: Solution | None = None
    tests: Tests | None = None
    image: ImageRef | None = None
    run: RunOutcome | None = None
    build_failure: BuildFailure | None = None
    failed_builds: Mapping[str, BuildFailure] = field(default_factory=dict)  # by key of the spec
    failures: tuple[Failure, ...] = ()
    repair: Repair | None = None
    asked_packages: tuple[str, ...] = ()
    asked_system_packages: tuple[str, ...] = ()
    asked_commands: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    held: BuildFailure | None = None  # a person has to decide on its packages
    allowed: tuple[str, ...] = ()  # packages that a person has allowed
    tried: frozenset[tuple[str, FailureClass]] = frozenset()
    fruitless: frozenset[tuple[str, FailureClass]] = frozenset()
    runs: frozenset[tuple[str, str, str]] = frozenset()
    tested: tuple[Solution | None, Tests | None] = (None, None)  # in the last run, and its failures
    collected: tuple[str, str] = ("", "")  # the last code and tests with which pytest found tests
    history: tuple[str, ...] = ()  # what was tried, in words, for the next prompt
    notes: tuple[str, ...] = ()
    attempts: int = 0
    rejections: int = 0
    unplanned: bool = False  # no answer to the plan could be used: the session goes on without one
    unusable: str = ""  # why the last answer that cost an attempt could not be used
    rejected_kind: str = ""  # the kind of the last answer that could not be used
    rejection: str = ""  # why it could not
    rejected_text: str = ""  # and what it said
    call_failures: int = 0
    call_failure: CallFailure | None = None
    given_up: int = 0  # models that gave no answer; a fallback took over
    broken: int = 0
    broken_builds: int = 0  # in a row, for a reason that may pass
    crashes: int = 0  # ends of the process that ran the session, since the last outcome
    sandbox_missing: bool = False
    weak_tests: tuple[WeakTest, ...] = ()  # of the pass: they check no result
    nulls_unknown: str = ""  # why it is not known whether each test of the pass checks one
    weak_named: bool = False  # the tests that check no result were named once
    comes_back: bool = False  # what kept the tests from being collected had been repaired before
    totals: Totals = field(default_factory=Totals)
    seconds: float = 0.0
    inherited: Totals = field(default_factory=Totals)  # of `totals`, what the parent of a fork paid
    inherited_seconds: float = 0.0
    paused: str | None = None
    ending: Ending | None = None

    @property
    def done(self) -> bool:
        """True at the end of the session: nothing can follow."""
        return self.state is State.DONE

    @property
    def own(self) -> Totals:
        """What the session paid itself; of one that is no fork, everything."""
        return self.totals.without(self.inherited)

    @property
    def sandbox_name(self) -> str:
        """The sandbox that the session runs in: the one that was chosen, else the one asked for."""
        return (self.sandbox and self.sandbox.sandbox) or self.job.sandbox

    @property
    def spec(self) -> ImageSpec:
        """The image that the present code, tests and wishes need."""
        job = self.job
        return _spec(
            (job.base_image, job.python, job.skip_tests),
            (job.base_packages, self.asked_packages),
            (job.system_packages, self.asked_system_packages),
            (job.commands, self.asked_commands),
            self.code,
            self.tests,
            self.rejected,
            self.allowed,
        )

    @property
    def run_key(self) -> tuple[str, str, str]:
        """Equal for equal (code, tests, image specification)."""
        code = self.code.source if self.code else ""
        tests = self.tests.source if self.tests else ""
        return code, tests, self.spec.key

    @property
    def imports(self) -> tuple[str, ...]:
        """What the present code and tests import."""
        sources = (self.code.source if self.code else "", self.tests.source if self.tests else "")
        return imports_of(*sources)

    @property
    def unanswered(self) -> Rejected | None:
        """The first rejected package for which the model was not asked for another."""
        return next((r for r in self.rejected if r.kind != "command" and not r.answered), None)


def base_spec(job: Job) -> ImageSpec:
    """The bare base: to ask for it is to ask whether there is a sandbox."""
    return ImageSpec(base=job.base_image, python=job.python)


@lru_cache(maxsize=256)
def _spec(
    base: tuple[str, str | None, bool],
    named: tuple[tuple[str, ...], ...],
    system: tuple[tuple[str, ...], ...],
    commands: tuple[tuple[str, ...], ...],
    code: Solution | None,
    tests: Tests | None,
    rejected: tuple[Rejected, ...],
    allowed: tuple[str, ...],
) -> ImageSpec:
    """One object for equal needs, so that its key is computed once."""
    image, python, skip_tests = base
    wanted = [*chain(*named), *(code.packages if code else ())]
    wanted += [] if skip_tests else ["pytest", *(tests.packages if tests else ())]
    libraries = [*chain(*system), *(code.system_packages if code else ())]
    refused: dict[tuple[str, str], str | None] = {(r.kind, r.name): r.replacement for r in rejected}
    return ImageSpec(
        base=image,
        python=python,
        requirements=packages.merged(_allowed(wanted, "package", refused)),
        system_packages=tuple(sorted(set(_allowed(libraries, "system_package", refused)))),
        commands=tuple(_allowed(dict.fromkeys(chain(*commands)), "command", refused)),
        allowed=allowed,
    )


def _allowed(
    names: Iterable[str], kind: str, refused: dict[tuple[str, str], str | None]
) -> list[str]:
    """Put replacements in the place of what was rejected; drop what has none."""
    kept = (_final(name, kind, refused) for name in names)
    return [name for name in kept if name]


def _final(name: str, kind: str, refused: dict[tuple[str, str], str | None]) -> str:
    """Follow replacements to the last one; empty if that was rejected too."""
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        whole = packages.name_of(name) if kind == "package" else name
        rejected = next((n for n in (name, whole) if (kind, n) in refused), None)
        if rejected is None:
            return name
        name = refused[kind, rejected] or ""
    return ""
