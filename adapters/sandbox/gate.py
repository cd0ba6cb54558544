"""The gate: a policy decides on each package and command, before anything is built."""

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
from codetape.states.packages import KINDS, Kind, name_of, permission, requirement
from codetape.states.values import BuildFailure, ImageRef, ImageSpec, RunOutcome, RunSpec

Verdict = Literal["allow", "deny", "ask"]
VERDICTS = get_args(Verdict)

LONGEST = 500
"""Characters of a command that a person can be asked about."""

ALIKE = 0.85
"""How alike two names are, of 1, for one to be taken for the other."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package, system package or command that code, tests or a diagnosis ask for.

    `requirement` is its name with extras and versions; of a command, both are the command itself.
    `exists` and `young` are what the index says (None: it did not, or nobody asked), `resembles` is a
    popular package of nearly the same name.
    """

    name: str
    requirement: str
    kind: Kind = "package"
    exists: bool | None = None
    young: bool | None = None
    resembles: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a package may be installed, or a command be run; `reason` is told with it."""

    verdict: Verdict
    reason: str = ""


Answer = Decision | str
Policy = Callable[[Package], Answer | Awaitable[Answer]]
"""Says allow, deny or ask of a package, with or without a reason, at once or later."""


def commands_asked(package: Package) -> Decision:
    """Ask a person about each command, and about nothing else."""
    return Decision("ask" if package.kind == "command" else "allow")


def known(package: Package) -> Decision:
    """The default: whatever the index has may be installed; commands are asked about."""
    if package.kind == "command":
        return commands_asked(package)
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
    """Ask a person about every command, and every package that the index has."""
    decision = cautious(package)
    return decision if decision.verdict == "deny" else Decision("ask", decision.reason)


def allow_only(*names: str, system_packages: Iterable[str] = ()) -> Callable[[Package], Decision]:
    """Return a policy that allows these packages and denies all others, and all commands.

    A name allows every version and extra of a package, a name with a version only that requirement.
    Raises ValueError for what is no package name.
    """
    packages, system = frozenset(map(requirement, names)), frozenset(system_packages)
    told = ", ".join([*names, *sorted(system)])

    def listed(package: Package) -> Decision:
        if package.kind == "command":
            return Decision("deny", "Only packages are allowed, and no command.")
        known_as = {package.name, package.requirement}
        if known_as & (system if package.kind == "system_package" else packages):
            return Decision("allow")
        return Decision("deny", f"Only these may be installed: {told}.")

    return listed


POLICIES: dict[str, Policy] = {"known": known, "cautious": cautious, "ask": ask}
"""The policies that have a name."""


class Forgetting:
    """A sandbox for a tape of others: a gate that hears nothing of what the tape says is allowed."""

    def __init__(self, gate: Sandbox) -> None:
        self._gate = gate

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Build what the gate lets through by itself. Raises SandboxBroken."""
        return await self._gate.build(spec.model_copy(update={"allowed": ()}))

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Run. Raises SandboxBroken."""
        return await self._gate.run(spec)

    async def close(self) -> None:
        """Close the sandbox."""
        await self._gate.close()


class Gate:
    """A sandbox that builds nothing with a package or command that its policy does not allow.

    `trusted` has the permissions (states.packages.permission) of what the caller listed; no policy is
    asked about that. A decision is made once for each package and command.
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
        found += [Package(command, command, "command") for command in spec.commands]
        settled = self._trusted | frozenset(spec.allowed)
        return [p for p in found if settled.isdisjoint(_permissions(p))]

    async def _facts(self, package: Package) -> Package:
        if package.kind != "package":
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
            self._decided[package] = _askable(package, await _decided(self._policy, package))
        return self._decided[package]


def _permissions(package: Package) -> set[str]:
    return {permission(package.kind, text) for text in (package.name, package.requirement)}


def _askable(package: Package, decision: Decision) -> Decision:
    """Deny a command that a question cannot show as it is: a person would allow another one."""
    shown = package.name.isprintable() and len(package.name) <= LONGEST
    if package.kind != "command" or decision.verdict != "ask" or shown:
        return decision
    return Decision(
        "deny", f"A command has to be one line of at most {LONGEST} visible characters."
    )


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
    """One kind at a time: the packages first, then those of the system, then commands."""
    stopped = sorted(stopped, key=lambda pair: KINDS.index(pair[0].kind))
    kind = stopped[0][0].kind
    of_kind = [(p, d) for p, d in stopped if p.kind == kind]
    reasons = [d.reason or _without_reason(p, word) for p, d in of_kind]
    return BuildFailure.model_validate(
        {
            "cause": f"{word}_{kind}",
            "message": " ".join(dict.fromkeys(reasons)),
            "packages": tuple(p.requirement for p, _ in of_kind),
        }
    )


def _without_reason(package: Package, word: str) -> str:
    named = "The command" if package.kind == "command" else package.name
    return f"{named} is {word} by the policy."
