"""A diagnosis labels exactly the tests that failed, and no others."""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states.answers import DiagnosisShape
from codetape.states.diagnosing import diagnosed
from codetape.states.failures import Failure
from codetape.states.values import Answer, FailureClass, Problem
from tests.unit.states.driving import assertion, diagnosis, finding

ANSWER = Answer(text="{}")


def failing(*tests: str, label: FailureClass = FailureClass.UNKNOWN) -> tuple[Failure, ...]:
    return tuple(Failure(test_id=test, problem=assertion(), label=label) for test in tests)


def read(failures: tuple[Failure, ...], said: dict[str, object], *imports: str) -> e.Diagnosed:
    return diagnosed(failures, DiagnosisShape.model_validate(said), ANSWER, imports)


def labels(failures: tuple[Failure, ...], *findings: dict[str, object]) -> list[str]:
    return [f.label.value for f in read(failures, diagnosis(*findings)).failures]


def test_each_failing_test_gets_its_label_and_its_words() -> None:
    said = {**finding("test_b", "test_error", "Replace `a` with `b`"), "root_cause": "a slip"}
    said |= {"expected_behavior": "one", "actual_behavior": "two"}
    event = read(failing("test_a", "test_b"), diagnosis(finding("test_a"), said))
    assert [f.label.value for f in event.failures] == ["logic", "test_error"]
    second = event.failures[1]
    words = (second.fix, second.root_cause, second.expected, second.actual)
    assert words == ("Replace `a` with `b`", "a slip", "one", "two")
    assert (event.by, event.answer) == ("model", ANSWER)


def test_a_failing_test_that_is_not_mentioned_stays_unknown_and_stays() -> None:
    assert labels(failing("test_a", "test_b"), finding("test_b")) == ["unknown", "logic"]
    assert labels(failing("test_a")) == ["unknown"]


def test_what_is_said_of_other_tests_is_left_out() -> None:
    event = read(failing("test_a"), diagnosis(finding("test_a"), finding("test_other")))
    assert [f.test_id for f in event.failures] == ["test_a"]


@pytest.mark.parametrize(
    "name",
    [
        "TestX::test_y[1]",
        "TestX::test_y",
        "test_y",
        "test_y[1]",
        "test_y[2]",
        " test_solution.py::TestX::test_y[1] ",
        "/var/inputs/test_solution.py::TestX::test_y",
        "TestX.test_y",
        "TestX.test_y[1]",
        "test_solution.TestX.test_y",
        "`TestX::test_y`",
        "test_y()",
    ],
)
def test_a_test_is_found_by_each_name_that_a_model_may_give_it(name: str) -> None:
    assert labels(failing("TestX::test_y[1]"), finding(name, "test_error")) == ["test_error"]


@pytest.mark.parametrize("name", ["TestZ::test_y", "test_yy", "TestX", "test_y_1", "X::test_y[1]"])
def test_another_test_of_a_like_name_is_another_test(name: str) -> None:
    assert labels(failing("TestX::test_y[1]"), finding(name, "test_error")) == ["unknown"]


def test_the_nearest_name_wins() -> None:
    both = [finding("test_p", "test_error"), finding("test_p[2]", "logic")]
    assert labels(failing("test_p[1]", "test_p[2]"), *both) == ["test_error", "logic"]
    assert labels(failing("test_p[1]", "test_p[2]"), *reversed(both)) == ["test_error", "logic"]


def test_of_two_findings_for_one_test_the_first_counts() -> None:
    assert labels(
        failing("test_a"), finding("test_a", "logic"), finding("test_a", "test_error")
    ) == ["logic"]


def test_evidence_is_not_overruled_but_its_words_are_kept() -> None:
    known = failing("test_a", label=FailureClass.RESOURCE)
    (failure,) = read(known, diagnosis(finding("test_a", "test_error", "Use less."))).failures
    assert (failure.label, failure.fix) == (FailureClass.RESOURCE, "Use less.")


def test_needs_are_checked_merged_and_in_one_order() -> None:
    said = diagnosis(
        needs_language_packages=["Scipy>=1", "--evil", "scipy", "a b", "sklearn"],
        needs_system_packages=["libgl1", "-y", "curl", "libgl1"],
        needs_additional_commands=["make b", " ", "make a", "make b"],
    )
    needs = read(failing("test_a"), said).needs
    assert needs.packages == ("scikit-learn", "scipy>=1")
    assert needs.system_packages == ("curl", "libgl1")
    assert needs.commands == ("make b", "make a")


def test_what_a_report_proves_is_needed_whatever_the_model_says() -> None:
    missing = Problem(type="ModuleNotFoundError", message="no", module="yaml")
    proven = Failure(test_id="test_a", problem=missing, label=FailureClass.ENVIRONMENT)
    event = read((proven, *failing("test_b")), diagnosis(finding("test_b")), "yaml")
    assert event.needs.packages == ("pyyaml",)
    assert [f.label.value for f in event.failures] == ["environment", "logic"]
