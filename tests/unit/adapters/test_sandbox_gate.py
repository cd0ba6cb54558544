"""The gate before a sandbox: what a policy decides is known before anything is built."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.sandbox.gate import (
    Decision,
    Gate,
    Package,
    Policy,
    allow_only,
    ask,
    cautious,
    known,
)
from codetape.adapters.sandbox.index import Known
from codetape.states.values import BuildFailure, ImageRef, ImageSpec

ODD = "codetape-odd"


class Shelf:
    """An index of what is on it; it remembers who was looked for."""

    def __init__(self, **names: Known) -> None:
        self._names = {name.replace("_", "-"): known for name, known in names.items()}
        self.looked: list[str] = []

    async def look(self, name: str) -> Known:
        self.looked.append(name)
        return self._names.get(name, Known(exists=False))


def build(policy: Policy, *requirements: str, **facts: Any) -> tuple[Any, list[ImageSpec], Shelf]:
    shelf = facts.pop("shelf", Shelf(codetape_odd=Known(exists=True, young=False)))
    inner = FakeSandbox()
    gate = Gate(inner, policy, shelf, facts.pop("trusted", ("pytest",)))
    spec = ImageSpec(base="", requirements=requirements, **facts)
    return asyncio.run(gate.build(spec)), inner.specs, shelf


def test_c7_an_unknown_name_is_refused_before_anything_is_built() -> None:
    outcome, built, _ = build(known, "numpy", "nobody-has-this>=2")
    assert isinstance(outcome, BuildFailure)
    assert outcome.cause == "refused_package"
    assert outcome.packages == ("nobody-has-this>=2",)
    assert outcome.message == "The index has no nobody-has-this."
    assert built == []


def test_c7_a_young_name_is_left_to_a_person() -> None:
    shelf = Shelf(codetape_odd=Known(exists=True, young=True))
    outcome, built, _ = build(cautious, ODD, shelf=shelf)
    assert (outcome.cause, outcome.packages) == ("undecided_package", (ODD,))
    assert "less than three months" in outcome.message
    assert built == []
    assert isinstance(build(known, ODD, shelf=shelf)[0], ImageRef)


def test_c7_a_name_near_a_popular_one_is_left_to_a_person() -> None:
    shelf = Shelf(reqeusts=Known(exists=True, young=False))
    outcome, _, _ = build(cautious, "reqeusts", shelf=shelf)
    assert outcome.cause == "undecided_package"
    assert "nearly the name of requests" in outcome.message
    missing, _, _ = build(cautious, "reqeusts", shelf=Shelf())
    assert missing.cause == "refused_package"
    assert missing.message.endswith("Was requests meant?")


def test_what_nobody_can_say_is_built() -> None:
    outcome, built, _ = build(cautious, ODD, shelf=Shelf(codetape_odd=Known()))
    assert isinstance(outcome, ImageRef)
    assert len(built) == 1


def test_popular_and_trusted_names_are_looked_up_by_nobody() -> None:
    outcome, _, shelf = build(cautious, "numpy>=2", "pytest", "mine", trusted=("pytest", "mine"))
    assert isinstance(outcome, ImageRef)
    assert shelf.looked == []


def test_what_a_person_allowed_is_asked_no_more() -> None:
    assert build(ask, "numpy")[0].cause == "undecided_package"
    for allowed in ("numpy>=2", "numpy"):
        outcome, _, _ = build(ask, "numpy>=2", allowed=(allowed,))
        assert isinstance(outcome, ImageRef)


def test_a_policy_may_wait_for_somebody_and_is_asked_once_for_each_package() -> None:
    asked: list[Package] = []

    async def slow(package: Package) -> Decision:
        asked.append(package)
        await asyncio.sleep(0)
        return Decision("deny", "Not here.")

    gate = Gate(FakeSandbox(), slow, Shelf())
    spec = ImageSpec(base="", requirements=("numpy",))
    first, second = (asyncio.run(gate.build(spec)) for _ in range(2))
    assert first == second
    assert isinstance(first, BuildFailure)
    assert (first.cause, first.message) == ("refused_package", "Not here.")
    assert asked == [Package("numpy", "numpy", exists=True, young=False)]


def broken(_: Package) -> Any:
    raise RuntimeError("the list is gone")


@pytest.mark.parametrize(
    ("policy", "why"), [(broken, "RuntimeError('the list is gone')"), (lambda _: None, "None")]
)
def test_a_policy_that_fails_or_says_nothing_allows_nothing(policy: Policy, why: str) -> None:
    outcome, built, _ = build(policy, "numpy")
    assert outcome.cause == "undecided_package"
    assert why in outcome.message
    assert built == []


def test_refusals_come_before_questions_and_packages_before_those_of_the_system() -> None:
    def by_name(package: Package) -> Any:
        return {"numpy": "ask", "pandas": "deny", "libx": "deny"}[package.name]

    everything, _, _ = build(by_name, "numpy", "pandas", system_packages=("libx",))
    assert (everything.cause, everything.packages) == ("refused_package", ("pandas",))
    system, _, _ = build(by_name, "numpy", system_packages=("libx",))
    assert (system.cause, system.packages) == ("refused_system_package", ("libx",))
    question, _, _ = build(by_name, "numpy")
    assert (question.cause, question.packages) == ("undecided_package", ("numpy",))


def test_a_list_of_what_may_be_installed() -> None:
    outcome, _, _ = build(allow_only("numpy"), "numpy", "pandas")
    assert outcome.packages == ("pandas",)
    assert outcome.message == "Only these may be installed: numpy."


def test_the_question_whether_there_is_a_sandbox_is_asked_of_no_policy() -> None:
    assert isinstance(build(broken)[0], ImageRef)
