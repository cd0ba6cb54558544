"""The repair ladder, walked by whole sessions: what flips, what waits, and what is stuck."""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.ladder import LADDER, next_label
from codetape.states.machine import State
from codetape.states.values import FailureClass, Frame, Problem, RunOutcome, TestReport
from tests.unit.states.driving import (
    CODES,
    IN_WORDS,
    TESTS,
    WRONG,
    Driven,
    diagnosis,
    finding,
    labels,
    patch,
    patches,
    ready,
)

PATCHED = patches(patch("test_a", "assert add(1, 2) == 4"))
OTHER_PATCH = patches(patch("test_a", "assert add(1, 2) == 5"))


def relabelled(driven: Driven) -> list[tuple[str, str]]:
    """The labels of test_a before and after each reclassification."""
    events = [event for event in driven.events if isinstance(event, e.Reclassified)]
    return [
        (x.before.value, x.after.value) for y in events for x in y.labels if x.test_id == "test_a"
    ]


def blamed(label: str, *, tests: str = "test_a", fix: str = "") -> dict[str, object]:
    return diagnosis(finding(tests, label, fix))


# --- what flips -----------------------------------------------------------------------------------


def test_code_and_test_are_repaired_in_turn_while_repairs_change_something() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic"))
    assert driven.state is State.NEEDS_CODE
    driven = driven.says(CODES[1]).fails(test_a="assert 5 == 3").says(blamed("logic"))
    assert driven.state is State.NEEDS_TESTS
    driven = driven.says(PATCHED).fails(test_a="assert 5 == 4").says(blamed("logic"))
    assert driven.state is State.NEEDS_CODE
    driven = driven.says(CODES[2]).fails(test_a="assert 6 == 4").says(blamed("logic"))
    assert relabelled(driven) == [
        ("logic", "logic"), ("logic", "test_error"), ("logic", "logic"), ("logic", "test_error"),
    ]  # fmt: skip
    assert driven.state is State.NEEDS_TESTS
    driven = driven.says(OTHER_PATCH).fails(test_a="assert 6 == 5").says(blamed("logic"))
    assert driven.state is State.NEEDS_CODE


def test_a_test_that_its_repair_did_not_help_goes_to_the_code() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("test_error")).says(PATCHED)
    driven = driven.fails(test_a="assert 4 == 9").says(blamed("test_error"))
    assert driven.state is State.NEEDS_CODE
    assert relabelled(driven) == [("test_error", "test_error"), ("test_error", "logic")]


def test_the_next_prompt_says_what_was_repaired_before() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic"))
    assert "What was repaired before" not in driven.prompt
    driven.says(CODES[1]).fails(test_a="assert 5 == 3")
    told = "## What was repaired before\n- after attempt 1: the code, for test_a (AssertionError: "
    assert f"{told}assert 4 == 3)" in driven.prompt
    driven.says(blamed("logic")).says(PATCHED).fails(test_a="assert 5 == 4")
    assert (
        "- after attempt 2: the test, for test_a (AssertionError: assert 5 == 3)" in driven.prompt
    )


def test_another_failure_of_the_same_test_starts_at_its_own_label() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic")).says(CODES[1])
    driven = driven.fails({"test_a": Problem(type="KeyError", message="'total'")}).says(
        blamed("logic")
    )
    assert relabelled(driven) == [("logic", "logic"), ("logic", "logic")]


def test_a_failure_that_nobody_could_label_begins_with_the_code() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(diagnosis())
    assert relabelled(driven) == [("unknown", "logic")]
    assert driven.state is State.NEEDS_CODE


def test_a_diagnosis_that_cannot_be_read_twice_is_none() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says("perhaps")
    assert driven.state is State.DIAGNOSING
    driven = driven.says("perhaps not")
    assert driven.state is State.NEEDS_CODE
    assert "perhaps" not in driven.prompt  # it was no answer to this question
    assert labels(driven.session) == {"test_a": "logic"}
    driven = driven.says("no code").says(CODES[1])  # the code has a repair request of its own
    assert driven.state is State.TESTING


