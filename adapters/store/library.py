"""What was learned from sessions, beside their tapes: lessons, a person's verdicts, artifacts.

A lesson is a short text of one lane, with the request that it comes from. Some are derived from a tape,
the others are what a person said of a session. Nothing here changes a tape: what a session was told is
on its own.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from codetape.adapters.store import ranking, rows, schema
from codetape.adapters.store.checks import (
    LARGEST,
    MAYBE_NUMBER,
    NUMBER,
    TEXT,
    UnreadableRow,
    typed,
    utc_now,
)
from codetape.adapters.store.database import Database
from codetape.adapters.store.library_tables import LIBRARY
from codetape.adapters.store.ranking import Candidate
from codetape.engine.boundary import bounded
from codetape.engine.ports import StoreError
from codetape.engine.tape import moment_of
from codetape.states.texts import well_formed

LANES = ("autocoder", "make_tool")
"""What learns apart from each other: a lesson of one lane is never told in the other."""

LONGEST = 2000
"""Characters of a lesson, and of the request that it comes from."""


class UnknownLesson(StoreError):
    """There is no lesson of this `id`, or it was forgotten."""

    def __init__(self, id: int) -> None:
        super().__init__(f"there is no lesson {id}")
        self.id = id


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson as it is kept.

    `request` and `session` are what it comes from; `uses` counts the sessions that were told it; `at`
    is when it was learned. `good` is what a person said of its session, None if nobody said anything.
    `note`: the text is that person's.
    """

    id: int
    lane: str
    text: str
    request: str
    session: str
    note: bool
    uses: int
    at: str
    good: bool | None

    @property
    def told(self) -> str:
        """The text as a model is told it, further lines set in."""
        text = self.text.replace("\n", "\n  ")
        if not self.note:
            return text
        return (
            f"A person praised this: {text}"
            if self.good
            else f"A person wants this avoided: {text}"
        )


