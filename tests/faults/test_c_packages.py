"""Faults of packages and images: from what an answer asks for to what is built, with a fake sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import Build, FakeSandbox, failed, not_collected
from codetape.adapters.store.memory import MemoryStore
from codetape.engine.tape import read
from codetape.states import events as e
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.values import (
    BuildFailure,
    FailureClass,
    Frame,
    ImageRef,
    ImageSpec,
    Problem,
)
from tests.support.sessions import ID, JOB, TESTS, engine

PLAIN = JOB.model_copy(update={"plan": False})
CODE = "def add(a, b):\n    return a + b\n"


class Played:
    """A session with one code answer after the other, on a sandbox that builds as it is told."""

    def __init__(
        self,
        *codes: dict[str, Any],
        builds: Sequence[Build] = (),
        runs: Sequence[Any] = (),
        job: Job = PLAIN,
        sandbox: FakeSandbox | None = None,
        **others: Sequence[Any],
    ) -> None:
        script = {"code": [{"code": CODE, **code} for code in codes], "tests": [TESTS], **others}
        self.store, self.llm = MemoryStore(), ScriptedLlm(script)
        self.sandbox = sandbox or FakeSandbox([built, *builds], runs)  # the first one is the check
        self.session: Session = asyncio.run(
            engine(self.store, self.llm, self.sandbox).start(ID, job)
        )

    @property
    def events(self) -> list[e.Event]:
        return [record.event for record in read(self.store, ID)]

    @property
    def kinds(self) -> list[str]:
        return [call.kind for call in self.llm.calls]

    @property
    def failure(self) -> FailureClass | None:
        assert self.session.ending is not None
        return self.session.ending.failure


def built(spec: ImageSpec) -> ImageRef:
    return ImageRef(ref=spec.key[:12], spec_key=spec.key)


def rejecting(kind: str) -> Build:
    """A builder that knows none of the packages."""

    def build(spec: ImageSpec) -> ImageRef | BuildFailure:
        listed = spec.system_packages if kind == "unknown_system_package" else spec.requirements
        bad = tuple(name for name in listed if name != "pytest")[:1]
        if not bad:
            return built(spec)
        facts = {"cause": kind, "message": f"there is no {bad[0]}", "packages": bad}
        return BuildFailure.model_validate(facts)

    return build


# --- names ----------------------------------------------------------------------------------------

SHELL = ["pandas; id", "--index-url=https://evil.example", "a\nRUN b", "foo @ https://evil.example"]


@pytest.mark.parametrize("field", ["packages", "system_packages"])
@pytest.mark.parametrize("name", SHELL)
def test_c2_what_is_no_name_reaches_no_build(name: str, field: str) -> None:
    played = Played({field: [name]}, {field: [name]})
    rejected = [event for event in played.events if isinstance(event, e.AnswerRejected)]
    assert [event.reason for event in rejected] == ["invalid", "invalid"]
    assert repr(name) in rejected[0].detail
    assert [spec.requirements for spec in played.sandbox.specs] == [()]
    assert played.failure is FailureClass.MODEL


@pytest.mark.parametrize("name", SHELL)
def test_c2_no_replacement_and_no_diagnosis_brings_one_in(name: str) -> None:
    diagnosis = {
        "failures": [{"test_name": "test_add", "error_type": "environment"}],
        "needs_language_packages": [name, "openpyxl"],
    }
    played = Played(
        {"packages": ["nosuch"]},
        builds=[rejecting("unknown_package")],
        runs=[failed({"test_add": ("KeyError", "'x'")})],
        replace_package=[{"replacement": name}],
        diagnosis=[diagnosis],
    )
    assert [spec.requirements for spec in played.sandbox.specs[1:]] == [
        ("nosuch", "pytest"),
        ("pytest",),
        ("openpyxl", "pytest"),
    ]


DECOYS = {
    "cv2": "opencv-python-headless",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "git": "gitpython",
    "dotenv": "python-dotenv",
    "Crypto": "pycryptodome",
    "dateutil": "python-dateutil",
}


def test_c4_neither_an_import_nor_a_wish_becomes_the_distribution_of_another() -> None:
    meant = (*sorted({*DECOYS.values(), "pytest"}),)
    imports = "".join(f"import {name}\n" for name in DECOYS)
    assert Played({"code": imports + CODE}).sandbox.specs[-1].requirements == meant
    assert Played({"packages": list(DECOYS)}).sandbox.specs[-1].requirements == meant


# --- builds ---------------------------------------------------------------------------------------

INSTALLED = Problem(
    type="ImportError",
    message="cannot import name 'escape' from 'jinja2'",
    frames=(
        Frame(place="tests", file="test_solution.py", line=1, function="<module>"),
        Frame(place="solution", file="solution.py", line=1, function="<module>"),
        Frame(place="installed", file="flask/__init__.py", line=14, function="<module>"),
    ),
)
PINNED = {
    "failures": [{"test_name": "(collection)", "error_type": "logic"}],
    "needs_language_packages": ["jinja2<3.1"],
}


def broken_on_import(_: Any) -> Any:
    return not_collected(INSTALLED.type, INSTALLED.message, frames=INSTALLED.frames)


def broken_in_a_test(spec: Any) -> Any:
    return failed({"test_add": INSTALLED})(spec)


@pytest.mark.parametrize("run", [broken_on_import, broken_in_a_test])
def test_c8_what_an_installed_package_cannot_import_is_no_fault_of_the_code(run: Any) -> None:
    asking = {"packages": ["flask==1.0"]}
    played = Played(asking, {**asking, "code": CODE + "\n"}, runs=[run], diagnosis=[PINNED])
    event = next(event for event in played.events if isinstance(event, e.Ran))
    (failure,) = event.failures if isinstance(event, e.TestsFailed) else (event.failure,)  # type: ignore[attr-defined]
    assert failure.label is FailureClass.ENVIRONMENT
    assert failure.because == "an installed package cannot import what it needs"


def test_c8_the_missing_version_is_asked_for_and_the_code_is_kept() -> None:
    asking = {"packages": ["flask==1.0"]}
    played = Played(asking, runs=[broken_in_a_test], diagnosis=[PINNED])
    assert played.kinds == ["code", "tests", "diagnosis"]
    assert played.sandbox.specs[-1].requirements == ("flask==1.0", "jinja2<3.1", "pytest")
    assert played.failure is None


class NeverBuilding(FakeSandbox):
    """Finds its base, and never comes to the end of a build."""

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        if spec.requirements:
            await asyncio.Event().wait()
        return await super().build(spec)


def test_c9_a_build_that_never_ends_has_a_limit_and_a_typed_failure() -> None:
    job = PLAIN.model_copy(update={"build_seconds": 0.05})
    played = Played({}, job=job, sandbox=NeverBuilding())
    failed_builds = [event for event in played.events if isinstance(event, e.BuildFailed)]
    assert [event.failure.cause for event in failed_builds] == ["timeout"]
    assert played.failure is FailureClass.INFRASTRUCTURE
    assert played.session.ending is not None
    assert "within 0.05 seconds" in played.session.ending.reason


def test_c10_other_commands_make_another_image() -> None:
    specs = [
        Played({}, job=PLAIN.model_copy(update={"commands": commands})).sandbox.specs[-1]
        for commands in ((), ("make a",), ("make a", "make b"), ("make b", "make a"))
    ]
    assert len({spec.key for spec in specs}) == 4
    assert len({spec.requirements for spec in specs}) == 1


@pytest.mark.parametrize(
    ("kind", "field"),
    [("unknown_package", "packages"), ("unknown_system_package", "system_packages")],
)
def test_c11_where_no_name_is_left_nothing_runs_without_its_image(kind: str, field: str) -> None:
    names = [{"replacement": f"bad{n}"} for n in range(20)]
    played = Played(
        {field: ["bad"]}, builds=[rejecting(kind)] * 30, job=PLAIN, replace_package=names
    )
    assert played.sandbox.runs == []
    assert played.failure is FailureClass.ENVIRONMENT
    assert played.session.ending is not None
    assert "bad, bad0, bad1" in played.session.ending.reason


def test_c12_equal_specs_of_two_sessions_are_one_image() -> None:
    listed = Played({"packages": ["numpy", "Pandas"], "system_packages": ["libb", "liba"]})
    turned = Played({"packages": ["pandas", "NumPy"], "system_packages": ["liba", "libb", "liba"]})
    assert listed.session.image == turned.session.image
