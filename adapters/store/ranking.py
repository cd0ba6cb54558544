"""Which lessons a request is told, and in which order. Pure, and the same for the same lessons."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LEAST_SHARE = 0.25
"""A lesson has to have this share of a request's words to be told, and two of them at least."""

ENOUGH_WORDS = 12
"""So many words are all of a request: a long one need not be met in each of them."""

MOST_WORDS = 200
"""Words of a request that are looked for, and characters of a word."""

HALF_LIFE = 90.0
"""Days after which half of what a lesson has for being fresh is gone."""

PRAISED = 1.5
"""How much more weight a lesson has that a person has praised, or that is a person's own words."""

_WORD = re.compile(r"[^\W_]{2,}")

_COMMON = frozenset(
    """
    about above after all also am an and any are as at be been below but by can could did do does each
    every for from get give given had has have her him his how if in into is it its let make may me
    more most must my need no not of on one only or other our out over please same shall should so some
    such than that the their them then there these they this those to two under up us use used using
    want was we were what when where which while who will with would you your
    code create file function generate print program python return script tool write
    """.split()
)
"""Words that nearly every request has; they tell nothing of what it is about."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson that shares words with a request.

    `words` are those of the request that it has, `age` is in days, `good` is what a person said of the
    session that it comes from, None if nobody said anything. `note`: it is a person's own words.
    """

    id: int
    words: frozenset[str]
    uses: int = 0
    age: float = 0.0
    good: bool | None = None
    note: bool = False

    @property
    def sunk(self) -> bool:
        """True for what was derived from a session that a person did not like."""
        return self.good is False and not self.note


def words_of(request: str) -> tuple[str, ...]:
    """Return the words that say what a request is about, each once, in their order."""
    found = dict.fromkeys(word[:MOST_WORDS] for word in _WORD.findall(request.lower()))
    return tuple(word for word in found if word not in _COMMON)[:MOST_WORDS]


def ranked(
    asked: tuple[str, ...], lessons: Iterable[Candidate], frequency: Mapping[str, int], count: int
) -> list[Candidate]:
    """Return the lessons that are about what is asked, the best first; of equals, the oldest id.

    A lesson weighs as much as the words that it shares, the rare ones more, then for being fresh, used
    and praised. What is sunk comes after everything else. `frequency` says in how many of the `count`
    lessons a word is.
    """
    weights = {word: math.log(1 + count / max(frequency.get(word, 0), 1)) for word in asked}
    related = [lesson for lesson in lessons if is_related(asked, lesson.words)]
    return sorted(related, key=lambda x: (x.sunk, -weight(x, weights), x.id))


def is_related(asked: tuple[str, ...], shared: frozenset[str]) -> bool:
    """Say whether a lesson that shares these words is about what is asked."""
    least = max(min(2, len(asked)), LEAST_SHARE * min(len(asked), ENOUGH_WORDS))
    return bool(shared) and len(shared) >= least


def weight(lesson: Candidate, weights: Mapping[str, float]) -> float:
    """Return how much a lesson is worth to a request whose words weigh so much."""
    relevance = math.fsum(weights[word] for word in lesson.words)
    fresh = 1 + math.exp2(-max(lesson.age, 0.0) / HALF_LIFE)
    used = 1 + math.log2(1 + lesson.uses) / 10
    praised = PRAISED if lesson.note or lesson.good else 1.0
    return round(relevance * fresh * used * praised, 9)
