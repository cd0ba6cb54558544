"""`explore` finds what is wrong with a table: the built-in ones are fine, broken copies are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from codetape.states import guards as g
from codetape.states.autocoder import TABLE
from codetape.states.machine import BadTable, Machine, Row, State
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER, Workflow
from codetape.testing.cycles import cycles, longest
from codetape.testing.exploring import explore
from codetape.testing.reads import COUNT, numbers_read

pytestmark = pytest.mark.slow

Table = tuple[Row, ...]


def always(_: Session) -> bool:
    return True


def never(_: Session) -> bool:
    return False


def has_tests(s: Session) -> bool:
    return not g.tests_missing(s)


def without(event: str, state: State) -> Table:
    """The table without an event in a state."""
    kept = (
        replace(row, source=tuple(s for s in row.sources if (row.event, s) != (event, state)))
        for row in TABLE
    )
    return tuple(row for row in kept if row.sources)


def guarded(old: Callable[..., bool], new: Callable[..., bool]) -> Table:
    """The table with another guard in the place of one."""
    return tuple(
        replace(row, guards=tuple(new if guard is old else guard for guard in row.guards))
        for row in TABLE
    )


def leading(events: str, state: State, dest: State) -> Table:
    """The table with the last resort of some events leading elsewhere."""
    return tuple(
        replace(row, dest=dest)
        if row.event in events.split() and row.sources == (state,) and not row.guards
        else row
        for row in TABLE
    )


def first(row: Row) -> Table:
    """The table with a row before all others of its event."""
    at = next(n for n, other in enumerate(TABLE) if other.event == row.event)
    return (*TABLE[:at], row, *TABLE[at:])


S = State
PLANTED: dict[str, tuple[Table, str, str]] = {
    "a lost row": (without("tests_passed", S.TESTING), "refused", "Testing tests_passed"),
    "an operator's lost row": (without("paused", S.DIAGNOSING), "refused", "Diagnosing paused"),
    "a guard negated": (guarded(g.tests_missing, has_tests), "fault", ""),
    "an unbounded retry": (guarded(g.sandbox_retry_left, always), "endless", ""),
    "answers without end": (guarded(g.answer_repair_left, always), "endless", ""),
    "calls without end": (guarded(g.call_retry_left, always), "endless", ""),
    "a guard that never holds": (guarded(g.comes_back, never), "row", "[never]"),
    "a row that hides others": (
        first(Row("reclassified", S.RECLASSIFY, S.NEEDS_CODE, (always,))),
        "behind",
        "Reclassify reclassified",
    ),
    "a state that nothing reaches": (
        leading("tests_failed script_failed", S.TESTING, S.NEEDS_CODE),
        "state",
        "Diagnosing",
    ),
    "a build that leads nowhere": (
        leading("image_built", S.NEEDS_REBUILD, S.NEEDS_REBUILD),
        "endless",
        "NeedsRebuild",
    ),
    "a state that waits for nothing": (
        leading("tests_failed script_failed", S.TESTING, S.RECLASSIFY),
        "state",
        "Diagnosing",
    ),
    "a row for what never happens": (
        (*TABLE, Row("imagined", S.TESTING, S.DONE)),
        "row",
        "imagined",
    ),
}


def broken(table: Table) -> Workflow:
    return replace(AUTOCODER, machine=Machine(table))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    table, kind, where = PLANTED[name]
    found = explore(broken(table), most=180, outcomes=24, walks=60).findings
    assert any(one.kind == kind and where.split(" -> ")[0] in str(one) for one in found), found


def test_a_last_resort_that_moved_up_is_no_table() -> None:
    row = next(row for row in TABLE if row.event == "code_written" and not row.guards)
    with pytest.raises(BadTable, match="a row after the one without guards"):
        Machine(first(row))


def test_the_table_of_the_auto_coder_is_fine() -> None:
    found = explore(AUTOCODER)
    assert found.findings == ()
    assert all(found.taken.values())
    assert found.longest > 20
    assert {"broken", "rejections", "repair.rounds"} <= set(found.counters)


def test_a_walk_is_the_same_each_time() -> None:
    one, other = (explore(AUTOCODER, most=60, walks=10) for _ in range(2))
    assert one == other


def test_what_guards_read_is_noted() -> None:
    session = Session(id="s")
    assert numbers_read(g.sandbox_retry_left, [session]) == {("broken",)}
    assert numbers_read(g.rejections_spent, [session]) == {("rejected", COUNT)}
    assert numbers_read(g.tests_missing, [session]) == set()


def test_cycles_and_the_longest_way() -> None:
    graph = {1: (2,), 2: (3, 2), 3: (1, 4), 4: (5,), 5: ()}
    assert {frozenset(cycle) for cycle in cycles(graph)} == {frozenset({1, 2, 3}), frozenset({2})}
    assert longest({1: (2, 3), 2: (3,), 3: ()}) == 2
