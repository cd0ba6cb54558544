"""A package that is installed lacks another one: evidence says so, and a model says which one."""

from __future__ import annotations

from codetape.states.machine import State
from codetape.states.requests import BuildImage, Diagnose
from codetape.states.values import Frame, Problem
from tests.unit.states.driving import Driven, diagnosis, finding, labels, ready

LACKING = Problem(
    type="ModuleNotFoundError",
    message="No module named 'openpyxl'",
    module="openpyxl",
    frames=(
        Frame(place="tests", file="test_solution.py", line=5, function="test_a"),
        Frame(place="installed", file="pandas/io/excel/_openpyxl.py", line=54, function="__init__"),
    ),
)
NAMED = diagnosis(finding("test_a", "environment"), needs_language_packages=["openpyxl"])


def lacking() -> Driven:
    return ready().fails({"test_a": LACKING})


def test_a_model_names_what_an_installed_package_lacks() -> None:
    driven = lacking()
    assert labels(driven.session) == {"test_a": "environment"}
    assert "No module named 'openpyxl'" in driven.prompt
    driven.says(NAMED)
    assert driven.state is State.NEEDS_REBUILD
    assert driven.wanted(BuildImage).spec.requirements == ("openpyxl", "pytest")
    assert driven.builds().passes().state is State.DONE
    assert driven.kinds == ["code", "tests", "diagnosis"]


def test_it_is_asked_once_and_what_it_names_is_believed_for_one_run() -> None:
    driven = lacking().says(NAMED).builds().fails({"test_a": LACKING})
    assert driven.state is State.NEEDS_CODE
    assert [type(request) for request in driven.asked].count(Diagnose) == 1


def test_the_code_is_repaired_where_nothing_is_named() -> None:
    driven = lacking().says(diagnosis(finding("test_a", "environment")))
    assert driven.state is State.NEEDS_CODE


def test_nobody_is_asked_for_a_module_that_the_code_imports() -> None:
    code = {"code": "import openpyxl\n\n\ndef add(a, b):\n    return a + b\n"}
    driven = ready(code=code).fails({"test_a": LACKING})
    assert driven.kinds == ["code", "tests"]
