"""Packages that wait for a person, and packages that a policy refuses."""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.machine import State
from codetape.states.values import ImageSpec
from tests.unit.states.driving import TESTS, Driven

YAML = {"code": "import yaml\n\n\ndef add(a, b):\n    return a + b\n"}


def held() -> Driven:
    return Driven().says(YAML).says(TESTS).build_fails("undecided_package", "pyyaml")


def test_a_held_package_pauses_the_session_with_a_question() -> None:
    driven = held()
    assert driven.names[-2:] == ["packages_held", "paused"]
    assert "may pyyaml be installed? undecided_package!" in (driven.session.paused or "")
    assert driven.session.attempts == 0


def test_tests_are_written_while_a_package_waits() -> None:
    """The image is built ahead; a question about it takes nothing from what was paid for."""
    driven = Driven().says(YAML)
    driven.build_fails("undecided_package", "pyyaml")
    assert driven.state is State.NEEDS_TESTS
    assert driven.session.paused is None
    driven.says(TESTS)
    assert driven.names[-2:] == ["tests_written", "paused"]


def test_what_was_allowed_is_asked_for_as_allowed_and_is_the_same_image() -> None:
    driven = held()
    before = driven.session.spec.key
    driven.happens(e.Resumed(allow=("pyyaml",)))
    spec = driven.wanted(r.BuildImage).spec
    assert spec.allowed == ("pyyaml",)
    assert spec.key == before
    assert driven.builds().passes().state is State.DONE


def test_what_was_denied_is_asked_of_the_model_and_never_built() -> None:
    driven = held().happens(e.Resumed(deny=("pyyaml",)))
    assert driven.wanted(r.ReplacePackage).rejected == "pyyaml"
    assert "does not want it installed" in driven.prompt
    driven.says({"replacement": "ruamel-yaml"})
    assert driven.wanted(r.BuildImage).spec.requirements == ("pytest", "ruamel-yaml")


def test_nobody_decided_so_it_is_asked_again() -> None:
    driven = held().happens(e.Resumed(allow=("something-else",)))
    assert driven.session.paused is None
    assert driven.wanted(r.BuildImage).spec.allowed == ()
    driven.build_fails("undecided_package", "pyyaml")
    assert driven.session.paused


def test_denied_wins_over_nothing_and_allowed_over_denied() -> None:
    driven = held().happens(e.Resumed(allow=("pyyaml",), deny=("pyyaml",)))
    assert driven.wanted(r.BuildImage).spec.allowed == ("pyyaml",)


@pytest.mark.parametrize("cause", ["refused_package", "unknown_package"])
def test_a_refused_package_is_replaced_once_and_remembered(cause: str) -> None:
    driven = Driven().says(YAML).says(TESTS).build_fails(cause, "pyyaml")
    assert driven.names[-1] == "package_rejected"
    assert f"{cause}!" in driven.prompt  # the reason
    driven.says({"replacement": None})
    assert driven.wanted(r.BuildImage).spec.requirements == ("pytest",)
    assert driven.kinds.count("replace_package") == 1


def test_a_refused_system_package_is_left_out() -> None:
    code = {**YAML, "system_packages": ["libyaml-dev"]}
    driven = Driven().says(code).says(TESTS).build_fails("refused_system_package", "libyaml-dev")
    driven.says({"replacement": None})
    assert driven.wanted(r.BuildImage).spec.system_packages == ()


def test_a_package_is_decided_on_by_its_name_too() -> None:
    code = {**YAML, "packages": ["pyyaml>=6"]}
    driven = Driven().says(code).says(TESTS).build_fails("undecided_package", "pyyaml>=6")
    assert driven.happens(e.Resumed(allow=("pyyaml",))).session.allowed == ("pyyaml>=6",)


def test_who_allowed_is_no_part_of_what_an_image_holds() -> None:
    spec = ImageSpec(base="b", requirements=("numpy",))
    assert spec.model_copy(update={"allowed": ("numpy",)}).key == spec.key
    assert ImageSpec(base="b").key != spec.key
