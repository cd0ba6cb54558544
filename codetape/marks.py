"""Marks: which sessions this user opened here. A tape is data, and a mark is no part of it.

A mark is an HMAC over the session's id and its job by a key of the user's. It lies in the store beside
the session; no export has it, and no import brings one.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from functools import cache

from codetape.adapters.keys import user_key
from codetape.engine.ports import EventStore
from codetape.states.job import Job
from codetape.states.values import canonical

_log = logging.getLogger(__name__)

_beside: dict[str, str] = {}
"""Marks of sessions that this process opened in stores that keep none."""


def mark(store: EventStore, session: str, job: Job) -> None:
    """Mark a session as opened here by this user. Raises UnknownSession, StoreUnusable."""
    made = _mark(session, job)
    if hasattr(store, "mark"):
        store.mark(session, made)
    else:
        _beside[session] = made


def is_marked(store: object, session: str, job: Job) -> bool:
    """Say whether this user opened the session here, with this job. A file holds no marks."""
    found = store.mark_of(session) if hasattr(store, "mark_of") else _beside.get(session)
    return bool(found) and hmac.compare_digest(str(found).encode(), _mark(session, job).encode())


def _mark(session: str, job: Job) -> str:
    """A budget is no part of it: it may be replaced, and touches nothing here."""
    asked = job.model_dump(mode="json", exclude={"budget"}, exclude_defaults=True)
    text = canonical({"session": session, "job": asked})
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