@dataclass(frozen=True, slots=True)
class Guidance:
    """A lesson that is about a request, as a model is told it."""

    id: int
    text: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a session has left: what it is, and its path on this machine."""

    session: str
    kind: str
    path: str
    at: str


class Library(Database):
    """Lessons, verdicts and artifacts in the file of a store; without a path, in memory.

    Its tables are made when there is something to write. Texts are made valid and bounded. Every
    method may raise StoreUnusable, and ValueError for a lane that is none or a time without meaning.
    """

    steps = LIBRARY

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None) -> Self:
        """Open the library in the file of a store, or one in memory that is gone when it is closed."""
        return cls(path)

    # --- writing ----------------------------------------------------------------------------------

    def feedback(
        self, session: str, lane: str, good: bool, note: str = "", request: str = "", at: str = ""
    ) -> None:
        """Keep what a person says of a session; it takes the place of what was said before.

        A note becomes a lesson: to be followed if the verdict is good, to be avoided if it is bad. What
        was derived from a session with a bad verdict sinks below everything else.
        """
        session, note, at = well_formed(session), _kept(note), _time(at)
        with self._changing() as db:
            replaced = _note_of(db, session)
            said = _add(db, _lane(lane), note, request, session, at, note=True) if note else None
            row = (session, _lane(lane), good, said, at)
            db.execute("REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)", row)
            if replaced is not None:
                _delete(db, replaced)
        if replaced is not None:
            self._overwrite_log()

    def learn(
        self, session: str, lane: str, request: str, texts: Iterable[str], at: str = ""
    ) -> int:
        """Keep the lessons of a session's tape, once, and return how many there were to add.

        A session that was learned from before is left as it is, whatever was forgotten since.
        """
        session, at = well_formed(session), _time(at)
        kept = dict.fromkeys(filter(None, map(_kept, texts)))
        with self._changing() as db:
            if not db.execute("INSERT OR IGNORE INTO learned VALUES (?)", (session,)).rowcount:
                return 0
            new = [text for text in kept if not _is_known(db, _lane(lane), text, request)]
            for text in new:
                _add(db, lane, text, request, session, at, note=False)
        return len(new)

    def used(self, ids: Iterable[int]) -> None:
        """Count that these lessons were told to a session; those that are gone are left out."""
        if ids := tuple(ids):
            with self._changing() as db:
                for lesson in ids:
                    db.execute("UPDATE lessons SET uses = uses + 1 WHERE id = ?", (lesson,))

    def edit(self, id: int, text: str) -> None:
        """Give a lesson another text; the old one is overwritten. Raises UnknownLesson, ValueError."""
        if not (text := _kept(text)):
            raise ValueError("a lesson has a text; one that says nothing is better forgotten")
        with self._changing() as db:
            changed = db.execute("UPDATE lessons SET text = ? WHERE id = ?", (text, _id(id)))
            if not changed.rowcount:
                raise UnknownLesson(id)
            _write_anew(db)
        self._overwrite_log()

    def forget(self, id: int) -> None:
        """Delete a lesson and overwrite its text in the file. Raises UnknownLesson.

        A verdict stays without its note. Raises StoreError, after the lesson is gone, if somebody who
        is reading keeps its text in the log of the file.
        """
        with self._changing() as db:
            if not _delete(db, _id(id)):
                raise UnknownLesson(id)
        if not self._overwrite_log():
            raise StoreError(
                f"lesson {id} is forgotten, but another process is reading the store and so keeps its "
                "text in the log beside the file: end that process, then forget or edit any lesson"
            )

    def add_artifact(self, session: str, kind: str, path: str, at: str = "") -> None:
        """Keep that a session has left a file; of one path only the newest is kept."""
        row = (well_formed(session), well_formed(kind), well_formed(path), _time(at))
        with self._changing() as db:
            db.execute("REPLACE INTO artifacts VALUES (?, ?, ?, ?)", row)

    # --- reading ----------------------------------------------------------------------------------

    def guidance(
        self, lane: str, request: str, limit: int = 5, now: str = ""
    ) -> tuple[Guidance, ...]:
        """Return what earlier sessions taught that is about this request, the best first.

        See ranking.py for the order. A request that shares no words with a lesson is told nothing.
        """
        asked, now = ranking.words_of(well_formed(request)), _time(now)
        with self._reading() as db:
            found = _matches(db, _lane(lane), asked) if db else {}
            known = {x.id: x for x in _lessons(db, lane)} if db and found else {}
        words: dict[int, set[str]] = defaultdict(set)
        for word, ids in found.items():
            for lesson in ids:
                words[lesson].add(word)
        candidates = [_candidate(known[x], frozenset(has), now) for x, has in words.items()]
        frequency = {word: len(ids) for word, ids in found.items()}
        best = [known[x.id] for x in ranking.ranked(asked, candidates, frequency, len(known))]
        told = {lesson.told: lesson.id for lesson in reversed(best)}  # of equal texts, the best one
        return tuple(Guidance(x.id, x.told) for x in best if told[x.told] == x.id)[:limit]

    def lessons(self, lane: str | None = None) -> tuple[Lesson, ...]:
        """Return all lessons, or those of a lane, in the order in which they were learned."""
        if lane is not None:
            _lane(lane)
        with self._reading() as db:
            return tuple(_lessons(db, lane)) if db else ()

    def artifacts(self, session: str | None = None) -> tuple[Artifact, ...]:
        """Return the files that all sessions have left, or one, in the order of their times."""
        with self._reading() as db:
            found = db.execute(_ARTIFACTS, (session, session)) if db else ()
            return tuple(Artifact(*typed(row, (TEXT,) * 4, "artifacts")) for row in found)

    # --- the connection ---------------------------------------------------------------------------

    def _is_made_at_once(self, db: rows.Db) -> bool:
        schema.is_old(db, self._name, self.steps)  # refuses a file that is not ours
        return _is_there(db)

    @contextmanager
    def _reading(self) -> Iterator[rows.Db | None]:
        """Lend the connection for reading one moment; None if nothing was ever written."""
        with self._using() as db, rows.transaction(db, "DEFERRED"):
            yield db if _is_there(db) else None

    @contextmanager
    def _changing(self) -> Iterator[rows.Db]:
        """Lend the connection for one transaction that writes; the tables are there."""
        self._migrate()
        with self._writing() as db:
            yield db


_LESSONS = """
    SELECT id, lessons.lane, text, request, lessons.session, lessons.note, uses, lessons.at, good
    FROM lessons LEFT JOIN verdicts ON verdicts.session = lessons.session
    WHERE ? IS NULL OR lessons.lane = ? ORDER BY id
