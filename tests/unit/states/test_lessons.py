"""What a tape teaches, without asking a model: the error, and the repair that made it go away."""

from __future__ import annotations

from codetape.states.job import Job
from codetape.states.lessons import LONGEST_DIFF, LONGEST_PART, lessons
from codetape.states.tools.personas import PERSONAS
from codetape.states.values import Frame, Problem, RunOutcome
from codetape.states.workflow import TOOLMAKER
from tests.unit.states.driving import (
    CODES,
    RIGHT,
    Driven,
    diagnosis,
    finding,
    patch,
    patches,
    ready,
)

FIX = "Replace `a - b - 0` with `a + b`"
IN_ADD = Frame(place="solution", file="solution.py", line=2, function="add")


def taught(driven: Driven) -> tuple[str, ...]:
    return lessons(driven.workflow, driven.events)


# --- the auto-coder -------------------------------------------------------------------------------


def test_a_repair_of_the_code_is_told_with_its_diagnosis() -> None:
    problem = Problem(type="KeyError", message="'row 17'\nmore", frames=(IN_ADD,))
    found = {**finding("test_a", fix=FIX), "root_cause": "Rows may be missing"}
    driven = ready(code=CODES[0]).fails({"test_a": problem}).says(diagnosis(found))
    assert taught(driven) == ()
    driven.says(RIGHT)
    assert taught(driven) == ()  # no run has shown it yet
    driven.passes()
    (lesson,) = taught(driven)
    what, how = lesson.split(" It was repaired by ")
    assert what == "KeyError in add: 'row #'. The cause: Rows may be missing."
    assert how == "this change of the code: Replace `a - b - 0` with `a + b`."


def test_a_repair_of_a_test_is_told_as_that() -> None:
    driven = ready().fails(test_a="assert 4 == 3")
    driven.says(diagnosis(finding("test_a", "test_error", "Expect 4")))
    driven.says(patches(patch("test_a", "assert add(1, 2) == -1")))
    driven.says({"missing_fixes": []}).passes()
    assert taught(driven) == (
        "AssertionError in test_a: assert # == #. It was repaired by another test: Expect 4.",
    )


def test_a_missing_package_is_told_by_its_name() -> None:
    lacking = Problem(type="ModuleNotFoundError", message="No module named 'xlrd'", module="xlrd")
    named = diagnosis(finding("test_a", "environment"), needs_language_packages=["xlrd"])
    driven = ready().fails({"test_a": lacking}).says(named).builds()
    assert taught(driven) == ()
    assert taught(driven.passes()) == (
        "ModuleNotFoundError in test_a: No module named 'xlrd'. It was repaired by installing xlrd.",
    )


def test_a_repair_in_vain_teaches_nothing_and_the_next_one_does() -> None:
    driven = ready(code=CODES[0]).fails(test_a="assert 4 == 3")
    driven.says(diagnosis(finding("test_a", fix="Add harder"))).says(CODES[1])
    driven.says({"missing_fixes": []}).fails(test_a="assert 5 == 3")  # the same one, by its mask
    assert taught(driven) == ()
    driven.says(diagnosis(finding("test_a", "test_error", "Expect less")))
    driven.says(patches(patch("test_a", "assert add(1, 2) == -2")))
    driven.says({"missing_fixes": []}).passes()
    (lesson,) = taught(driven)
    assert "Expect less" in lesson
    assert "Add harder" not in lesson


def test_a_session_that_repaired_nothing_teaches_nothing() -> None:
    assert taught(ready().passes()) == ()


def test_what_went_away_by_itself_teaches_nothing() -> None:
    failing = ready(code=CODES[0]).fails(test_a="assert 4 == 3")
    failing.says(diagnosis(finding("test_a")))
    passing = ready(code=CODES[0]).passes()
    same = [event for event in passing.events if event.name in ("code_written", "tests_passed")]
    assert lessons(failing.workflow, [*failing.events, *same]) == ()


def test_failures_that_one_repair_mended_are_one_lesson() -> None:
    both = {name: finding(name, fix=FIX) for name in ("test_a", "test_b")}
    driven = ready(code=CODES[0]).fails(test_a="assert 4 == 3", test_b="assert 1 == 0")
    driven.says(diagnosis(*both.values())).says(RIGHT).passes()
    assert len(taught(driven)) == 1


# --- the tool maker -------------------------------------------------------------------------------

JOB = Job(prompt="Count words.", personas=PERSONAS)
TOOL = "def count(text):\n    return len(text.split(','))\n\n\nprint(count('a b'))\n"
FIXED = TOOL.replace("','", "")
HARNESS = "def test_logic():\n    assert count('a b') == 2, 'two words'\n"
TRACEBACK = """Traceback (most recent call last):
  File "/var/inputs/solution.py", line 5, in <module>
  File "/var/inputs/solution.py", line 2, in count
  File "/usr/lib/python3.12/json.py", line 9, in load
ValueError: 12 is no word
"""


def fenced(source: str) -> str:
    return f"```python\n{source}```\n"


def written() -> Driven:
    return Driven(JOB, workflow=TOOLMAKER).says("A design.").says(fenced(TOOL)).builds()


def runs(driven: Driven) -> Driven:
    return driven.script(RunOutcome(exit_status=0))


def test_a_crash_is_told_by_its_exception_and_what_was_changed() -> None:
    driven = runs(written().crashes(TRACEBACK).says(fenced(FIXED)))
    (lesson,) = taught(driven)
    assert lesson.split("\n") == [
        "ValueError in count: # is no word. It was repaired by this change of the code:",
        "-    return len(text.split(','))",
        "+    return len(text.split())",
    ]


def test_a_repair_of_the_logic_counts_once_the_harness_passes() -> None:
    driven = runs(written()).says(fenced(HARNESS)).fails(test_logic="two words")
    driven = runs(driven.says(fenced(FIXED)))
    assert taught(driven) == ()
    (lesson,) = taught(driven.passes())
    assert lesson.startswith("AssertionError in test_logic: two words. It was repaired by")
    assert "+    return len(text.split())" in lesson


def test_an_exit_status_without_an_exception_is_told_as_it_is() -> None:
    (lesson,) = taught(runs(written().crashes("usage: tool FILE", 2).says(fenced(FIXED))))
    assert lesson.startswith("exit status 2 in (script): usage: tool FILE.")


# --- bounds ---------------------------------------------------------------------------------------


def test_long_texts_are_cut() -> None:
    long = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(100)) + FIXED
    driven = runs(written().crashes("ValueError: " + "x" * 5000).says(fenced(long)))
    (lesson,) = taught(driven)
    assert len(lesson) < 3 * LONGEST_PART + LONGEST_DIFF * 100
    assert "lines more" in lesson


def test_huge_files_are_not_compared() -> None:
    huge = "import os\n" * 3000 + FIXED
    (lesson,) = taught(runs(written().crashes().says(fenced(huge))))
    assert lesson.endswith("It was repaired by a change of the code.")
