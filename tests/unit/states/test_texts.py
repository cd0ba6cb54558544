"""What JSON spells can be stored, whatever escapes it has."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states.json_text import json_values
from codetape.states.texts import storable, well_formed
from codetape.states.values import canonical

TEXTS = st.text(st.characters(codec=None, categories=None), max_size=20)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
VALUES = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4)
)


@given(VALUES)
def test_b17_what_json_spells_can_be_stored_and_twice_is_once(value: Any) -> None:
    (found,) = next(json_values(json.dumps(value)))
    read: Any = found.value
    canonical(read).encode()
    assert "\\u0000" not in canonical(read)
    assert storable(read) == read


@given(st.text())
def test_what_utf8_can_hold_stays_as_it_is(text: str) -> None:
    assert well_formed(text) == text.replace("\x00", "\N{SYMBOL FOR NULL}")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_read_as_nothing(number: str) -> None:
    assert [x.value for x in next(json_values(f'{{"value": [{number}]}}'))] == [{"value": [None]}]
    assert storable(math.pi) == math.pi