"""
_LESSON = (NUMBER, *(TEXT,) * 4, NUMBER, NUMBER, TEXT, MAYBE_NUMBER)
_HAVING = """
    SELECT id FROM lessons_words JOIN lessons ON id = lessons_words.rowid
    WHERE lessons_words MATCH ? AND lane = ?
"""
_ARTIFACTS = """
    SELECT session, kind, path, at FROM artifacts WHERE ? IS NULL OR session = ? ORDER BY at, rowid
"""


def _is_there(db: rows.Db) -> bool:
    return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = 'lessons'").fetchone())


def _lessons(db: rows.Db, lane: str | None) -> Iterator[Lesson]:
    for row in db.execute(_LESSONS, (lane, lane)):
        *facts, note, uses, at, good = typed(row, _LESSON, "lessons")
        if uses < 0 or moment_of(at) is None:
            raise UnreadableRow("a row of lessons is unreadable: the file is damaged or forged")
        verdict = None if good is None else bool(good)
        yield Lesson(*facts, bool(note), uses, at, verdict)  # type: ignore[call-arg]


def _matches(db: rows.Db, lane: str, asked: Iterable[str]) -> dict[str, list[int]]:
    """Return the lessons that have each word. A word in quotes is no syntax of a search."""
    return {
        word: [found for (found,) in db.execute(_HAVING, (f'"{word}"', lane))] for word in asked
    }


def _candidate(lesson: Lesson, words: frozenset[str], now: str) -> Candidate:
    age = (datetime.fromisoformat(now) - datetime.fromisoformat(lesson.at)) / timedelta(days=1)
    return Candidate(lesson.id, words, lesson.uses, age, lesson.good, lesson.note)


def _note_of(db: rows.Db, session: str) -> int | None:
    row = db.execute("SELECT note FROM verdicts WHERE session = ?", (session,)).fetchone()
    return row[0] if row else None


def _is_known(db: rows.Db, lane: str, text: str, request: str) -> bool:
    """True for what a fork has from its parent, and for what the same request taught before."""
    same = "SELECT 1 FROM lessons WHERE lane = ? AND text = ? AND request = ?"
    return bool(db.execute(same, (lane, text, _kept(request))).fetchone())


def _add(
    db: rows.Db, lane: str, text: str, request: str, session: str, at: str, *, note: bool
) -> int:
    row: tuple[Any, ...] = (lane, text, _kept(request), session, note, 0, at)
    db.execute("INSERT INTO lessons VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)
    (added,) = db.execute("SELECT last_insert_rowid()").fetchone()
    words = "INSERT INTO lessons_words (rowid, text, request) SELECT id, text, request FROM lessons"
    db.execute(f"{words} WHERE id = ?", (added,))
    return int(added)


def _delete(db: rows.Db, id: int) -> bool:
    """Delete a lesson if it is there, and say whether it was."""
    db.execute("UPDATE verdicts SET note = NULL WHERE note = ?", (id,))
    deleted = db.execute("DELETE FROM lessons WHERE id = ?", (id,)).rowcount
    _write_anew(db)
    return bool(deleted)


def _write_anew(db: rows.Db) -> None:
    """Write all lessons and their index anew: pages that were split keep parts of what they held.

    What is deleted whole is overwritten whole.
    """
    kept = list(db.execute("SELECT * FROM lessons ORDER BY id"))
    db.execute("DELETE FROM lessons")
    for row in kept:
        db.execute("INSERT INTO lessons VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.execute("INSERT INTO lessons_words (lessons_words) VALUES ('rebuild')")


def _id(lesson: int) -> int:
    if not 0 < lesson <= LARGEST:  # SQLite has no other integers
        raise UnknownLesson(lesson)
    return lesson


def _lane(lane: str) -> str:
    if lane not in LANES:
        raise ValueError(f"lane: {lane!r} is none of {', '.join(LANES)}")
    return lane


def _kept(text: str) -> str:
    """Return a text as it is kept."""
    return bounded(well_formed(text).strip(), LONGEST)


def _time(at: str) -> str:
    """Return a time in UTC, as a clock writes it; an empty one is the system's. Raises ValueError."""
    if not at:
        return utc_now()
    moment = datetime.fromisoformat(at)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