def test_what_ran_out_is_asked_to_use_less_while_that_changes_the_code() -> None:
    spent = RunOutcome(timed_out=True)
    driven = ready().runs(spent)
    assert labels(driven.session) == {"(collection)": "resource"}
    assert "time limit" in driven.prompt
    driven = driven.says(CODES[1]).runs(spent)
    assert driven.state is State.NEEDS_CODE
    driven = driven.says(CODES[1])
    assert driven.session.ending is not None
    assert driven.session.ending.failure is FailureClass.STUCK
    assert driven.kinds == ["code", "tests", "code", "code"]


def endless(test: str) -> RunOutcome:
    report = TestReport(finished=False, collected=(test,), running=test)
    return RunOutcome(report=report, timed_out=True)


def test_a_test_that_never_ends_is_repaired_where_other_code_did_not_help() -> None:
    driven = ready().runs(endless("test_a"))
    assert labels(driven.session) == {"test_a": "resource"}
    driven = driven.says(CODES[1]).runs(endless("test_a"))
    assert driven.state is State.NEEDS_TESTS
    driven = driven.says(PATCHED).runs(endless("test_a"))
    assert driven.state is State.NEEDS_CODE  # against another test the code is worth another try


def test_a_process_that_ends_between_two_tests_has_no_test_to_repair() -> None:
    died = RunOutcome(signal=11, report=TestReport(finished=False, collected=("test_a",)))
    driven = ready().runs(died).says(CODES[1]).runs(died)
    assert driven.state is State.NEEDS_CODE
    driven = driven.says(CODES[1])
    assert driven.state is State.DONE
    assert driven.kinds == ["code", "tests", "code", "code"]


def test_the_fix_of_the_other_repair_goes_with_its_label() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic")).says(CODES[1])
    driven = driven.fails(test_a="assert 5 == 3").says(blamed("logic", fix="Add the numbers."))
    assert labels(driven.session) == {"test_a": "test_error"}
    assert "Add the numbers." not in driven.prompt


@pytest.mark.parametrize("label", LADDER)
def test_every_ladder_ends(label: FailureClass) -> None:
    driven = ready().fails(test_a="assert 4 == 3")
    (failure,) = driven.session.failures
    rungs = frozenset((failure.identity, each) for each in FailureClass)
    session = driven.session
    session = type(session)(**{**vars(session), "tried": rungs, "fruitless": rungs})
    failure = failure.model_copy(update={"label": label})
    assert next_label(session, failure) is FailureClass.STUCK


# --- repairs that change nothing ------------------------------------------------------------------


def test_code_that_comes_back_as_it_was_is_not_run_and_the_test_is_next() -> None:
    driven = ready(code=CODES[0]).fails(test_a="assert 4 == 3").says(blamed("logic")).says(CODES[0])
    assert "repair_failed" in driven.names
    assert driven.state is State.NEEDS_TESTS
    assert driven.names.count("tests_failed") == 1


def test_a_refused_patch_is_asked_for_three_times_and_the_code_is_next() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("test_error"))
    for reason in ("changes nothing", "asserts less", "did not fail"):
        assert reason not in driven.prompt
        nothing = {
            "changes nothing": patch("test_a", "assert add(1, 2) == 3"),
            "asserts less": patch("test_a", "pass"),
            "did not fail": patch("test_b", "assert 1 == 2"),
        }[reason]
        driven = driven.says(patches(nothing))
        if driven.state is State.NEEDS_TESTS:
            assert reason in driven.prompt
    assert driven.state is State.NEEDS_CODE
    assert driven.session.attempts == 1


def test_a_patch_for_one_of_two_runs_though_the_other_is_refused() -> None:
    driven = ready().fails(test_a="assert 4 == 3", test_b="assert 1 == 0")
    driven = driven.says(
        diagnosis(finding("test_a", "test_error"), finding("test_b", "test_error"))
    )
    driven = driven.says(PATCHED)
    request = driven.wanted(r.PatchTests)
    assert request.failing == ("test_b",)  # the other one is done and is not asked for again
    driven = driven.says(patches()).says(patches())
    assert driven.state is State.TESTING
    driven = driven.fails(test_b="assert 1 == 0").says(diagnosis(finding("test_b", "test_error")))
    assert driven.state is State.NEEDS_CODE


