"""Choices made by a row of numbers, so that whatever is made of them can be made again.

Everything that the kit brings from outside is chosen by a `Chance`. Hypothesis draws its bytes, a seed
makes them, or `deviations` tries the choices one after the other. Zeros stand for the best outcome, so
a failing example shrinks towards the happy path: what is left of it is what matters.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TypeVar

T = TypeVar("T")

Choices = tuple[int, ...]
"""What was chosen, in order; what is not there is 0."""


class Chance:
    """Choices by a row of numbers. One that has run out chooses the first of everything.

    `trouble` is how often something goes wrong: one time in so many.
    """

    def __init__(self, data: Iterable[int], trouble: int = 12) -> None:
        self._data = iter(data)
        self._trouble = trouble

    def number(self, below: int) -> int:
        """Choose from 0 to `below` - 1."""
        return next(self._data, 0) % below

    def one(self, options: Sequence[T]) -> T:
        """Choose one of the options; the first is the simplest."""
        return options[self.number(len(options))]

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Choose up to `most` options, each at most once."""
        chosen = [self.one(options) for _ in range(self.number(most + 1))]
        return [option for n, option in enumerate(chosen) if option not in chosen[:n]]

    def rare(self, usual: T, others: Sequence[T]) -> T:
        """Choose what is usual, or one time in four one of the others."""
        at = self.number(4 * len(others)) - 3 * len(others)
        return others[at] if at >= 0 else usual

    def detail(self, options: Sequence[T]) -> T:
        """Choose one of the options, of something that no rule looks at."""
        return self.one(options)

    def trouble(self) -> bool:
        """Choose whether something goes wrong."""
        return self.number(self._trouble) == self._trouble - 1


def seeded(seed: str, trouble: int = 12) -> Chance:
    """A Chance without end that is the same for the same seed, on every machine."""
    blocks = (hashlib.sha256(f"{seed} {n}".encode()).digest() for n in count())
    return Chance((byte for block in blocks for byte in block), trouble)


class Noted(Chance):
    """Follows `choices` and notes how many options there were each time."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices, trouble=2)
        self.options: list[int] = []

    def number(self, below: int) -> int:
        """Choose as all do, and remember how many there were to choose from."""
        self.options.append(below)
        return super().number(below)

    def rare(self, usual: T, others: Sequence[T]) -> T:
        """Each of them is one choice."""
        return self.one([usual, *others])

    def detail(self, options: Sequence[T]) -> T:
        """What no rule looks at is no choice."""
        return options[0]


def deviations(
    make: Callable[[Chance], T], *, most: int, changed: int = 2
) -> Iterator[tuple[Choices, T]]:
    """Yield what `make` makes of all zeros, then with one choice changed, then with two, and so on.

    `most` bounds how many are made, `changed` how many choices may differ from the best one.
    """
    queue: deque[tuple[Choices, int]] = deque([((), 0)])
    for _ in range(most):
        if not queue:
            return
        choices, changes = queue.popleft()
        noted = Noted(choices)
        yield choices, make(noted)
        if changes < changed:
            queue.extend((child, changes + 1) for child in _children(choices, noted.options))


def _children(choices: Choices, options: Sequence[int]) -> Iterator[Choices]:
    """One more choice that is not the best, after those that are changed already."""
    for at in range(len(choices), len(options)):
        padding = (0,) * (at - len(choices))
        yield from ((*choices, *padding, other) for other in range(1, options[at]))
