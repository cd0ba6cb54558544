"""What was learned: kept once, found by what a request is about, edited, and forgotten for good."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetape.adapters.store.library import Artifact, Library, UnknownLesson
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.ports import StoreUnusable
from codetape.testing.stores import HOSTILE_TEXTS, write

LOGS = "Summarise an nginx access log by status and hour"
SIMILAR = "Summarise the nginx access logs by minute"
OTHER = "Draw the phases of the moon as ASCII art"
DAY = "2026-03-{:02}T12:00:00+00:00"
CANARY = "zanzibarcanary"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tapes.db"


@pytest.fixture(params=["file", "memory"])
def library(request: pytest.FixtureRequest, path: Path) -> Iterator[Library]:
    with closing(Library.open(path if request.param == "file" else None)) as library:
        yield library


def texts(library: Library, request: str = SIMILAR, lane: str = "autocoder") -> list[str]:
    return [told.text for told in library.guidance(lane, request, now=DAY.format(20))]


def raw(path: Path) -> bytes:
    """All bytes of a store, of its log too."""
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*")).lower()


# --- lessons --------------------------------------------------------------------------------------


def test_a_lesson_is_told_to_a_similar_request_of_its_lane_only(library: Library) -> None:
    assert library.learn("s1", "autocoder", LOGS, ["Lines may be cut."], DAY.format(1)) == 1
    assert texts(library) == ["Lines may be cut."]
    assert texts(library, OTHER) == []
    assert texts(library, "") == []
    assert texts(library, lane="make_tool") == []


def test_one_word_in_common_is_not_enough(library: Library) -> None:
    library.learn("s1", "autocoder", LOGS, ["Lines may be cut."])
    assert texts(library, "Plan a log cabin in the woods") == []
    assert texts(library, "Nginx") == ["Lines may be cut."]  # unless it is all that is asked


def test_a_session_is_learned_from_once_whatever_was_forgotten(library: Library) -> None:
    assert library.learn("s1", "autocoder", LOGS, ["one", "two", "one", " "]) == 2
    (one, _) = library.lessons()
    library.forget(one.id)
    assert library.learn("s1", "autocoder", LOGS, ["one", "two"]) == 0
    assert [lesson.text for lesson in library.lessons()] == ["two"]


def test_what_a_fork_inherited_is_not_learned_twice(library: Library) -> None:
    library.learn("parent", "autocoder", LOGS, ["one"])
    assert library.learn("fork", "autocoder", LOGS, ["one", "two"]) == 1
    assert library.learn("another", "autocoder", SIMILAR, ["one"]) == 1
    assert sorted(texts(library)) == ["one", "two"]  # of equal texts one is told


def test_a_lesson_says_where_it_comes_from_and_how_often_it_was_used(library: Library) -> None:
    library.learn("s1", "make_tool", LOGS, ["one"], DAY.format(1))
    (lesson,) = library.lessons("make_tool")
    library.used([lesson.id, lesson.id, 999])
    (lesson,) = library.lessons()
    assert (lesson.session, lesson.request, lesson.uses, lesson.good) == ("s1", LOGS, 2, None)
    assert lesson.at == "2026-03-01T12:00:00.000000+00:00"
    assert library.lessons("autocoder") == ()


# --- verdicts -------------------------------------------------------------------------------------


def test_a_bad_note_is_advice_to_avoid_it(library: Library) -> None:
    library.feedback("s1", "autocoder", False, "reading the whole file", LOGS, DAY.format(1))
    assert texts(library) == ["A person wants this avoided: reading the whole file"]
    assert texts(library, OTHER) == []


def test_a_bad_verdict_sinks_the_lessons_of_its_session(library: Library) -> None:
    library.learn("disliked", "autocoder", SIMILAR, ["sinks"], DAY.format(19))
    library.learn("old", "autocoder", "nginx access", ["stays up"], DAY.format(1))
    assert texts(library) == ["sinks", "stays up"]
    library.feedback("disliked", "autocoder", False)
    assert texts(library) == ["stays up", "sinks"]
    library.feedback("disliked", "autocoder", True)
    assert texts(library) == ["sinks", "stays up"]


def test_what_a_person_praised_or_said_goes_first(library: Library) -> None:
    for session in ("first", "praised"):
        library.learn(session, "autocoder", LOGS, [session], DAY.format(1))
    library.feedback("praised", "autocoder", True)
    assert texts(library) == ["praised", "first"]
    library.feedback("third", "autocoder", False, "this", LOGS, DAY.format(1))
    assert texts(library) == ["praised", "A person wants this avoided: this", "first"]


def test_a_later_verdict_takes_the_place_of_the_first_and_of_its_note(library: Library) -> None:
    library.feedback("s1", "autocoder", False, "first", LOGS)
    library.feedback("s1", "autocoder", True, "second", LOGS)
    assert texts(library) == ["A person praised this: second"]
    library.feedback("s1", "autocoder", True)
    assert library.lessons() == ()


def test_use_lifts_and_age_lowers_a_lesson(library: Library) -> None:
    for session, day in (("a", 1), ("b", 10), ("c", 10)):
        library.learn(session, "autocoder", LOGS, [session], DAY.format(day))
    assert texts(library) == ["b", "c", "a"]  # b and c are equal: the older id goes first
    library.used([3])
    assert texts(library) == ["c", "b", "a"]
    assert [x.id for x in library.guidance("autocoder", LOGS, 2, DAY.format(20))] == [3, 2]


# --- editing and forgetting -----------------------------------------------------------------------


def test_an_edited_lesson_is_found_by_its_words_of_today(library: Library) -> None:
    library.learn("s1", "autocoder", "x", ["turnips ripen slowly"])
    library.edit(1, "  radishes ripen quickly ")
    assert texts(library, "turnips slowly") == []
    assert texts(library, "radishes quickly") == ["radishes ripen quickly"]


@pytest.mark.parametrize("missing", [0, -1, 2, 2**70])
def test_a_lesson_that_is_not_there_is_named(library: Library, missing: int) -> None:
    library.learn("s1", "autocoder", LOGS, ["one"])
    acts: tuple[Callable[[], None], ...] = (
        lambda: library.forget(missing),
        lambda: library.edit(missing, "other"),
    )
    for act in acts:
        with pytest.raises(UnknownLesson, match=f"there is no lesson {missing}"):
            act()
    with pytest.raises(ValueError, match="forgotten"):
        library.edit(1, " ")
    assert [lesson.text for lesson in library.lessons()] == ["one"]


def test_a_wrong_lane_or_time_is_named_and_nothing_is_kept(library: Library) -> None:
    with pytest.raises(ValueError, match="'cooking' is none of autocoder, make_tool"):
        library.learn("s1", "cooking", LOGS, ["one"])
    with pytest.raises(ValueError, match="cooking"):
        library.feedback("s1", "cooking", True)
    with pytest.raises(ValueError, match="isoformat"):
        library.learn("s1", "autocoder", LOGS, ["one"], "yesterday")
    assert library.learn("s1", "autocoder", LOGS, ["one"]) == 1


def test_an_id_is_never_given_again(library: Library) -> None:
    library.learn("s1", "autocoder", LOGS, ["one"])
    library.forget(1)
    library.learn("s2", "autocoder", LOGS, ["two"])
    assert [lesson.id for lesson in library.lessons()] == [2]


WORDS = st.lists(st.sampled_from(["hedgehog", "lantern", "gravel", "ß", "x" * 300]), max_size=60)


class Unsynced(Library):
    """A library that does not wait for the disk."""

    def _opened(self) -> sqlite3.Connection:
        db = super()._opened()
        db.execute("PRAGMA synchronous = OFF")
        return db


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5), st.data())
def test_what_is_forgotten_is_nowhere_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, others: list[Any], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("forget") / "tapes.db"
    with closing(SqliteStore(path)) as store, closing(Unsynced.open(path)) as library:
        write(store, store.create("s", "autocoder", "", "me"), 3)  # its connection stays open
        for number, (text, request) in enumerate(others):
            library.learn(
                f"s{number}", "autocoder", " ".join(request), [f"{number} {' '.join(text)}"]
            )
            filler = " ".join(data.draw(WORDS))
            secret = f"{filler} {CANARY}{number} {CANARY} {filler}"  # the end of a page splits one
            library.learn(f"c{number}", "autocoder", f"{CANARY} {filler}", [secret])
            library.feedback(f"f{number}", "autocoder", False, secret, CANARY)
        assert CANARY.encode() in raw(path)
        doomed = [x for x in library.lessons() if CANARY in x.request]
        for lesson in data.draw(st.permutations(doomed)):
            if data.draw(st.booleans()):
                library.edit(lesson.id, "harmless")
            library.forget(lesson.id)
        assert CANARY[:8].encode() not in raw(path)
        assert len(library.lessons()) == len(others)
        assert len(list(store.read("s"))) == 3


@pytest.mark.parametrize("seed", [6, 8])  # of ways that pages were seen to keep a text
def test_pages_that_were_split_keep_nothing(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with closing(Unsynced.open(path)) as library:
        for number in range(60):
            size = chance.choice([20, 60, 100, 150, 300, 800])
            secret = f"{number} {CANARY[:8]} " * 3 + "y" * size
            text = secret if chance.random() < 0.5 else f"{number} " + "z" * size
            library.learn(f"s{number}", "autocoder", f"r{number}", [text])
            if chance.random() < 0.3:
                lesson = chance.choice(library.lessons())
                edited = f"{number} {CANARY[:8]} " * chance.randint(1, 30)
                plain = chance.random() >= 0.5
                library.edit(lesson.id, "w" * chance.randint(1, 500) if plain else edited)
        for lesson in library.lessons():
            if CANARY[:8] in lesson.text and chance.random() < 0.5:
                library.forget(lesson.id)
            elif CANARY[:8] in lesson.text:
                library.edit(lesson.id, "q" * chance.randint(1, 400))
        assert CANARY[:8].encode() not in raw(path)


def test_a_note_that_was_replaced_is_nowhere_in_the_file(path: Path) -> None:
    with closing(Library.open(path)) as library:
        library.feedback("s1", "autocoder", False, f"{CANARY} once", CANARY)
        assert CANARY.encode() in raw(path)
        library.feedback("s1", "autocoder", True)
        assert CANARY.encode() not in raw(path)


# --- hostile texts --------------------------------------------------------------------------------

HOSTILE = st.sampled_from(
    [
        *HOSTILE_TEXTS,
        '"',
        "'; DROP TABLE lessons; --",
        "NEAR(a b, 2)",
        "text:x OR *",
        "a* AND NOT b",
    ]
) | st.text(max_size=60)


@settings(max_examples=60, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_text_breaks_a_search(text: str, request: str, asked: str) -> None:
    with closing(Library.open()) as library:
        library.learn("s1", "autocoder", request, [text])
        library.feedback("s2", "autocoder", False, text, request)
        told = library.guidance("autocoder", asked)
        assert {x.id for x in told} <= {x.id for x in library.lessons()}
        known = library.guidance("autocoder", f"{text} {request}")
        assert all(x.text.encode() for x in known)


@given(
    st.lists(st.sampled_from("kelp basalt fjord moss lichen tern".split()), min_size=2, unique=True)
)
def test_a_lesson_is_told_to_the_request_that_it_comes_from(words: list[str]) -> None:
    with closing(Library.open()) as library:
        library.learn("s1", "autocoder", " ".join(words), ["told"])
        assert texts(library, " ".join(words)) == ["told"]


# --- the file -------------------------------------------------------------------------------------


def test_reading_makes_no_tables_in_a_store(path: Path) -> None:
    with closing(SqliteStore(path)):
        before = path.read_bytes()
        with closing(Library.open(path)) as library:
            assert (library.lessons(), library.artifacts()) == ((), ())
            assert library.guidance("autocoder", LOGS) == ()
        assert path.read_bytes() == before


def test_tapes_and_lessons_lie_in_one_private_file(path: Path) -> None:
    with closing(Library.open(path)) as library:  # before the store has its tables
        library.learn("s1", "autocoder", LOGS, ["one"])
        with closing(SqliteStore(path)) as store:
            tape = write(store, store.create("s1", "autocoder", "", "me"), 3)
            library.learn("s2", "autocoder", LOGS, ["two"])
            assert list(store.read("s1")) == tape
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with closing(Library.open(path)) as library:
        assert len(library.lessons()) == 2


def test_another_programs_file_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (id)")
    with pytest.raises(StoreUnusable, match="another program's data"):
        Library.open(path)


def test_a_newer_library_is_refused(path: Path) -> None:
    with closing(Library.open(path)) as library:
        library.used([1])
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE _sqlite_migrations SET name = 'm999_later'")
        db.commit()
    with pytest.raises(StoreUnusable, match="a newer codetape"):
        Library.open(path)


LEARNER = """
import sys
from contextlib import closing
from codetape.adapters.store.library import Library
path, name = sys.argv[1:]
sys.stdin.readline()
with closing(Library.open(path)) as library:
    for n in range(20):
        library.learn(f"{name}{n}", "autocoder", "nginx log", [f"{name} {n}"])
        library.feedback("one", "autocoder", name == "a", f"said by {name}", "nginx log")
        library.used([1])