def test_each_round_asks_for_the_patches_that_are_still_missing() -> None:
    tests = {"test_code": f"{TESTS['test_code']}\n\ndef test_c():\n    assert add(2, 2) == 4\n"}
    driven = ready(tests=tests).fails(test_a="1", test_b="2", test_c="3")
    names = ("test_a", "test_b", "test_c")
    driven.says(diagnosis(*(finding(name, "test_error") for name in names)))
    for number, name in enumerate(names):
        assert driven.wanted(r.PatchTests).failing == names[number:]
        driven.says(patches(patch(name, f"assert add(3, 3) == {number}")))
    assert driven.state is State.TESTING


def test_a_patch_that_left_its_fix_out_is_asked_for_again() -> None:
    driven = ready().fails(test_a="1", test_b="2")
    fix = "Replace `== 3` with `== 4`"
    driven.says(diagnosis(finding("test_a", "test_error", fix), finding("test_b", "test_error")))
    both = (patch("test_a", "assert add(1, 2) == 5"), patch("test_b", "assert add(0, 0) == 1"))
    driven.says(patches(*both))
    assert driven.wanted(r.PatchTests).failing == ("test_a",)
    assert f"- {fix}" in driven.prompt


def test_where_a_reader_misses_what_nobody_listed_all_are_asked_for_again() -> None:
    driven = ready().fails(test_a="1", test_b="2")
    said = [finding(test, "test_error", "Check the sum.") for test in ("test_a", "test_b")]
    driven.says(diagnosis(*said))
    both = (patch("test_a", "assert add(1, 2) == 5"), patch("test_b", "assert add(0, 0) == 1"))
    driven.says(patches(*both)).says({"all_fixes_applied": False, "missing_fixes": ["The sign."]})
    assert driven.wanted(r.PatchTests).failing == ("test_a", "test_b")
    assert "- The sign." in driven.prompt


def test_a_repair_that_changed_nothing_gives_the_other_one_a_second_try() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic")).says(CODES[1])
    driven.fails(test_a="assert 5 == 3").says(blamed("logic"))
    for _ in range(3):
        assert driven.wanted(r.PatchTests)
        driven.says(patches())
    assert driven.wanted(r.WriteCode)  # no patch ever showed that the code was right
    driven.says(CODES[2]).fails(test_a="assert 6 == 3")
    assert driven.state is State.DIAGNOSING


def test_where_neither_repair_changes_anything_it_is_stuck() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic")).says(WRONG)
    for _ in range(3):
        driven.says(patches())
    assert driven.session.ending is not None
    assert driven.session.ending.failure is FailureClass.STUCK


def test_tests_that_come_back_as_they_were_put_the_blame_on_the_code() -> None:
    missing = Problem(type="ImportError", message="cannot import name 'sub'", module="solution")
    driven = ready().not_collected(missing)
    assert driven.state is State.NEEDS_TESTS
    driven = driven.says(TESTS)
    assert driven.state is State.NEEDS_CODE
    assert labels(driven.session) == {"(collection)": "logic"}


# --- what waits -----------------------------------------------------------------------------------


def test_the_tests_come_first_and_what_waits_keeps_its_label_without_another_call() -> None:
    driven = ready().fails(test_a="assert 4 == 3", test_b="assert 1 == 0")
    driven = driven.says(
        diagnosis(finding("test_a", "test_error"), finding("test_b", "logic", IN_WORDS))
    )
    assert driven.state is State.NEEDS_TESTS
    assert labels(driven.session) == {"test_a": "test_error", "test_b": "logic"}
    driven = driven.says(PATCHED).fails(test_b="assert 1 == 0")
    assert driven.kinds.count("diagnosis") == 1
    assert driven.state is State.NEEDS_CODE
    assert IN_WORDS in driven.prompt


def test_a_label_that_waited_and_was_acted_on_is_asked_for_anew() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic")).says(CODES[1])
    driven = driven.fails(test_a="assert 4 == 3")
    assert driven.state is State.DIAGNOSING


def test_a_build_that_fails_before_the_patch_leaves_the_test_repair_to_be_made() -> None:
    """The patch was never made, so the label may not flip."""
    driven = ready().fails(test_a="assert 4 == 3")
    driven = driven.says(
        diagnosis(finding("test_a", "test_error"), needs_language_packages=["scipy"])
    )
    assert driven.state is State.NEEDS_TESTS
    driven = driven.build_fails("conflict")
    assert driven.state is State.NEEDS_CODE
    assert "assert 4 == 3" not in driven.prompt  # the tests' fault is not the code's task
    imports = {"code": "import yaml\n\n\ndef add(a, b):\n    return 1\n"}
    driven = driven.says(imports).builds().fails(test_a="assert 4 == 3")
    assert driven.state is State.NEEDS_TESTS
    assert relabelled(driven)[-1] == ("test_error", "test_error")


