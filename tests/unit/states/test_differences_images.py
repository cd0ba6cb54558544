"""Where packages and images differ on purpose from the system whose job this one takes over.

One test for each weakness of that system; each would fail on what that system does.
"""

from __future__ import annotations

import pytest

from codetape.states import requests as r
from codetape.states.machine import State
from codetape.states.values import Problem
from tests.unit.states.driving import (
    CODES,
    TESTS,
    WRONG,
    Driven,
    diagnosis,
    finding,
    ready,
)

WITH_YAML = {"code": "import yaml\n\n\ndef add(a, b):\n    return a - b\n"}
LOGIC = diagnosis(finding("test_a"))
NEEDS = {
    "needs_system_packages": ["libgl1"],
    "needs_language_packages": ["openpyxl"],
    "needs_additional_commands": ["make fonts"],
}


def test_w06_w07_a_command_alone_makes_another_image() -> None:
    driven = ready().fails(test_a="no fonts")
    old = driven.session.spec.key
    said = diagnosis(finding("test_a", "environment"), needs_additional_commands=["make fonts"])
    driven.says(said)
    build = driven.wanted(r.BuildImage)
    assert build.spec.commands == ("make fonts",)
    assert build.spec.key != old


def test_w08_w15_what_a_diagnosis_asked_for_outlives_new_code() -> None:
    driven = ready().fails(test_a="assert 4 == 3", test_b="no fonts")
    driven.says(diagnosis(finding("test_a"), finding("test_b", "environment"), **NEEDS))
    driven.says({**CODES[1], "system_packages": ["curl"]})
    spec = driven.wanted(r.BuildImage).spec
    assert spec.commands == ("make fonts",)
    assert spec.system_packages == ("curl", "libgl1")
    assert spec.requirements == ("openpyxl", "pytest")


def test_w08_w15_what_one_diagnosis_asked_for_outlives_the_next() -> None:
    driven = ready().fails(test_a="no fonts")
    driven.says(diagnosis(finding("test_a", "environment"), **NEEDS)).builds()
    said = diagnosis(finding("test_a", "environment"), needs_language_packages=["scipy"])
    driven.fails({"test_a": Problem(type="KeyError", message="'x'")}).says(said)
    spec = driven.wanted(r.BuildImage).spec
    assert spec.requirements == ("openpyxl", "pytest", "scipy")
    assert (spec.commands, spec.system_packages) == (("make fonts",), ("libgl1",))


def test_w09_without_an_image_nothing_runs() -> None:
    driven = Driven().says({**WRONG, "system_packages": ["liba", "libb", "libc"]}).says(TESTS)
    for name in ("liba", "libb", "libc"):
        driven.build_fails("unknown_system_package", name)
        assert driven.wanted(r.ReplacePackage).rejected == name
        driven.says({"replacement": None})
    assert driven.state is State.NEEDS_REBUILD
    assert driven.builds().state is State.TESTING
    assert not any(isinstance(request, r.RunTests) for request in driven.asked)


def test_w46_what_does_not_exist_is_an_event_of_its_own() -> None:
    driven = Driven().says({**WRONG, "system_packages": ["liba"]}).says(TESTS)
    driven.build_fails("unknown_system_package", "liba")
    assert driven.names[-1] == "package_rejected"
    assert driven.state is State.NEEDS_REBUILD


def test_w16_w17_a_package_that_is_unknown_is_asked_about_once() -> None:
    driven = Driven().says({**WRONG, "system_packages": ["liba"]}).says(TESTS)
    driven.build_fails("unknown_system_package", "liba").says({"replacement": None}).builds()
    driven.fails(test_a="assert 4 == 3").says(LOGIC)
    assert "liba" in driven.prompt
    driven.says({**CODES[1], "system_packages": ["liba"]})
    assert driven.state is State.TESTING  # the image is the one that is there
    assert driven.kinds.count("replace_package") == 1


def test_w18_w47_the_same_contents_in_another_order_are_the_same_image() -> None:
    listed = {"packages": ["scipy", "numpy"], "system_packages": ["libb", "liba"]}
    turned = {"packages": ["numpy", "SciPy"], "system_packages": ["liba", "libb"]}
    driven = ready(code={**WRONG, **listed}).fails(test_a="assert 4 == 3").says(LOGIC)
    driven.says({**CODES[1], **turned})
    assert driven.state is State.TESTING


def test_w23_w31_w32_needs_are_validated_and_merged() -> None:
    said = diagnosis(finding("test_a", "environment"), needs_language_packages="openpyxl")
    assert ready().fails(test_a="no").says(said).names[-1] == "answer_rejected"
    said["needs_language_packages"] = ["Openpyxl", "openpyxl", "open.pyxl"]
    said["needs_additional_commands"] = ["make b", "make a", "make b"]
    spec = ready().fails(test_a="no").says(said).wanted(r.BuildImage).spec
    assert spec.requirements == ("open-pyxl", "openpyxl", "pytest")
    assert spec.commands == ("make b", "make a")


@pytest.mark.parametrize("language", ["Python", "py", "python3", " PYTHON "])
def test_w26_python_by_any_name_gets_its_packages(language: str) -> None:
    driven = Driven().says({**WITH_YAML, "language": language}).says(TESTS)
    assert "pyyaml" in driven.wanted(r.BuildImage).spec.requirements


def test_w30_w45_packages_of_old_code_leave_with_it() -> None:
    driven = ready(code={**WITH_YAML, "packages": ["scipy"]}).fails(test_a="assert 4 == 3")
    driven.says(diagnosis(finding("test_a"), needs_language_packages=["openpyxl"]))
    driven.says(CODES[1])
    assert driven.wanted(r.BuildImage).spec.requirements == ("openpyxl", "pytest")


def test_x15_only_imports_are_compared_with_the_library() -> None:
    code = {"code": "import dataclasses\nimport yaml\n", "packages": ["dataclasses>=0.8"]}
    driven = Driven().says(code).says(TESTS)
    assert driven.wanted(r.BuildImage).spec.requirements == (
        "dataclasses>=0.8",
        "pytest",
        "pyyaml",
    )
