"""What a repair of tests has changed in them is told wherever a session is looked at."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from typing import Any

import pytest

from codetape.adapters.sandbox.fake import failed
from codetape.adapters.store.memory import MemoryStore
from codetape.cli import diff, report, show
from codetape.cli.plain import Plain
from codetape.cli.walking import Walk
from codetape.cli.watching import Watch
from codetape.replay.compare import compare
from codetape.replay.reading import open_tape
from codetape.result import Result
from tests.support.sessions import HAPPY, ID, PLAN, RIGHT, play

FIRST = "from solution import add\n\n\ndef test_add():\n    assert add(1, 2) == 4\n"
PATCH = "def test_add():\n    assert add(1, 2) == 3\n"
WRONG_TEST = {"test_name": "test_add", "suggested_fix": "Expect 3", "error_type": "test_error"}
TOLD = "test_add: expected 4, now 3"
REPAIRED: dict[str, list[Any]] = {
    "plan": [PLAN],
    "code": [RIGHT],
    "tests": [{"test_code": FIRST}],
    "diagnosis": [{"failures": [WRONG_TEST]}],
    "patch_tests": [{"patches": [{"test_name": "test_add", "fixed_code": PATCH}]}],
    "verify_tests": [{"all_fixes_applied": True, "missing_fixes": []}],
}


def repaired(store: MemoryStore, script: Any = REPAIRED, observer: Any = None) -> Result:
    """A session whose test was wrong: the run fails until it is repaired."""
    wrong = failed({"test_add": ("AssertionError", "assert 3 == 4")})
    made = asyncio.run(play(script, runs=[wrong], store=store, on_event=observer))
    return Result.of(made.session, store)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_result_says_which_expected_values_a_repair_changed(store: MemoryStore) -> None:
    result = repaired(store)
    assert result.success
    assert result.changed_tests == (TOLD,)
    assert json.loads(report.as_json(result))["changed_tests"] == [TOLD]
    assert TOLD in result._repr_html_()


def test_a_result_whose_tests_stayed_says_nothing(store: MemoryStore) -> None:
    made = asyncio.run(play(HAPPY, store=store))
    result, out = Result.of(made.session, store), StringIO()
    report.show_result(Plain(out), result)
    assert result.changed_tests == ()
    assert "changed" not in out.getvalue()


def test_the_summary_after_a_run_tells_the_changes(store: MemoryStore) -> None:
    out = StringIO()
    report.show_result(Plain(out), repaired(store))
    said = "The tests were changed since they were first written:\n"
    assert out.getvalue().endswith(f"{said}  {TOLD}\n")


def test_a_repair_is_told_while_it_happens_and_in_the_list_of_events(
    store: MemoryStore,
) -> None:
    live, later = StringIO(), StringIO()
    result = repaired(store, observer=Watch(Plain(live), None).on_event)
    show.show_events(Plain(later), result)
    for shown in (live, later):
        (line,) = [x for x in shown.getvalue().split("\n") if "tests_patched" in x]
        assert TOLD in line
        assert shown.getvalue().count(TOLD) == 1


def test_a_walk_tells_the_change_at_its_event(store: MemoryStore) -> None:
    result, out = repaired(store), StringIO()
    walk = Walk(Plain(out), open_tape(store, ID))
    walk.go(StringIO("\n" * (len(result.records) - 1)))
    assert out.getvalue().count(TOLD) == 1


def test_an_earlier_moment_of_a_session_has_its_own_changes(store: MemoryStore) -> None:
    result = repaired(store)
    at = next(r.seq for r in result.records if r.event.name == "tests_patched")
    for seq, told in ((at - 1, ()), (at, (TOLD,))):
        before, _ = show.load(store, ID, seq)
        assert before.changed_tests == told


def test_two_sessions_differ_in_expected_values_in_words(store: MemoryStore) -> None:
    repaired(store)
    other, out = MemoryStore(), StringIO()
    asyncio.run(play(REPAIRED | {"tests": [{"test_code": FIRST.replace("4", "5")}]}, store=other))
    comparison = compare(open_tape(store, ID), open_tape(other, ID))
    diff.show(Plain(out), comparison)
    assert comparison.changed_tests == ("test_add: expected 3, now 5",)
    assert "  test_add: expected 3, now 5\n" in out.getvalue()


HOSTILE = "'\\x1b[2J\u202e\\u202e</td><script>\\n99 tests passed'"


def test_a_hostile_expected_value_is_escaped_wherever_it_is_told(store: MemoryStore) -> None:
    script = REPAIRED | {"tests": [{"test_code": FIRST.replace("4", HOSTILE)}]}
    result, out = repaired(store, script), StringIO()
    report.show_result(Plain(out), result)
    show.show_events(Plain(out), result)
    assert len(result.changed_tests) == 1
    for text in (out.getvalue(), report.as_json(result), result._repr_html_()):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script>" not in result._repr_html_()
    assert "\n99" not in out.getvalue()
