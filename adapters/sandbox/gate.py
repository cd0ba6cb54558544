"""The gate: a policy says of each package whether it may be installed, before anything is built."""

from __future__ import annotations

import asyncio
import difflib
import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Literal, cast, get_args

from codetape.adapters.sandbox.index import Index, Known
from codetape.adapters.sandbox.popular import POPULAR
from codetape.engine.ports import Sandbox
from codetape.states.packages import name_of
from codetape.states.values import BuildFailure, ImageRef, ImageSpec, RunOutcome, RunSpec

Verdict = Literal["allow", "deny", "ask"]
VERDICTS = get_args(Verdict)

ALIKE = 0.85
"""How alike two names are, of 1, for one to be taken for the other."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package that code, tests or a diagnosis ask for.

    `requirement` is its name with extras and versions. `exists` and `young` are what the index says
    (None: it did not, or nobody asked), `resembles` is a popular package of nearly the same name.
    """

    name: str
    requirement: str
    kind: Literal["package", "system_package"] = "package"
    exists: bool | None = None
    young: bool | None = None
    resembles: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a package may be installed; `reason` is what a model or a person is told."""

    verdict: Verdict
    reason: str = ""


Answer = Decision | str
Policy = Callable[[Package], Answer | Awaitable[Answer]]
"""Says allow, deny or ask of a package, with or without a reason, at once or later."""


def known(package: Package) -> Decision:
    """The default: whatever the index has may be installed."""
    if package.exists is not False:
        return Decision("allow")
    hint = f" Was {package.resembles} meant?" if package.resembles else ""
    return Decision("deny", f"The index has no {package.name}.{hint}")


def cautious(package: Package) -> Decision:
    """Ask a person about what is young, or has nearly the name of something popular."""
    if package.resembles and package.exists is not False:
        return Decision("ask", f"{package.name} has nearly the name of {package.resembles}.")
    if package.young:
        return Decision("ask", f"{package.name} was first uploaded less than three months ago.")
    return known(package)


def ask(package: Package) -> Decision:
    """Ask a person about every package that the index has."""
    decision = cautious(package)
    return decision if decision.verdict == "deny" else Decision("ask", decision.reason)


def allow_only(*names: str) -> Callable[[Package], Decision]:
    """Return a policy that allows these and denies all others."""

    def listed(package: Package) -> Decision:
        if package.name in names:
            return Decision("allow")
        return Decision("deny", f"Only these may be installed: {', '.join(names)}.")

    return listed


POLICIES: dict[str, Policy] = {"known": known, "cautious": cautious, "ask": ask}
"""The policies that have a name."""


class Gate:
    """A sandbox that builds nothing with a package in it that its policy does not allow.

    `trusted` are the names that the caller listed; no policy is asked about them. A decision is made
    once for each package.
    """

    def __init__(
        self, sandbox: Sandbox, policy: Policy, index: Index, trusted: Collection[str] = ()
    ) -> None:
        self._sandbox, self._policy, self._index = sandbox, policy, index
        self._trusted = frozenset(trusted)
        self._decided: dict[Package, Decision] = {}

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Build, or say which packages are refused or wait for a person. Raises SandboxBroken."""
        packages = await asyncio.gather(*(self._facts(package) for package in self._asked(spec)))
        decided = [(package, await self._decision(package)) for package in packages]
        for verdict, word in (("deny", "refused"), ("ask", "undecided")):
            stopped = [(p, d) for p, d in decided if d.verdict == verdict]
            if stopped:
                return _failure(word, stopped)
        return await self._sandbox.build(spec)

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Run. Raises SandboxBroken."""
        return await self._sandbox.run(spec)

    async def close(self) -> None:
        """Close the sandbox."""
        await self._sandbox.close()

    def _asked(self, spec: ImageSpec) -> list[Package]:
        found = [Package(name_of(text), text) for text in spec.requirements]
        found += [Package(name, name, "system_package") for name in spec.system_packages]
        settled = self._trusted | frozenset(spec.allowed)
        return [p for p in found if p.name not in settled and p.requirement not in settled]

    async def _facts(self, package: Package) -> Package:
        if package.kind == "system_package":
            return package
        if package.name in POPULAR:
            return Package(package.name, package.requirement, exists=True, young=False)
        seen: Known = await self._index.look(package.name)
        near = difflib.get_close_matches(package.name, POPULAR, n=1, cutoff=ALIKE)
        return Package(
            package.name,
            package.requirement,
            exists=seen.exists,
            young=seen.young,
            resembles=near[0] if near else None,
        )

    async def _decision(self, package: Package) -> Decision:
        if package not in self._decided:
            self._decided[package] = await _decided(self._policy, package)
        return self._decided[package]


async def _decided(policy: Policy, package: Package) -> Decision:
    """Ask the policy; one that fails or says something else leaves it to a person."""
    try:
        answer = policy(package)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception as error:  # noqa: BLE001 - it is the caller's code
        return Decision("ask", f"The policy failed: {error!r}.")
    if isinstance(answer, Decision):
        return answer
    if answer in VERDICTS:
        return Decision(cast("Verdict", answer))
    return Decision("ask", f"The policy said {answer!r}, which is none of allow, deny, ask.")


def _failure(word: str, stopped: Iterable[tuple[Package, Decision]]) -> BuildFailure:
    """One kind at a time: the packages first, then those of the system."""
    stopped = sorted(stopped, key=lambda pair: pair[0].kind != "package")
    kind = stopped[0][0].kind
    of_kind = [(p, d) for p, d in stopped if p.kind == kind]
    reasons = [d.reason or f"{p.name} is {word} by the policy." for p, d in of_kind]
    return BuildFailure.model_validate(
        {
            "cause": f"{word}_{kind}",
            "message": " ".join(dict.fromkeys(reasons)),
            "packages": tuple(p.requirement for p, _ in of_kind),
        }
    )
