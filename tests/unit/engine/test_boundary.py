"""The boundary: whatever models and sandboxes say can be stored, and no secret gets through."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.engine.boundary import LONGEST, Boundary
from codetape.engine.codec import pack_event, unpack_event
from codetape.states.events import Planned, TestsPassed
from codetape.states.values import Answer, RunOutcome, canonical

ANYTHING = st.text(st.characters(codec=None, categories=None), max_size=200)
"""Texts with NUL, lone surrogates and all else that Python can hold."""


@given(ANYTHING)
def test_any_text_comes_out_storable_and_twice_is_once(text: str) -> None:
    clean = Boundary().text(text)
    clean.encode()
    assert "\x00" not in clean
    assert Boundary().text(clean) == clean


@given(ANYTHING)
def test_an_answer_of_any_text_survives_the_tape(text: str) -> None:
    answer = Boundary().clean(Answer(text=text))
    event = Planned(description="d", approach="a", answer=answer)
    packed = pack_event(event)
    assert unpack_event("planned", 1, packed.text, packed.blobs.__getitem__) == event


@given(ANYTHING)
def test_the_original_of_a_changed_answer_is_kept(text: str) -> None:
    answer = Boundary().clean(Answer(text=text))
    original = answer.text if answer.raw is None else json.loads(answer.raw)
    assert original == text


def test_two_surrogates_that_belong_together_become_their_character() -> None:
    assert Boundary().text("\ud83c\udf89") == "\N{PARTY POPPER}"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_becomes_unknown(number: float) -> None:
    clean = Boundary().clean(Answer(text="x", cost=number))
    assert clean.cost is None
    canonical(clean.model_dump(mode="json"))


def test_a_long_text_keeps_head_and_tail_and_says_what_was_cut() -> None:
    clean = Boundary().clean(RunOutcome(stdout="a" * LONGEST + "b" * 1000))
    assert clean.stdout.startswith("aaa")
    assert clean.stdout.endswith("bbb")
    assert "[… 1000 characters left out …]" in clean.stdout


@given(st.text(min_size=8, max_size=20), st.text(max_size=50), st.text(max_size=50))
def test_no_secret_gets_through(secret: str, before: str, after: str) -> None:
    boundary = Boundary({"KEY": secret})
    clean = boundary.clean(Answer(text=f"{before}{secret}{after}"))
    if secret not in "<secret KEY>":
        assert secret not in (clean.text or "").replace("<secret KEY>", "")
    assert "<secret KEY>" in (clean.text or "")


def test_the_longer_of_two_secrets_is_replaced_whole() -> None:
    boundary = Boundary({"SHORT": "hunter", "LONG": "hunter2-and-more"})
    assert boundary.text("hunter2-and-more") == "<secret LONG>"


def test_a_secret_deep_in_an_outcome_is_found() -> None:
    boundary = Boundary({"KEY": "canary-99"})
    run = RunOutcome(refused_outputs=("canary-99 is a link",))
    clean = boundary.clean(TestsPassed(run=run))
    assert "canary" not in clean.model_dump_json()


@pytest.mark.parametrize("secret", ['qu"ote', "back\\slash", "umläut", "line\nbreak"])
def test_a_secret_that_json_escapes_is_found(secret: str) -> None:
    assert secret not in (Boundary({"KEY": secret}).clean(Answer(text=f"<{secret}>")).text or "")


def test_a_clean_value_is_not_copied() -> None:
    answer = Answer(text="plain", cost=0.5)
    assert Boundary({"KEY": "canary"}).clean(answer) is answer


PARTS = st.sampled_from(
    (
        *("secret", "<secret ", "DB", "<secret DB>", ">", "pass-word", "hunter2", "test", "_code"),
        *("characters left out", "0", '"', "\\", "\n", " ", "\ud83c", "\udf89", "\x00"),
    )
)
MADE = st.lists(PARTS, max_size=12).map("".join)
SECRETS = st.dictionaries(st.sampled_from(["DB", "KEY", "OTHER"]), MADE.filter(bool), max_size=3)


@given(SECRETS, MADE | ANYTHING)
def test_cleaning_twice_is_cleaning_once(secrets: dict[str, str], text: str) -> None:
    """Also for secrets that hold each other, or words of the mask."""
    boundary = Boundary(secrets)
    once = boundary.clean(Answer(text=text, notes=(text,)))
    assert boundary.clean(once) == once
    run = boundary.clean(RunOutcome(stdout=text, refused_outputs=(text,)))
    assert boundary.clean(run) == run


@given(SECRETS, MADE, MADE)
def test_cleaning_a_text_that_is_cut_twice_is_once(
    secrets: dict[str, str], start: str, end: str
) -> None:
    boundary = Boundary(secrets)
    once = boundary.text(start + "a" * LONGEST + end)
    assert boundary.text(once) == once


def test_a_secret_that_is_the_masks_own_word_is_masked_once() -> None:
    boundary = Boundary({"DB_PASSWORD": "secret12", "OTHER": "DB_PASSWORD"})
    once = boundary.text("secret12 and DB_PASSWORD")
    assert once == "<secret DB_PASSWORD> and <secret OTHER>"
    assert boundary.text(once) == once


def test_a_common_word_ruins_no_key() -> None:
    """`OPENAI_API_KEY=test` is how a local server is used; it is no secret."""
    text = '{"test_code": "def test_x(): pass"}'
    assert Boundary({"OPENAI_API_KEY": "test"}).text(text) == text


def test_a_short_secret_is_masked_as_a_word_of_its_own() -> None:
    boundary = Boundary({"PIN": "4711"})
    assert boundary.text("4711, pin=4711; 14711") == "<secret PIN>, pin=<secret PIN>; 14711"


def test_the_json_form_of_a_secret_is_masked() -> None:
    assert Boundary({"KEY": 'quo"te-quote'}).text('{"x": "quo\\"te-quote"}') == (
        '{"x": "<secret KEY>"}'
    )
