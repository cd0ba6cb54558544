"""The tables of what was learned, as numbered steps: made when there is something to write.

Text and request of a lesson stand in one place; the index of their words is made from there and holds
no copy of its own.
"""

from __future__ import annotations

from codetape.adapters.store.schema import Steps

LIBRARY = Steps(
    "codetape-library",
    {
        "m001_lessons": (
            """
            CREATE TABLE lessons (
                id INTEGER PRIMARY KEY AUTOINCREMENT,  -- of one that is gone, never given again
                lane TEXT NOT NULL,
                text TEXT NOT NULL,
                request TEXT NOT NULL,
                session TEXT NOT NULL,
                note INTEGER NOT NULL,                 -- 1: a person's words, 0: derived from a tape
                uses INTEGER NOT NULL,
                at TEXT NOT NULL
            )
            """,
            """
            CREATE VIRTUAL TABLE lessons_words USING fts5 (
                text, request,
                content = 'lessons', content_rowid = 'id', tokenize = 'porter unicode61'
            )
            """,
            """
            CREATE TABLE verdicts (
                session TEXT NOT NULL PRIMARY KEY,
                lane TEXT NOT NULL,
                good INTEGER NOT NULL,
                note INTEGER,                          -- the lesson that has the person's words
                at TEXT NOT NULL
            )
            """,
            "CREATE TABLE learned (session TEXT NOT NULL PRIMARY KEY)",
            """
            CREATE TABLE artifacts (
                session TEXT NOT NULL,
                kind TEXT NOT NULL,
                path TEXT NOT NULL,
                at TEXT NOT NULL,
                PRIMARY KEY (session, path)
            )
            """,
        )
    },
)
