"""Two tapes side by side: where they part, and what differs after that.

What two runs never have in common says nothing (how long something took, the provider's name of an
answer, what a sandbox calls an image, and whether that was found or built) and is left out of the
comparison. So is the event that begins a fork, for what it changes shows in what it asks, and the one
that tells of a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from codetape.replay.diffs import counted, difference_of, in_words, readable_request
from codetape.replay.reading import Step, Tape
from codetape.states.changed_tests import changed_tests
from codetape.states.events import Forked
from codetape.states.session import Session

ANY = frozenset(
    {"seconds", "cpu_seconds", "peak_memory", "request_id", "cached", "sandbox", "ref"},
)
"""Fields that differ from run to run."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    """Something of both tapes."""

    one: T
    other: T

    @property
    def same(self) -> bool:
        """True if they are equal."""
        return self.one == self.other


@dataclass(frozen=True, slots=True)
class Parting:
    """The first event that differs: its numbers, what stands there, and the difference in words.

    `seqs` and `events` are None where a tape has ended. `diff` is empty where words say it all.
    """

    seqs: Pair[int | None]
    events: Pair[str | None]
    reason: str
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two tapes, `sessions`. `parting` is None if they are the same.

    `paths` are "number event -> state" from there on. `code` and `tests` are unified diffs of the last
    ones, empty if they are equal, `changed_tests` the second of these in words;
    `packages` what only one of both images holds. `facts` are numbers
    and endings by name: calls, input and output tokens, cost (None: unknown), seconds, and so on.
    """

    sessions: Pair[str]
    parting: Parting | None
    paths: Pair[tuple[str, ...]]
    code: str
    tests: str
    changed_tests: tuple[str, ...]
    packages: Pair[tuple[str, ...]]
    facts: dict[str, Pair[Any]]


def compare(one: Tape, other: Tape) -> Comparison:
    """Compare two tapes. Raises IllegalTransition if one cannot be folded under today's rules."""
    parting = _parting(one, other)
    begin = parting.seqs if parting else Pair(None, None)
    last = Pair(one.session_at(-1), other.session_at(-1))
    return Comparison(
        sessions=Pair(one.id, other.id),
        parting=parting,
        paths=Pair(_path(one, begin.one), _path(other, begin.other)),
        code=_text_diff(last, "code"),
        tests=_text_diff(last, "tests"),
        changed_tests=_changed_tests(last),
        packages=_packages(last),
        facts={name: Pair(of(last.one), of(last.other)) for name, of in _FACTS.items()},
    )


# --- where they part ------------------------------------------------------------------------------


def _parting(one: Tape, other: Tape) -> Parting | None:
    for a, b in zip_longest(_steps(one), _steps(other)):
        if a is None or b is None:
            return _ended(a, b)
        if not _same(a, b):
            return _differing(a, b)
    return None


def _steps(tape: Tape) -> Iterator[Step]:
    return (step for step in tape if not (isinstance(step.event, Forked) or step.tells_of_a_crash))


def _ended(a: Step | None, b: Step | None) -> Parting:
    longer = a or b
    assert longer is not None, "one of both has the event"
    names = Pair(a.event.name if a else None, b.event.name if b else None)
    ended = "the second" if b is None else "the first"
    seqs = Pair(a.seq if a else None, b.seq if b else None)
    return Parting(seqs, names, f"{ended} tape ends before {longer.event.name}")


def _same(a: Step, b: Step) -> bool:
    """True if two events, and what was asked before them, say the same."""
    if (a.event.name, a.state) != (b.event.name, b.state) or _facts(a) != _facts(b):
        return False
    return a.record.request_key == b.record.request_key or _asked(a) == _asked(b)


def _facts(step: Step) -> Any:
    return _stripped(step.event.model_dump(mode="json"))


def _asked(step: Step) -> Any:
    return _stripped(readable_request(step.request))


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items() if key not in ANY}
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    return value


def _differing(a: Step, b: Step) -> Parting:
    return Parting(Pair(a.seq, b.seq), Pair(a.event.name, b.event.name), *_difference(a, b))


def _difference(a: Step, b: Step) -> tuple[str, str]:
    """Say in words how two events differ, the cause first; and the changed lines."""
    asked = Pair(_asked(a), _asked(b))
    if asked.one and asked.other and not asked.same:
        if a.request_name != b.request_name:
            return f"{a.request_name} was answered in one, {b.request_name} in the other", ""
        diff, lines = difference_of(asked.one, asked.other, ("first", "second"))
        return in_words(asked.one, asked.other, lines), diff
    if a.event.name != b.event.name:
        return f"{a.event.name} in one, {b.event.name} in the other", ""
    one, other = _facts(a), _facts(b)
    if one == other:
        return f"{a.event.name} leads to {a.state} in one, to {b.state} in the other", ""
    diff, lines = difference_of(one, other, ("first", "second"))
    names = ", ".join(name for name in one if one[name] != other[name])
    return f"{a.event.name} differs in {counted(lines)}: {names}", diff


# --- what differs after that ----------------------------------------------------------------------


def _path(tape: Tape, begin: int | None) -> tuple[str, ...]:
    steps = [step for step in tape if begin is not None and step.seq >= begin]
    return tuple(f"{step.seq} {step.event.name} -> {step.state}" for step in steps)


def _text_diff(last: Pair[Session], name: str) -> str:
    one, other = (getattr(session, name) for session in (last.one, last.other))
    return text_diff(one.source if one else "", other.source if other else "")


def _changed_tests(last: Pair[Session]) -> tuple[str, ...]:
    one, other = last.one.tests, last.other.tests
    return changed_tests(one.source, other.source) if one and other else ()


def text_diff(before: str, after: str, names: tuple[str, str] = ("first", "second")) -> str:
    """Return a unified diff of two texts, empty if they are equal."""
    lines = unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="", n=2)
    return "\n".join(lines)


def _packages(last: Pair[Session]) -> Pair[tuple[str, ...]]:
    one, other = (dict.fromkeys(_installed(session)) for session in (last.one, last.other))
    only = Pair([x for x in one if x not in other], [x for x in other if x not in one])
    return Pair(tuple(only.one), tuple(only.other))


def _installed(session: Session) -> Iterator[str]:
    yield from session.spec.requirements
    yield from session.spec.system_packages


def _ending(session: Session) -> str | None:
    return session.ending.reason if session.ending else None


_FACTS: dict[str, Callable[[Session], Any]] = {
    "ending": _ending,
    "events": lambda s: s.seq,
    "attempts": lambda s: s.attempts,
    "calls": lambda s: s.totals.calls,
    "input_tokens": lambda s: s.totals.input_tokens,
    "output_tokens": lambda s: s.totals.output_tokens,
    "cost_usd": lambda s: s.totals.cost,
    "seconds": lambda s: round(s.seconds, 3),
}
