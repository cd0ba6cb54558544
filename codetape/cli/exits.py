"""Exit codes, and the errors that end a command with one clear line."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from codetape.cli.out import put

if TYPE_CHECKING:
    from codetape.engine.ports import UnknownSession
    from codetape.states.session import Session

PASSED = 0  # also: replay says identical
NOT_PASSED = 1  # it ended without passing; replay differs
USAGE = 2
INFRASTRUCTURE = 3  # no sandbox, no key, model not reachable, store unusable
INTERRUPTED = 130

TAPE_FILE = ".jsonl"
"""What ends so names a file that `codetape export` wrote; no id does."""

_OUT_OF_REACH = {"auth", "connection", "not_found", "rate_limited", "server_error", "timeout"}


class Failed(Exception):
    """Ends a command: `message` is one line for stderr, `code` the exit status."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def interrupted() -> int:
    """Say so in one line; return the exit status."""
    put("codetape: interrupted", error=True)
    return INTERRUPTED


def code_of(session: Session) -> int:
    """Return the exit code that a session earns."""
    from codetape.states.values import FailureClass

    ending = session.ending
    if ending is None:
        return NOT_PASSED
    if ending.failure is None:
        return PASSED
    if ending.failure is FailureClass.INFRASTRUCTURE:
        return INFRASTRUCTURE
    call = session.call_failure
    if ending.failure is FailureClass.MODEL and call and call.reason in _OUT_OF_REACH:
        return INFRASTRUCTURE
    return NOT_PASSED


def explained(error: Exception) -> tuple[str, int] | None:
    """Return the line and the exit code for an error of the library; None if it is a fault of ours."""
    from codetape.authority import NotGranted
    from codetape.engine.codec import UnreadableEvent
    from codetape.engine.ports import SandboxBroken, StoreError, UnknownSession
    from codetape.replay.imports import BadTapeFile, OtherContent, Redacted
    from codetape.replay.redact import NotRedactable
    from codetape.replay.rules import UnknownRules
    from codetape.running import RunFailed
    from codetape.states.machine import IllegalTransition

    match error:
        case NotGranted():
            return str(error), USAGE
        case IllegalTransition():
            return (
                f"today's rules go another way: {error}; `codetape replay` says where",
                NOT_PASSED,
            )
        case UnknownRules():
            return str(error), USAGE
        case UnknownSession():
            return _unknown(error), USAGE
        case BadTapeFile() | OtherContent() | Redacted() | NotRedactable():
            return str(error), NOT_PASSED
        case StoreError() | UnreadableEvent() | SandboxBroken():
            return str(error), INFRASTRUCTURE
        case RunFailed():
            return str(error), NOT_PASSED
        case OSError(filename=str(name)):
            return f"cannot use {name}: {error.strerror}", INFRASTRUCTURE
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EIO):
            return f"the output cannot be written: {error.strerror}", INFRASTRUCTURE
    return None


def _unknown(error: UnknownSession) -> str:
    """Say why there is no such session, and what to do."""
    if error.prefix.endswith(TAPE_FILE):
        return f"{error.prefix} is a file: `codetape import` it into a store, then name its session"
    if error.prefix == "last":
        return "the store has no session yet; `codetape demo` makes one"
    return f"{error}; `codetape sessions` lists them"
