"""Changed copies are those that the standard library makes."""

from __future__ import annotations

import dataclasses

import pytest

from codetape.states.changing import replace
from codetape.states.session import Rejected, Repair, Session


def test_a_copy_differs_in_what_was_named_and_in_nothing_else() -> None:
    session = Session(id="session00001", notes=("one",))
    changed = replace(session, seq=3, notes=())
    assert changed == dataclasses.replace(session, seq=3, notes=())
    assert (session.seq, session.notes) == (0, ("one",))


@pytest.mark.parametrize(
    "value", [Session(id="session00001"), Repair("code"), Rejected("x", "package", "gone")]
)
def test_all_that_a_fold_changes_can_be_copied(value: Session | Repair | Rejected) -> None:
    assert replace(value) == value
    assert replace(value) is not value
    with pytest.raises(dataclasses.FrozenInstanceError):
        replace(value).seq = 1  # type: ignore[misc, union-attr]


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(TypeError, match="Session has no field sequence"):
        replace(Session(id="session00001"), sequence=3)  # type: ignore[call-arg]