"""


@pytest.mark.slow
def test_two_processes_learn_at_once(path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", LEARNER, str(path), name],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    ends = [child.communicate("go\n", timeout=60) for child in children]
    assert [child.returncode for child in children] == [0, 0], ends
    with closing(Library.open(path)) as library:
        lessons = library.lessons()
    derived = sorted(lesson.text for lesson in lessons if not lesson.note)
    assert derived == sorted(f"{name} {n}" for name in "ab" for n in range(20))
    (note,) = [lesson for lesson in lessons if lesson.note]
    assert note.text == f"said by {'a' if note.good else 'b'}"
    assert lessons[0].uses >= 1


# --- artifacts ------------------------------------------------------------------------------------


def test_artifacts_are_listed_by_session_and_a_path_once(library: Library) -> None:
    library.add_artifact("s1", "tool", "/p/tool.py", DAY.format(2))
    library.add_artifact("s2", "tool", "/p/other.py", DAY.format(1))
    library.add_artifact("s1", "report", "/p/tool.md", DAY.format(2))
    library.add_artifact("s1", "tool", "/p/tool.py", DAY.format(3))
    assert [a.path for a in library.artifacts()] == ["/p/other.py", "/p/tool.md", "/p/tool.py"]
    assert library.artifacts("s2") == (
        Artifact("s2", "tool", "/p/other.py", "2026-03-01T12:00:00.000000+00:00"),
    )
