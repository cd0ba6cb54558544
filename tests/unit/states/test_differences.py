"""Where the repair loop differs on purpose from the system whose job it takes over.

One test for each weakness of that system; each would fail on what that system does. Images and answers
have files of their own beside this one; what belongs to adapters, to arguments or to the description of
data is tested where those are.
"""

from __future__ import annotations

import pytest

from codetape.engine.codec import pack_request
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.machine import State
from codetape.states.values import Frame, Problem
from tests.unit.states.driving import (
    CODES,
    FIX,
    IN_WORDS,
    JOB,
    RIGHT,
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

WITH_YAML = {"code": "import yaml\n\n\ndef add(a, b):\n    return a - b\n"}
MISSING = Problem(type="ModuleNotFoundError", message="No module named 'yaml'", module="yaml")
BROKEN = Problem(
    type="NameError",
    message="name 'x' is not defined",
    frames=(Frame(place="solution", file="solution.py", line=1, function="<module>"),),
)
SYNTAX = Problem(type="SyntaxError", message="invalid syntax")
PATCHED = patches(patch("test_a", "assert add(1, 2) == 4"))
TEST_ERROR = diagnosis(finding("test_a", "test_error"))


def failed(label: str = "logic", fix: str = "") -> Driven:
    """test_a failed and was diagnosed."""
    return ready().fails(test_a="assert 4 == 3").says(diagnosis(finding("test_a", label, fix)))


def test_w01_the_cause_of_a_collection_error_decides() -> None:
    assert ready().not_collected(BROKEN).state is State.NEEDS_CODE
    assert ready().not_collected(SYNTAX).state is State.NEEDS_TESTS
    missing = ready(code=WITH_YAML).not_collected(MISSING)
    assert labels(missing.session) == {"(collection)": "environment"}


def test_w02_new_tests_are_asked_for_with_the_old_ones_and_their_fault() -> None:
    driven = Driven().says(WRONG)
    first = driven.prompt
    driven.says(TESTS).builds().not_collected(SYNTAX)
    assert driven.prompt != first
    assert "SyntaxError: invalid syntax" in driven.prompt
    assert TESTS["test_code"] in driven.prompt


def test_w03_a_test_error_that_becomes_logic_has_its_code_written() -> None:
    driven = failed("test_error").says(PATCHED).fails(test_a="assert 4 == 9").says(TEST_ERROR)
    assert labels(driven.session) == {"test_a": "logic"}
    assert driven.wanted(r.WriteCode)


def test_w04_one_pass_flips_a_label_once() -> None:
    driven = failed("test_error").says(PATCHED).fails(test_a="assert 4 == 9").says(TEST_ERROR)
    driven.says(CODES[1]).fails(test_a="assert 5 == 9").says(TEST_ERROR)
    for event in driven.events:
        if isinstance(event, e.Reclassified):
            tests = [label.test_id for label in event.labels]
            assert len(set(tests)) == len(tests)


def test_w05_relabelling_one_failure_keeps_the_others() -> None:
    driven = ready().fails(test_a="assert 4 == 3", test_b="assert 1 == 0")
    driven.says(diagnosis(finding("test_a"), finding("test_b"))).says(CODES[1])
    driven.fails(test_a="assert 5 == 3", test_b="assert 'x' in 'y'")
    driven.says(diagnosis(finding("test_a"), finding("test_b")))
    assert labels(driven.session) == {"test_a": "test_error", "test_b": "logic"}
    driven.says(PATCHED).fails(test_b="assert 'x' in 'y'")
    assert driven.wanted(r.WriteCode)
    assert "test_b" in driven.prompt


def test_w10_w50_the_session_ends_with_its_newest_run() -> None:
    driven = Driven(JOB.model_copy(update={"max_iterations": 2})).says(WRONG).says(TESTS).builds()
    driven.fails(test_a="assert 4 == 3").says(TEST_ERROR).says(PATCHED)
    driven.fails(test_b="assert 7 == 8")
    assert driven.session.run is not None
    assert driven.session.run.report is not None
    assert [t.id for t in driven.session.run.report.results if t.outcome == "failed"] == ["test_b"]
    assert "test_b" in (driven.session.ending.reason if driven.session.ending else "")


def test_w12_code_that_nobody_faulted_is_kept() -> None:
    retrying = JOB.model_copy(update={"sandbox_retries": 1})
    built = Driven(retrying).says(WRONG).says(TESTS).build_fails("other")
    ran = ready(retrying).breaks()
    diagnosed = ready(retrying).fails(test_a="assert 4 == 3").call_fails()
    for driven, kind in ((built, r.BuildImage), (ran, r.RunTests), (diagnosed, r.Diagnose)):
        assert driven.wanted(kind)
        assert driven.session.code is not None
        assert driven.session.code.source == WRONG["code"]


def test_w13_w14_a_failed_call_loses_neither_fixes_nor_plan() -> None:
    planned = Driven(JOB.model_copy(update={"plan": True}))
    planned.says({"description": "d", "approach": "Use addition."}).call_fails()
    assert "Use addition." in planned.prompt
    driven = failed(fix=FIX).call_fails()
    assert FIX in driven.prompt


@pytest.mark.parametrize(
    "answer",
    [
        patches(),
        patches({"test_name": "test_a", "fixed_code": ""}),
        patches({"test_name": "test_a", "fixed_code": "def test_a("}),
        patches(patch("test_a", "assert add(1, 2) == 3")),
        patches(patch("test_a", "pass")),
        patches(patch("TestX::test_a", "assert add(1, 2) == 4")),
    ],
    ids=["none", "empty", "broken", "the same", "weaker", "of a class that is not there"],
)
def test_w19_w20_w21_a_patch_that_repairs_nothing_is_refused(answer: dict[str, object]) -> None:
    driven = failed("test_error")
    before = driven.session.tests
    driven.says(answer)
    assert driven.names[-1] == "patch_refused"
    assert driven.session.tests == before


def test_w22_the_same_code_tests_and_image_run_once() -> None:
    driven = ready().fails(test_a="assert 4 == 3").says(diagnosis(finding("test_a", "environment")))
    assert driven.state is State.NEEDS_CODE  # nothing was named that another image could have
    driven = driven.says(WRONG)
    assert driven.names.count("tests_failed") == 1
    assert driven.state is State.NEEDS_TESTS


def test_w33_nothing_is_asked_that_no_run_can_follow() -> None:
    driven = Driven(JOB.model_copy(update={"max_iterations": 1})).says(WRONG).says(TESTS).builds()
    driven.fails(test_a="assert 4 == 3")
    assert driven.state is State.DONE
    assert driven.kinds == ["code", "tests"]


def test_w39_an_unreadable_verification_is_unverified_and_the_run_decides() -> None:
    driven = failed(fix=IN_WORDS).says(RIGHT).says("perhaps")
    verified = driven.events[-1]
    assert isinstance(verified, e.FixesVerified)
    assert verified.unread
    assert driven.state is State.TESTING


def test_w39_a_fix_that_is_never_made_is_asked_for_three_times_with_its_name() -> None:
    driven = failed(fix=FIX)
    for code in CODES[1:4]:
        assert driven.state is State.NEEDS_CODE
        driven.says(code)
    assert driven.state is State.TESTING
    asked = [q.call.messages[1].text for q in driven.asked if isinstance(q, r.WriteCode)]
    assert ["Not done yet" in text for text in asked] == [False, False, True, True]
    assert ["This is the last round" in text for text in asked] == [False, False, False, True]


def test_w41_each_round_amends_the_newest_code() -> None:
    driven = failed(fix=FIX).says(CODES[1])
    assert CODES[1]["code"] in driven.prompt
    assert WRONG["code"] not in driven.prompt


def test_w41_a_fix_that_is_in_stays_in_while_another_is_asked_for() -> None:
    both = [
        finding("test_a", "logic", FIX),
        finding("test_b", "logic", "Replace `add(` with `plus(`"),
    ]
    driven = ready().fails(test_a="assert 4 == 3", test_b="assert 1 == 0").says(diagnosis(*both))
    driven.says(RIGHT)
    (missing,) = [line for line in driven.prompt.split("\n") if line.startswith("- Replace")]
    assert "plus(" in missing
    driven.says({"code": "def plus(a, b):\n    return a + b\n"})
    assert driven.state is State.TESTING


def test_w44_a_patch_for_a_test_that_had_not_failed_is_left_out() -> None:
    driven = failed("test_error")
    them = [patch("test_a", "assert add(1, 2) == 4"), patch("test_b", "assert add(0, 0) == 9")]
    driven.says(patches(*them))
    assert driven.session.tests is not None
    assert "assert add(1, 2) == 4" in driven.session.tests.source
    assert "assert add(0, 0) == 0" in driven.session.tests.source


def test_x01_equal_sessions_ask_the_same_to_the_byte() -> None:
    one, other = (failed(fix=FIX).wanted(r.WriteCode) for _ in range(2))
    assert one is not other
    assert pack_request(one).key == pack_request(other).key


def test_x09_a_patch_takes_no_comment_after_its_test() -> None:
    tests = TESTS["test_code"].replace("\n\n\ndef test_b", "\n# after a\n\n\ndef test_b")
    driven = ready(tests={"test_code": tests}).fails(test_a="assert 4 == 3").says(TEST_ERROR)
    driven.says(PATCHED)
    assert driven.session.tests is not None
    assert driven.session.tests.source == tests.replace("add(1, 2) == 3", "add(1, 2) == 4")


def test_x10_two_tests_of_one_name_are_no_test_file() -> None:
    double = f"{TESTS['test_code']}\n\ndef test_a():\n    assert add(5, 5) == 10\n"
    driven = Driven(JOB).says(WRONG).says({"test_code": double})
    assert driven.names[-1] == "answer_rejected"
    assert "it defines test_a twice" in driven.prompt


def test_x12_a_plain_assertion_and_an_error_without_the_word_are_told_as_they_are() -> None:
    odd = Problem(type="Refused", message="no seat")
    driven = ready().fails({"test_b": odd}, test_a="assert 4 == 3")
    assert "AssertionError: assert 4 == 3" in driven.prompt
    assert "Refused: no seat" in driven.prompt
