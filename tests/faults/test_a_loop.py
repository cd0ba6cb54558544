"""Faults of loops that diagnose, repair and run again: whole sessions, made of fakes.

The sandbox says what happened, the model says what it says, and the tape shows what came of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, failed, not_collected
from codetape.adapters.store.memory import MemoryStore
from codetape.engine.tape import read
from codetape.states import events as e
from codetape.states.values import FailureClass, LlmCall, RunOutcome
from tests.support.sessions import ID, JOB, RIGHT, TESTS, WRONG, Made, engine, play

LOOP = JOB.model_copy(update={"plan": False, "max_iterations": 8, "sandbox_retries": 2})
CODES = [{"code": f"def add(a, b):\n    return a - b - {n}\n"} for n in range(9)]
BY_CLASS = """\
from solution import add


class TestAdd:
    def test_y(self):
        assert add(1, 2) == 4

    def test_z(self):
        assert add(0, 0) == 0
"""
BY_PARAMETER = """\
import pytest
from solution import add


@pytest.mark.parametrize("x", [1, 2])
def test_p(x):
    assert add(x, 1) == 9
"""


def session(
    runs: Sequence[Any],
    *,
    code: Sequence[Any] = (WRONG, *CODES),
    tests: Sequence[Any] = (TESTS,),
    **others: Sequence[Any],
) -> Made:
    """Run a session; what the sandbox is not told passes."""
    script = {"code": code, "tests": tests, **others}
    return asyncio.run(play(script, runs=runs, job=LOOP))


def fails(message: str, *tests: str, type: str = "AssertionError") -> Any:
    return failed(dict.fromkeys(tests or ("test_add",), (type, message)))


def says(label: str, *tests: str, words: str = "", **needs: list[str]) -> dict[str, Any]:
    """A diagnosis that gives all tests one label."""
    found = [
        {"test_name": test, "error_type": label, "error_message": words, "root_cause": words}
        for test in tests or ("test_add",)
    ]
    return {"failures": found, **needs}


def patch(test: str, code: str) -> dict[str, str]:
    return {"test_name": test, "fixed_code": code}


def calls(made: Made) -> list[LlmCall]:
    assert isinstance(made.llm, ScriptedLlm)
    return list(made.llm.calls)


def kinds(made: Made) -> list[str]:
    return [call.kind for call in calls(made)]


def prompt(made: Made, kind: str, turn: int = -1) -> str:
    """What was asked of this kind, last or in that turn."""
    return [call for call in calls(made) if call.kind == kind][turn].messages[-1].text


def sandbox(made: Made) -> FakeSandbox:
    assert isinstance(made.sandbox, FakeSandbox)
    return made.sandbox


def run_files(made: Made) -> list[str]:
    """The test files of all runs."""
    return [run.files[1].text for run in sandbox(made).runs]


def of(made: Made, kind: type[e.Event]) -> list[Any]:
    return [record.event for record in made.records if isinstance(record.event, kind)]


def flips(made: Made) -> list[list[str]]:
    """The labels that each pass gave, in order."""
    return [[label.after.value for label in event.labels] for event in of(made, e.Reclassified)]


def failure(made: Made) -> FailureClass | None:
    assert made.session.ending is not None
    return made.session.ending.failure


def check_no_run_twice(made: Made) -> None:
    runs = [(run.image.ref, run.files) for run in sandbox(made).runs]
    assert len(set(runs)) == len(runs)


# --- when a failure is the same -------------------------------------------------------------------


def repairs(count: int) -> list[dict[str, Any]]:
    """Patches that change something each time, and help nothing."""
    body = "def test_add():\n    assert add(1, 2) == 3 + {n} - {n}\n"
    return [{"patches": [patch("test_add", body.format(n=n))]} for n in range(1, count + 1)]


LADDER = [["logic"], ["test_error"], ["logic"], ["test_error"]]
"""The labels of one failure that comes back: each repair changes something, so the other is next."""


@pytest.mark.parametrize(
    "message",
    [
        "assert <object at 0x7f{n}a{n}> is None",
        "no file /tmp/pytest-of-me/pytest-{n}/data.csv",
        "took {n}.3{n} seconds, 4 at most",
    ],
)
def test_a4_what_differs_from_run_to_run_makes_no_other_failure(message: str) -> None:
    runs = [fails(message.format(n=n)) for n in range(1, 9)]
    made = session(runs, diagnosis=[says("logic")] * 8, patch_tests=repairs(8))
    assert flips(made)[:4] == LADDER
    assert made.session.attempts == LOOP.max_iterations


def test_a11_type_and_message_come_from_the_report() -> None:
    words = ("it subtracts", "the sum is off", "another wording", "and another", "and a last one")
    diagnoses = [says("logic", words=text) for text in words]
    made = session([fails("assert 1 == 2")] * 8, diagnosis=diagnoses, patch_tests=repairs(8))
    assert "AssertionError: assert 1 == 2" in prompt(made, "diagnosis")
    assert flips(made)[:4] == LADDER


def test_a13_syntax_errors_at_other_lines_are_one_fault() -> None:
    """What does not parse is never run: each attempt asks for it twice, wherever the error is."""
    broken = [{"code": "x = 1\n" * n + "def add(a, b:\n"} for n in range(1, 99)]
    made = session([], code=broken)
    assert kinds(made) == ["code", "code"] * LOOP.max_iterations
    assert failure(made) is FailureClass.MODEL
    assert sandbox(made).runs == []


def test_a13_collection_that_breaks_at_other_lines_is_one_fault() -> None:
    """An older Python refuses what the rules can parse: at another line each time."""
    runs = [not_collected("SyntaxError", f"invalid syntax (f.py, line {n})") for n in range(9)]
    files = [{"test_code": TESTS["test_code"] + f"# {n}\n"} for n in range(9)]
    made = session(runs, tests=files)
    assert kinds(made)[:5] == ["code", "tests", "tests", "code", "tests"]


# --- what an image lacks --------------------------------------------------------------------------

IMPORTING = {"test_code": "import yaml\n" + TESTS["test_code"]}
NO_YAML = not_collected("ModuleNotFoundError", "No module named 'yaml'", module="yaml")
NO_PLUGIN = ("ModuleNotFoundError", "No module named 'openpyxl'")


def test_a5_what_tests_import_is_in_the_image_before_they_run() -> None:
    made = session([], tests=[IMPORTING])
    assert "pyyaml" in sandbox(made).specs[-1].requirements


def test_a5_a_module_that_is_missing_at_collection_is_no_fault_of_the_tests() -> None:
    made = session([NO_YAML], tests=[IMPORTING])
    (event,) = of(made, e.TestsNotCollected)
    assert event.failure.label is FailureClass.ENVIRONMENT
    assert "tests" not in kinds(made)[2:]


def test_a6_a_wrong_test_takes_no_package_away() -> None:
    """One test is wrong, another misses a module: both are repaired, and in one run."""
    two = TESTS["test_code"] + "\n\ndef test_book():\n    assert add(0, 0) == 0\n"
    both = failed({"test_add": ("AssertionError", "assert 4 == 3"), "test_book": NO_PLUGIN})
    diagnosis = {
        "failures": [*says("test_error")["failures"], *says("environment", "test_book")["failures"]]
    }
    made = session(
        [both],
        tests=[{"test_code": two}],
        diagnosis=[{**diagnosis, "needs_language_packages": ["openpyxl"]}],
        patch_tests=repairs(1),
    )
    assert made.session.ending is not None
    assert failure(made) is None
    assert "openpyxl" in sandbox(made).specs[-1].requirements
    assert len(sandbox(made).runs) == 2


def test_a7_an_image_that_lacks_nothing_is_not_run_again() -> None:
    runs = [fails("the fonts are wrong")] * 8
    diagnoses = [says("environment")] * 8
    made = session(runs, diagnosis=diagnoses, patch_tests=repairs(8))
    check_no_run_twice(made)
    assert flips(made)[:3] == [["logic"], ["test_error"], ["logic"]]


def test_a17_a_repair_of_the_image_leads_back_to_a_run() -> None:
    diagnosis = says("environment", needs_language_packages=["openpyxl"])
    made = session([failed({"test_add": NO_PLUGIN})], diagnosis=[diagnosis])
    assert [event for event, _ in made.path[-3:]] == ["reclassified", "image_built", "tests_passed"]
    first, second = sandbox(made).runs
    assert first.files == second.files
    assert first.image != second.image


# --- patches --------------------------------------------------------------------------------------


def test_a8_a_method_of_a_class_is_patched_in_its_place() -> None:
    fixed = patch("TestAdd::test_y", "def test_y(self):\n    assert add(1, 2) == 3\n")
    made = session(
        [fails("assert 3 == 4", "TestAdd::test_y")],
        code=[RIGHT],
        tests=[{"test_code": BY_CLASS}],
        diagnosis=[says("test_error", "TestAdd::test_y")],
        patch_tests=[{"patches": [fixed]}],
    )
    assert failure(made) is None
    assert run_files(made)[1] == BY_CLASS.replace("== 4", "== 3")


REFUSED = [
    pytest.param(patch("test_sum", "def test_sum():\n    assert add(1, 2) == 3\n"), id="no target"),
    pytest.param(patch("test_add", "def test_add():\n    assert add(1, 2 == 4\n"), id="open"),
]


@pytest.mark.parametrize("wrong", REFUSED)
def test_a8_a9_a_patch_without_target_or_form_is_an_event_and_changes_nothing(
    wrong: dict[str, str],
) -> None:
    runs = [fails("assert 3 == 4")]
    made = session(
        runs, diagnosis=[says("test_error")], patch_tests=[{"patches": [wrong]}, *repairs(1)]
    )
    (refused,) = of(made, e.PatchRefused)
    assert refused.reasons[0].startswith(wrong["test_name"])
    assert refused.reasons[0] in prompt(made, "patch_tests")
    assert run_files(made)[0] == TESTS["test_code"]
    assert kinds(made).count("patch_tests") == 2
    assert len(run_files(made)) == 2


def by_parameter(*patches: dict[str, str]) -> Made:
    """Two cases of one test failed."""
    ids = ("test_p[1]", "test_p[2]")
    return session(
        [fails("assert 2 == 9", *ids)],
        code=[RIGHT],
        tests=[{"test_code": BY_PARAMETER}],
        diagnosis=[says("test_error", *ids)],
        patch_tests=[{"patches": list(patches)}, {"patches": []}, {"patches": []}],
    )


HEAD = '@pytest.mark.parametrize("x", [1, 2])\ndef test_p(x):\n'


def test_a10_two_cases_of_one_test_are_asked_for_together_and_keep_their_parameters() -> None:
    made = by_parameter(patch("test_p", f"{HEAD}    assert add(x, 1) == x + 1\n"))
    assert kinds(made).count("patch_tests") == 1
    asked = prompt(made, "patch_tests")
    assert "test_p[1]" in asked
    assert "test_p[2]" in asked
    assert run_files(made)[1] == BY_PARAMETER.replace("== 9", "== x + 1")


def test_a10_a_patch_for_each_case_is_asked_for_again_as_one() -> None:
    each = [
        patch(f"test_p[{n}]", f"def test_p(x):\n    assert add(x, 1) == {n + 1}\n") for n in (1, 2)
    ]
    made = by_parameter(*each)
    (refused, *_) = of(made, e.PatchRefused)
    assert len(refused.reasons) == 2
    assert "give one for all its cases" in prompt(made, "patch_tests", 1)
    assert "== 3" not in "".join(run_files(made))


WEAKER = [
    "def test_add():\n    assert add(1, 2) is not None\n",
    "import pytest\n\n\n@pytest.mark.skip\ndef test_add():\n    assert add(1, 2) == 3\n",
    "def test_add():\n    pass\n",
]


@pytest.mark.parametrize("weaker", WEAKER)
def test_a18_a_test_may_not_be_made_weaker(weaker: str) -> None:
    wrong = {"patches": [patch("test_add", weaker)]}
    made = session(
        [fails("assert 3 == 4")], diagnosis=[says("test_error")], patch_tests=[wrong, *repairs(1)]
    )
    (refused,) = of(made, e.PatchRefused)
    assert refused.answer.text is not None
    assert "fixed_code" in refused.answer.text
    assert weaker not in "".join(run_files(made))


INHERITED = """\
from solution import add


