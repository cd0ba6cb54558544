"""Marks: which sessions this user opened here. A tape is data, and a mark is no part of it.

A mark is an HMAC by a key of the user's over the session's id, its job, and the packages and commands
that the user has allowed. It lies in the store beside the session; no export has it, and no import
brings one. A permission that the user gives later adds a mark: that an event says so is not enough.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Iterable
from functools import cache

from codetape.adapters.keys import user_key
from codetape.engine.ports import EventStore
from codetape.states.job import Job
from codetape.states.values import canonical

_log = logging.getLogger(__name__)

_beside: dict[str, str] = {}
"""Marks of sessions that this process opened in stores that keep none."""


MOST = 50
"""Marks that are kept of one session: one for each permission that was given, the newest."""


def mark(store: EventStore, session: str, job: Job, allowed: Iterable[str] = ()) -> None:
    """Mark a session as this user's, with this job and these permissions; earlier marks stay.

    Raises UnknownSession, StoreUnusable.
    """
    made, known = _mark(session, job, allowed), _found(store, session)
    if made in known:
        return
    text = " ".join([*known, made][-MOST:])
    if hasattr(store, "mark"):
        store.mark(session, text)
    else:
        _beside[session] = text


def is_marked(store: object, session: str, job: Job, allowed: Iterable[str] = ()) -> bool:
    """Say whether this user opened the session here, or allowed what it holds now."""
    if not (found := _found(store, session)):
        return False
    made = _mark(session, job, allowed).encode()
    return any(hmac.compare_digest(each.encode(), made) for each in found)


def _found(store: object, session: str) -> list[str]:
    """Return the marks of a session; a file holds none."""
    text = store.mark_of(session) if hasattr(store, "mark_of") else _beside.get(session)
    return (text or "").split()


def _mark(session: str, job: Job, allowed: Iterable[str]) -> str:
    """A budget is no part of it: it may be replaced, and touches nothing here."""
    asked = job.model_dump(mode="json", exclude={"budget"}, exclude_defaults=True)
    text = canonical({"session": session, "job": asked, "allowed": [*sorted(allowed)]})
    return hmac.new(_key(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _key() -> bytes:
    try:
        return user_key()
    except OSError as error:
        return _of_this_process(str(error))


@cache
def _of_this_process(reason: str) -> bytes:
    """Return a key that only this process has, and say once why it is not the user's."""
    _log.warning(
        "there is no key to mark sessions with (%s): "
        "another process goes on with them only with --allow",
        reason,
    )
    return _SPARE


_SPARE = secrets.token_bytes(32)
