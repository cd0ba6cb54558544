"""Two tapes side by side."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codetape.adapters.store.memory import MemoryStore
from codetape.replay.compare import Comparison, Pair, compare
from codetape.replay.imports import TapeFile
from codetape.replay.reading import open_tape
from codetape.states.values import canonical
from tests.support.forks import forked, resumed
from tests.support.sessions import ID
from tests.unit.replay.sessions import LONG, Script, changed, code, played, tape_of

FORK = "fork00000001"


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    played(LONG, store)
    return store


def against(script: Script, store: MemoryStore) -> Comparison:
    """Compare the long session with another one."""
    played(script, store, "other0000001")
    return compare(open_tape(store, ID), open_tape(store, "other0000001"))


def test_equal_sessions_are_the_same(store: MemoryStore) -> None:
    comparison = against(LONG, store)
    assert comparison.parting is None
    assert comparison.paths == Pair((), ())
    assert (comparison.code, comparison.tests) == ("", "")
    assert all(pair.same for pair in comparison.facts.values())


def test_a_fork_that_goes_the_same_way_is_the_same(store: MemoryStore) -> None:
    forked(store, 19)
    resumed(store, FORK, runs=LONG.runs[-1:])
    assert compare(open_tape(store, ID), open_tape(store, FORK)).parting is None


def test_another_answer_is_where_they_part(store: MemoryStore) -> None:
    answers = {**LONG.answers, "code": [code("return 7", packages=["scipy"])] * 9}
    comparison = against(Script(answers, LONG.runs, posts=LONG.posts), store)
    parting = comparison.parting
    assert parting
    assert parting.seqs == Pair(6, 6)
    assert parting.events == Pair("code_written", "code_written")
    assert parting.reason.startswith("code_written differs in")
    assert "return 7" in parting.diff
    assert comparison.paths.one[0] == "6 code_written -> NeedsTests"
    assert "+    return 7" in comparison.code
    assert comparison.packages == Pair(("numpy",), ("scipy",))
    assert comparison.facts["attempts"].one == 3


def test_another_prompt_is_the_cause_that_is_named(store: MemoryStore) -> None:
    job = LONG.job.model_copy(update={"schema_text": "one column"})
    forked(store, 5, job=job)
    resumed(store, FORK, LONG.answers, LONG.runs)
    parting = compare(open_tape(store, ID), open_tape(store, FORK)).parting
    assert parting
    assert (parting.seqs, parting.reason) == (Pair(6, 7), "the code prompt differs in 3 lines")
    assert "one column" in parting.diff


def test_a_tape_that_ends_before_the_other(store: MemoryStore) -> None:
    forked(store, 12)
    parting = compare(open_tape(store, ID), open_tape(store, FORK)).parting
    assert parting
    assert parting.seqs == Pair(13, None)
    assert parting.events.other is None
    assert parting.reason.startswith("the second tape ends before")


@pytest.mark.parametrize("fields", [{"seconds": 99.0, "request_id": "xyz"}])
def test_what_no_two_runs_share_says_nothing(fields: dict[str, Any]) -> None:
    store = MemoryStore()
    played(LONG, store)
    file: TapeFile = tape_of(store)
    row = next(row for row in file.rows if row.name == "planned")
    data = json.loads(row.data)
    data["answer"] |= fields
    other = changed(file, row.seq, data=canonical(data))
    assert compare(open_tape(file, ID), open_tape(other, ID)).parting is None
    data["answer"]["finish_reason"] = "length"
    other = changed(file, row.seq, data=canonical(data))
    parting = compare(open_tape(file, ID), open_tape(other, ID)).parting
    assert parting
    assert parting.seqs.one == row.seq
