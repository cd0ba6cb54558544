"""Which lessons come first: each thing that counts for a lesson never counts against it."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from codetape.adapters.store.ranking import Candidate, is_related, ranked, words_of

WORDS = tuple("kelp basalt fjord moss lichen tern gannet shoal".split())
SHARED = st.frozensets(st.sampled_from(WORDS))
ASKED = st.lists(st.sampled_from(WORDS), unique=True).map(tuple)
LESSONS = st.lists(
    st.builds(
        Candidate,
        id=st.integers(1, 99),
        words=SHARED,
        uses=st.integers(0, 50),
        age=st.floats(0, 1000),
        good=st.sampled_from([None, True, False]),
        note=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda lesson: lesson.id,
)


def order(asked: tuple[str, ...], lessons: list[Candidate]) -> list[int]:
    """Rank lessons as a library does: only the words that were asked for count."""
    found = [replace(x, words=x.words & frozenset(asked)) for x in lessons]
    frequency = {word: sum(word in x.words for x in found) for word in asked}
    return [lesson.id for lesson in ranked(asked, found, frequency, len(found))]


@given(ASKED, LESSONS, st.randoms())
def test_the_order_is_that_of_the_lessons_however_they_are_read(
    asked: tuple[str, ...], lessons: list[Candidate], chance: random.Random
) -> None:
    mixed = lessons[:]
    chance.shuffle(mixed)
    assert order(asked, mixed) == order(asked, lessons)


@given(ASKED, LESSONS)
def test_what_is_told_is_about_what_is_asked(
    asked: tuple[str, ...], lessons: list[Candidate]
) -> None:
    told = order(asked, lessons)
    related = {x.id for x in lessons if is_related(asked, x.words & frozenset(asked))}
    assert set(told) == related
    assert all(x.words & frozenset(asked) for x in lessons if x.id in related)


@given(ASKED, LESSONS, st.data())
def test_nothing_good_lowers_a_lesson(
    asked: tuple[str, ...], lessons: list[Candidate], data: st.DataObject
) -> None:
    assume(told := order(asked, lessons))
    chosen = data.draw(st.sampled_from(told))
    one = next(x for x in lessons if x.id == chosen)
    better = data.draw(
        st.sampled_from(
            [
                replace(one, uses=one.uses + 1),
                replace(one, age=one.age / 2),
                replace(one, good=True),
            ]
        )
    )
    after = order(asked, [better if x is one else x for x in lessons])
    assert after.index(one.id) <= told.index(one.id)


@given(ASKED, LESSONS)
def test_what_a_person_disliked_comes_last(
    asked: tuple[str, ...], lessons: list[Candidate]
) -> None:
    sunk = {x.id for x in lessons if x.good is False and not x.note}
    told = [lesson in sunk for lesson in order(asked, lessons)]
    assert told == sorted(told)


@given(ASKED, SHARED, st.lists(st.integers(1, 99), unique=True))
def test_of_equals_the_oldest_comes_first(
    asked: tuple[str, ...], words: frozenset[str], ids: list[int]
) -> None:
    told = order(asked, [Candidate(n, words) for n in ids])
    assert told == sorted(told)


@given(st.text())
def test_the_words_of_a_request_hold_no_syntax(request: str) -> None:
    for word in words_of(request):
        assert word.isalnum()
        assert len(word) >= 2


def test_words_that_every_request_has_say_nothing() -> None:
    assert words_of("Write a Python script that will PRINT the moon's phases") == ("moon", "phases")
