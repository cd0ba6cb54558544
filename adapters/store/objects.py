"""What a file of ours may hold: tables and views with the very text that our steps make.

A file from elsewhere may have a view in the place of a table, which never ends, or a trigger. So the
text of each object is compared before anything else is read; what has no name of ours is never used.
An index of others is filled whenever a row is written, so it may hold columns and compute nothing. No
text of others is left that SQLite could compute, so a statement takes the steps that its rows explain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import lru_cache
from typing import Any

from codetape.adapters.store.library_tables import LIBRARY
from codetape.adapters.store.rows import Db
from codetape.adapters.store.schema import APPLICATION_ID, TAPES, Steps
from codetape.engine.ports import StoreUnusable

_DONE = "_sqlite_migrations"
_FIND_DONE = "SELECT name FROM _sqlite_migrations WHERE migration_set = ?"

_COMPUTED = re.compile(r"\b(AS|CHECK|DEFAULT|GENERATED)\b")
_CONDITION = re.compile(r"\bWHERE\b", re.IGNORECASE)

Blank = Callable[[], Any]
"""Opens a database without content, in memory."""


def check_objects(db: Db, path: str, blank: Blank) -> None:
    """Refuse a file of ours with objects that no step of ours made. Raises StoreUnusable."""
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        return
    found = list(db.execute("SELECT type, lower(name), sql FROM sqlite_master"))
    if not _is_list_of_steps(found):
        raise StoreUnusable(path, "its list of steps is none of ours: it is damaged or forged")
    expected = {
        name: made for steps in (TAPES, LIBRARY) for name, made in _made(db, steps, blank).items()
    }
    for kind, name, sql in found:
        forged = name in expected and expected[name] != (kind, sql)
        if kind == "trigger" or forged or (kind == "index" and _computes(db, name, sql)):
            raise StoreUnusable(
                path, f"its {kind} {name!r} is none of ours: it is damaged or forged"
            )


def _is_list_of_steps(found: list[tuple[str, str, str]]) -> bool:
    texts = [(kind, " ".join(sql.upper().split())) for kind, name, sql in found if name == _DONE]
    return all(
        kind == "table" and sql.startswith("CREATE TABLE") and not _COMPUTED.search(sql)
        for kind, sql in texts
    )


def _computes(db: Db, name: str, sql: str | None) -> bool:
    """Say whether an index has a condition, or an expression in the place of a column."""
    columns = db.execute("SELECT cid FROM pragma_index_xinfo(?)", (name,))
    return (-2,) in columns or bool(_CONDITION.search(sql or ""))


def _made(db: Db, steps: Steps, blank: Blank) -> Mapping[str, tuple[str, str]]:
    """Return the objects that the steps have made that the file says were done."""
    rows = db.execute(_FIND_DONE, (steps.name,))
    done = {name for (name,) in rows}
    return _objects_of(steps.name, tuple(name for name in steps.by_name if name in done), blank)


@lru_cache(maxsize=8)
def _objects_of(name: str, done: tuple[str, ...], blank: Blank) -> Mapping[str, tuple[str, str]]:
    """Name to kind and text, as SQLite keeps them; indexes that it makes itself have no text."""
    steps = TAPES if name == TAPES.name else LIBRARY
    with closing(blank()) as db:
        for statement in (one for step in done for one in steps.by_name[step]):
            db.execute(statement)
        made = db.execute("SELECT lower(name), type, sql FROM sqlite_master WHERE sql NOT NULL")
        return {name: (kind, sql) for name, kind, sql in made}
