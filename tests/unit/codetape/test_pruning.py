"""Which sessions may go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.engine.ports import SessionRow
from codetape.pruning import age, choose

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def row(id: str, days: float = 0, state: str = "Done", parent: str | None = None) -> SessionRow:
    """A session that changed so many days ago."""
    moment = (NOW - timedelta(days=days)).isoformat()
    return SessionRow(
        id=id, workflow="autocoder", name="", state=state, seq=9, head="", started_at=moment,
        updated_at=moment, owner="somebody" if state == "running" else None, parent=parent,
        parent_seq=3 if parent else None,
    )  # fmt: skip


OLD, NEW = row("old", 40), row("new", 1)


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        ({"older_than": timedelta(days=30)}, ["old"]),
        ({"keep": 1}, ["old"]),
        ({"keep": 0}, ["old", "new"]),
        ({"keep": 9}, []),
        ({"states": ["Testing"]}, []),
        ({"states": ["Done"], "older_than": timedelta(days=2)}, ["old"]),
    ],
)
def test_what_is_given_has_to_be_true_of_each(given: dict[str, object], gone: list[str]) -> None:
    chosen = choose([OLD, NEW], NOW, **given)  # type: ignore[arg-type]
    assert [row.id for row in chosen.gone] == gone


def test_what_runs_stays_and_what_it_came_from() -> None:
    rows = [row("a", 9), row("b", 8, parent="a"), row("c", 7, "running", parent="b"), row("d", 9)]
    chosen = choose(rows, NOW, keep=0)
    assert [row.id for row in chosen.gone] == ["d"]
    assert [(row.id, reason) for row, reason in chosen.kept] == [
        ("a", "its fork b stays"),
        ("b", "its fork c stays"),
        ("c", "it is running"),
    ]


TREES = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from(["Done", "Testing", "running"]), st.integers(0)),
    max_size=12,
)


@given(TREES, st.integers(0, 6), st.integers(0, 60), st.sampled_from([(), ("Done",)]))
def test_no_session_loses_what_it_came_from(
    tree: list[tuple[int, str, int]], keep: int, days: int, states: tuple[str, ...]
) -> None:
    rows = [
        row(str(n), d, state, str(of % n) if n and of % 3 else None)
        for n, (d, state, of) in enumerate(tree)
    ]
    chosen = choose(rows, NOW, older_than=timedelta(days=days), keep=keep, states=states)
    gone = [row.id for row in chosen.gone]
    for one in rows:
        if one.id not in gone:
            assert one.parent not in gone
        elif one.parent in gone:
            assert gone.index(one.id) < gone.index(one.parent)
    assert len(rows) - len(gone) >= min(keep, len(rows))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("12h", 43200), ("1.5d", 129600), (" 2w ", 1209600)]
)
def test_ages(text: str, seconds: float) -> None:
    assert age(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1y", "1d2h"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(ValueError, match="is no age; write 90m, 12h, 30d or 8w"):
        age(text)


def test_nothing_is_older_than_an_age_before_all_calendars() -> None:
    assert choose([OLD, NEW], NOW, older_than=age("200000w")).gone == ()


def test_sessions_that_are_forks_of_each_other_end_no_walk() -> None:
    rows = [row("a", 9, parent="b"), row("b", 8, parent="a"), row("c", 7, "running", parent="b")]
    assert choose(rows, NOW, keep=0).gone == ()