class Base:
    def test_sum(self):
        assert add(1, 2) == 4


class TestAdd(Base):
    pass


def test_add():
    assert add(2, 2) == 4
"""


def of_an_inherited_test(*again: str) -> Made:
    """A method failed that its class has from another one."""
    name = "TestAdd::test_sum"
    return session(
        [fails("assert 3 == 4", name)],
        code=[RIGHT],
        tests=[{"test_code": text} for text in (INHERITED, *again)],
        diagnosis=[says("test_error", name)],
    )


def test_an_inherited_test_is_repaired_with_its_whole_file() -> None:
    right = INHERITED.replace("2) == 4", "2) == 3", 1)
    made = of_an_inherited_test(right)
    assert "patch_tests" not in kinds(made)
    assert run_files(made)[1] == right


def test_a_whole_file_that_asserts_less_is_asked_for_again() -> None:
    weaker = INHERITED.replace("== 4", "is not None")
    right = INHERITED.replace("2) == 4", "2) == 3", 1)
    made = of_an_inherited_test(weaker, right)
    assert kinds(made).count("tests") == 3
    assert "asserts less" in prompt(made, "tests", 2)
    assert run_files(made)[1] == right


# --- what follows a run ---------------------------------------------------------------------------


def test_a16_a_failed_run_is_followed_by_one_diagnosis_or_by_the_end() -> None:
    runs = [fails("assert 1 == 2"), fails("assert 'a' == 'b'"), fails("KeyError", type="KeyError")]
    made = session(runs * 3, diagnosis=[says("logic")] * 9, patch_tests=repairs(9))
    names = [event for event, _ in made.path]
    after = [names[n + 1 :] for n, name in enumerate(names) if name == "tests_failed"]
    assert len(after) > 2
    assert all(following[:1] in (["diagnosed"], ["attempts_spent"]) for following in after)


def test_a16_a_runner_that_returns_nothing_is_a_fault_and_no_verdict() -> None:
    store, silent = MemoryStore(), FakeSandbox(runs=[lambda _: None])  # type: ignore[list-item, return-value]
    script: dict[str, Any] = {"code": [RIGHT], "tests": [TESTS]}
    llm = ScriptedLlm(script)
    with pytest.raises(TypeError, match="answered run_tests with None"):
        asyncio.run(engine(store, llm, silent).start(ID, LOOP))
    assert [record.event.name for record in read(store, ID)][-2:] == ["image_built", "paused"]
    after = asyncio.run(engine(store, llm, FakeSandbox()).resume(ID))
    assert after.ending is not None
    assert after.ending.failure is None
    assert len(llm.calls) == 2


@pytest.mark.parametrize(
    "outcome",
    [RunOutcome(), RunOutcome(exit_status=0, stdout="1 passed in 0.01s"), RunOutcome(signal=9)],
)
def test_a20_a_run_that_leaves_no_report_says_nothing_of_the_code(outcome: RunOutcome) -> None:
    made = session([outcome])
    assert [event for event, _ in made.path[-2:]] == ["sandbox_broke", "tests_passed"]
    assert kinds(made) == ["code", "tests"]
    first, second = sandbox(made).runs
    assert first == second


def test_a20_a_sandbox_that_keeps_leaving_no_report_ends_the_session() -> None:
    made = session([RunOutcome()] * 9)
    assert failure(made) is FailureClass.INFRASTRUCTURE
    assert len(sandbox(made).runs) == 1 + LOOP.sandbox_retries
    assert kinds(made) == ["code", "tests"]