# --- what keeps the tests from being collected ----------------------------------------------------

IN_SOLUTION = (Frame(place="solution", file="solution.py", line=1, function="<module>"),)


def test_code_that_cannot_be_imported_is_written_anew_then_its_tests_then_it_is_stuck() -> None:
    broken = Problem(type="ValueError", message="bad", frames=IN_SOLUTION)
    driven = ready().not_collected(broken)
    assert driven.state is State.NEEDS_CODE
    driven = driven.says(CODES[1]).not_collected(broken)
    assert driven.state is State.NEEDS_TESTS
    driven = driven.says({"test_code": f"# anew\n{TESTS['test_code']}"}).not_collected(broken)
    assert driven.kinds == ["code", "tests", "code", "tests"]
    assert driven.state is State.NEEDS_CODE  # against other tests the code is worth another try


def test_tests_that_cannot_be_collected_again_send_the_code_to_define_what_they_import() -> None:
    missing = Problem(type="ImportError", message="cannot import name 'sub'", module="solution")
    driven = ready().not_collected(missing)
    assert "cannot import name 'sub'" in driven.prompt
    assert TESTS["test_code"] in driven.prompt
    driven = driven.says({"test_code": f"# anew\n{TESTS['test_code']}"}).not_collected(missing)
    assert driven.state is State.NEEDS_CODE
    assert "cannot import name 'sub'" in driven.prompt


LOST = Problem(type="ImportError", message="cannot import name 'add'", module="solution")


def test_code_that_lost_what_the_tests_import_is_written_anew() -> None:
    """A shortened file: tests of less would pass."""
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic"))
    driven = driven.says({"code": "def other():\n    return 1\n"}).not_collected(LOST)
    assert labels(driven.session) == {"(collection)": "logic"}
    assert driven.state is State.NEEDS_CODE
    assert "cannot import name 'add'" in driven.prompt
    driven = driven.says({"code": "def more():\n    return 1\n"}).not_collected(LOST)
    assert driven.state is State.NEEDS_TESTS  # the same again: now it may be the tests


def test_a_test_whose_import_the_new_code_lost_is_not_at_fault() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(blamed("logic"))
    driven = driven.says(CODES[1]).fails({"test_b": LOST})
    assert labels(driven.session) == {"test_b": "logic"}


def test_tests_that_another_image_keeps_from_being_collected_are_not_the_codes_fault() -> None:
    driven = ready().fails(test_a="assert 4 == 3")
    needs = {"needs_language_packages": ["pytest-mock"]}
    driven = driven.says(diagnosis(finding("test_a", "environment"), **needs)).builds()
    driven = driven.not_collected(Problem(type="ValueError", message="no"))
    assert labels(driven.session) == {"(collection)": "test_error"}


def test_code_that_ran_long_ago_gives_way_to_the_code_that_the_failure_is_of() -> None:
    first, second = CODES[0], CODES[1]
    driven = ready(code=first).fails(test_a="assert 4 == 3").says(blamed("logic")).says(second)
    driven = driven.fails(test_b="assert 5 == 0").says(blamed("logic", tests="test_b")).says(first)
    assert driven.names[-2:] == ["repair_failed", "reclassified"]
    assert driven.state is State.NEEDS_TESTS
    assert second["code"] in driven.prompt
    assert first["code"] not in driven.prompt


def test_a_module_that_the_image_has_no_way_to_get_goes_to_the_code() -> None:
    code = {"code": "import yaml\n\n\ndef add(a, b):\n    return 1\n"}
    missing = Problem(type="ModuleNotFoundError", message="No module named 'yaml'", module="yaml")
    driven = ready(code=code).not_collected(missing)
    assert driven.session.spec.requirements == ("pytest", "pyyaml")  # it was asked for already
    assert driven.session.asked_packages == ("pyyaml",)
    assert driven.state is State.NEEDS_CODE
    assert "No module named 'yaml'" in driven.prompt
    assert driven.kinds == ["code", "tests"]
