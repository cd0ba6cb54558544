"""What a session asks for: no more than it needs, and the same question for the same need."""

from __future__ import annotations

import pytest

from codetape.engine.codec import pack_request
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.job import Sample
from codetape.states.machine import State
from codetape.states.session import Session
from codetape.states.values import Declared, HostFile, ImageRef, Limits
from codetape.states.wanting import run_of_tests
from codetape.states.workflow import AUTOCODER
from tests.unit.states.driving import CODES, JOB, TESTS, WRONG, Driven

ASKING = {**WRONG, "packages": ["nosuch"]}


def kinds(driven: Driven) -> list[str]:
    return [request.name for request in AUTOCODER.wanted(driven.session)]


def test_the_sandbox_is_asked_for_before_anything_is_paid() -> None:
    assert kinds(Driven(checked=False)) == ["check_sandbox"]


def test_the_image_is_built_while_the_tests_are_written() -> None:
    driven = Driven().says(WRONG)
    assert kinds(driven) == ["write_tests", "build_image"]
    assert kinds(driven.builds()) == ["write_tests"]
    assert driven.says(TESTS).state is State.TESTING


def test_no_image_is_built_ahead_of_a_name_that_is_still_to_be_found() -> None:
    driven = Driven().says(ASKING).build_fails("unknown_package", "nosuch")
    assert kinds(driven) == ["write_tests"]
    assert kinds(driven.says(TESTS)) == ["replace_package"]
    driven.says({"replacement": "such"})
    assert driven.wanted(r.BuildImage).spec.requirements == ("pytest", "such")


def test_no_image_is_built_ahead_that_failed_before() -> None:
    driven = Driven().says(WRONG).build_fails("conflict").says(CODES[1])
    assert kinds(driven) == ["write_tests"]


def test_a_name_is_looked_for_though_the_image_without_it_failed_before() -> None:
    driven = Driven().says(WRONG).says(TESTS).build_fails("conflict").says(ASKING)
    driven.build_fails("unknown_package", "nosuch")
    assert kinds(driven) == ["replace_package"]


def test_a_version_that_does_not_exist_may_be_replaced_by_another() -> None:
    driven = Driven().says({**WRONG, "packages": ["pandas==9.9"]}).says(TESTS)
    driven.build_fails("unknown_package", "pandas")
    assert "pandas==9.9" in driven.prompt
    driven.says({"replacement": "pandas>=2"})
    assert driven.wanted(r.BuildImage).spec.requirements == ("pandas>=2", "pytest")
    assert driven.builds().state is State.TESTING


@pytest.mark.parametrize("answer", ["nosuch", "nosuch>=2", None])
def test_a_name_that_is_no_better_is_dropped(answer: str | None) -> None:
    driven = Driven().says(ASKING).says(TESTS).build_fails("unknown_package", "nosuch")
    driven.says({"replacement": answer})
    assert driven.wanted(r.BuildImage).spec.requirements == ("pytest",)


def test_of_a_package_and_a_library_of_one_name_each_has_its_answer() -> None:
    driven = Driven().says({**ASKING, "packages": ["magic"], "system_packages": ["magic"]})
    driven.says(TESTS).build_fails("unknown_package", "magic").says({"replacement": "python-magic"})
    driven.build_fails("unknown_system_package", "magic").says({"replacement": "libmagic1"})
    spec = driven.wanted(r.BuildImage).spec
    assert spec.requirements == ("pytest", "python-magic")
    assert spec.system_packages == ("libmagic1",)


def test_a_command_that_fails_is_left_out_without_a_question() -> None:
    driven = Driven(JOB.model_copy(update={"commands": ("make a", "make b")})).says(WRONG)
    driven.says(TESTS).build_fails("command", "make a")
    assert driven.wanted(r.BuildImage).spec.commands == ("make b",)


def test_how_an_image_was_come_by_changes_no_run() -> None:
    keys = set()
    for cached, seconds in ((True, 0.1), (False, 90.0), (None, None)):
        driven = Driven().says(WRONG).says(TESTS)
        spec_key = driven.wanted(r.BuildImage).spec.key
        image = ImageRef(ref="img", spec_key=spec_key, cached=cached, seconds=seconds)
        keys.add(pack_request(driven.happens(e.ImageBuilt(image=image)).wanted(r.RunTests)).key)
    assert len(keys) == 1


def test_a_run_has_all_that_the_caller_said_of_it() -> None:
    job = JOB.model_copy(
        update={
            "inputs": (Declared(name="t", type="File"),),
            "samples": (Sample(name="t", path="/home/x/t.csv", file="t.csv", description="d"),),
            "environment": {"A": "1"},
            "secrets": ("TOKEN",),
            "network_access": True,
            "limits": Limits(seconds=7.0),
        }
    )
    spec = Driven(job).says(WRONG).says(TESTS).builds().wanted(r.RunTests).spec
    assert [(file.name, file.text) for file in spec.files] == [
        ("solution.py", WRONG["code"]),
        ("test_solution.py", TESTS["test_code"]),
    ]
    assert spec.host_files == (HostFile(name="t.csv", path="/home/x/t.csv"),)
    assert (spec.environment, spec.secrets) == ({"A": "1"}, ("TOKEN",))
    assert (spec.network, spec.limits, spec.purpose) == (True, Limits(seconds=7.0), "tests")


def test_a_run_without_an_image_is_a_bug() -> None:
    with pytest.raises(ValueError, match="code and tests"):
        run_of_tests(Session(id="s"))
