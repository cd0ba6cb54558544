"""K. The gate: commands, system packages and packages of a model wait for the same decision."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.sandbox.gate import POLICIES, Gate, Package, Policy, allow_only
from codetape.adapters.sandbox.index import Known
from codetape.composition import gated
from codetape.engines import _in_asked_names, decision
from codetape.running import run_solution
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.job import Job
from codetape.states.machine import State
from codetape.states.packages import system_package
from codetape.states.values import BuildFailure, ImageRef, ImageSpec
from tests.unit.states.driving import RIGHT, TESTS, Driven, diagnosis, finding

COMMAND = "pip install ./x && touch /etc/seen"


class Nothing:
    """An index that says nothing."""

    async def look(self, name: str) -> Known:
        return Known()


def build(policy: Policy, spec: ImageSpec, job: Job | None = None) -> tuple[Any, list[ImageSpec]]:
    inner = FakeSandbox()
    gate: Any = gated(inner, policy, job) if job else Gate(inner, policy, Nothing())
    return asyncio.run(gate.build(spec)), inner.specs


def held(command: str = COMMAND) -> Driven:
    """A session whose model asked for a command that a policy leaves to a person."""
    driven = Driven().says(RIGHT).says(TESTS).builds().fails(test_a="FileNotFoundError: no font")
    wish = diagnosis(finding("test_a", "environment"), needs_additional_commands=[command])
    driven.says(wish)
    return driven.build_fails("undecided_command", command)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_each_named_policy_asks_about_commands(policy: str) -> None:
    outcome, built = build(POLICIES[policy], ImageSpec(base="", commands=(COMMAND,)))
    assert (outcome.cause, outcome.packages) == ("undecided_command", (COMMAND,))
    assert built == []


def test_a_list_of_packages_denies_commands() -> None:
    for names in ((), ("pip",), ("make",)):
        outcome, built = build(allow_only(*names), ImageSpec(base="", commands=(COMMAND,)))
        assert (outcome.cause, outcome.packages, built) == ("refused_command", (COMMAND,), [])


def test_a_function_of_the_caller_decides_on_commands() -> None:
    seen: list[Package] = []

    def every(package: Package) -> str:
        seen.append(package)
        return "allow"

    outcome, _ = build(every, ImageSpec(base="", commands=(COMMAND,)))
    assert isinstance(outcome, ImageRef)
    assert seen == [Package(COMMAND, COMMAND, "command")]


def test_only_the_very_commands_of_the_caller_are_trusted() -> None:
    job = Job(prompt="p", commands=("make fonts",))
    assert isinstance(
        build(POLICIES["ask"], ImageSpec(base="", commands=job.commands), job)[0], ImageRef
    )
    for other in ("make  fonts", "make fonts; id", " make fonts", "make"):
        outcome, _ = build(POLICIES["ask"], ImageSpec(base="", commands=("make fonts", other)), job)
        assert (outcome.cause, outcome.packages) == ("undecided_command", (other,))


@pytest.mark.parametrize(
    "command", ["true\nid", "true \x1b[2K", "true \u202eid", "true " + "x" * 2000, "a\u200bb"]
)
def test_a_command_that_no_question_can_show_is_refused(command: str) -> None:
    outcome, _ = build(POLICIES["known"], ImageSpec(base="", commands=(command,)))
    assert outcome.cause == "refused_command"
    assert "one line" in outcome.message


def test_a_cached_image_does_not_pass_the_gate() -> None:
    spec = ImageSpec(base="", commands=(COMMAND,))
    inner = FakeSandbox()
    asyncio.run(Gate(inner, lambda _: "allow", Nothing()).build(spec))
    outcome = asyncio.run(Gate(inner, POLICIES["ask"], Nothing()).build(spec))
    assert isinstance(outcome, BuildFailure)


def test_trust_in_a_system_package_is_none_in_a_distribution() -> None:
    job = Job(prompt="p", system_packages=("ffmpeg",), base_packages=("graphviz",))
    both = ImageSpec(base="", requirements=("ffmpeg",), system_packages=("ffmpeg",))
    outcome, _ = build(POLICIES["ask"], both, job)
    assert (outcome.cause, outcome.packages) == ("undecided_package", ("ffmpeg",))
    other = ImageSpec(base="", requirements=("graphviz",), system_packages=("graphviz",))
    outcome, _ = build(POLICIES["ask"], other, job)
    assert (outcome.cause, outcome.packages) == ("undecided_system_package", ("graphviz",))
    outcome, _ = build(allow_only("graphviz"), other)
    assert (outcome.cause, outcome.packages) == ("refused_system_package", ("graphviz",))


def test_an_allowed_name_counts_for_its_kind_only() -> None:
    """What a person allowed as a package lets neither a system package nor a command through."""
    spec = ImageSpec(
        base="", system_packages=("numpy",), commands=("pip",), allowed=("numpy", "pip")
    )
    assert build(POLICIES["ask"], spec)[0].cause == "undecided_system_package"
    spec = ImageSpec(
        base="", requirements=("make",), allowed=("command make", "system_package make")
    )
    assert build(POLICIES["ask"], spec)[0].cause == "undecided_package"


def test_a_list_takes_names_in_any_spelling() -> None:
    spec = ImageSpec(base="", requirements=("numpy>=2", "python-dateutil", "uvicorn[standard]"))
    outcome, _ = build(allow_only("NumPy", "python_dateutil", "Uvicorn[standard]"), spec)
    assert isinstance(outcome, ImageRef)
    listed = allow_only("pandas", system_packages=("git",))
    assert isinstance(build(listed, ImageSpec(base="", system_packages=("git",)))[0], ImageRef)


def test_a_held_command_pauses_with_a_question_in_one_line() -> None:
    driven = held()
    assert driven.names[-2:] == ["packages_held", "paused"]
    assert COMMAND in (driven.session.paused or "")
    assert "run" in (driven.session.paused or "")


def test_a_command_is_allowed_exactly_as_written() -> None:
    for near in ("pip", "pip install ./x", f" {COMMAND}", COMMAND.upper()):
        answer = _in_asked_names(decision(None, [near], []), held().session)
        driven = held().happens(answer)
        assert driven.wanted(r.BuildImage).spec.allowed == ()
    driven = held().happens(_in_asked_names(decision(None, [COMMAND], []), held().session))
    spec = driven.wanted(r.BuildImage).spec
    assert spec.commands == (COMMAND,)
    assert isinstance(
        build(POLICIES["ask"], spec.model_copy(update={"requirements": ()}))[0], ImageRef
    )


def test_commands_with_the_same_first_word_are_decided_apart() -> None:
    answer = decision(None, ["make a"], ["make b"])
    assert (answer.allow, answer.deny) == (("make a",), ("make b",))


@pytest.mark.parametrize("how", ["denied", "refused"])
def test_a_command_that_is_not_wanted_is_built_no_more(how: str) -> None:
    if how == "denied":
        driven = held().happens(e.Resumed(deny=(COMMAND,)))
    else:
        driven = (
            Driven().says(RIGHT).says(TESTS).builds().fails(test_a="FileNotFoundError: no font")
        )
        wish = diagnosis(finding("test_a", "environment"), needs_additional_commands=[COMMAND])
        driven.says(wish).build_fails("refused_command", COMMAND)
    assert driven.session.spec.commands == ()
    assert [(x.kind, x.name) for x in driven.session.rejected] == [("command", COMMAND)]
    assert driven.state is not State.DONE


def test_running_builds_nothing_that_still_waits() -> None:
    """A paused session has code; its image would hold a command that was never allowed."""
    sandbox = FakeSandbox()
    with pytest.raises(Exception, match="could not be built"):
        asyncio.run(run_solution(held().session, sandbox, {}))
    assert sandbox.specs == []


@pytest.mark.parametrize(
    "name",
    [
        "libx11.",
        "x.deb",
        "foo+",
        "foo-",
        "foo/bookworm",
        "foo=1",
        "task^",
        "*",
        "a",
        ".x",
        "libx11.+",
        "foo:i386",
        "?all",
        "~nfoo",
        "Foo",
        "foo\n",
        "-y",
        "a..",
        "x.changes",
        "x.dsc",
    ],
)
def test_an_expression_of_apt_is_no_system_package(name: str) -> None:
    with pytest.raises(ValueError, match="no system package name"):
        system_package(name if name != "foo\n" else "fo o")
