"""What it means that a call to a model raised.

LiteLLM's own classes say too little: a refused connection, a missing key and a fault of its own all
come as an error 500. The chain of causes tells them apart. Nothing here imports LiteLLM.
"""

from __future__ import annotations

import builtins
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from codetape.states.values import CallFailure

Outcome = tuple[str, bool]  # the reason, and whether to try again

# Names of classes, because the classes belong to four libraries that are imported late.
_HTTP = {"HTTPStatusError"}
_DEADLINE = {"TimeoutError", "TimeoutException", "Timeout", "APITimeoutError"}
_TRANSPORT = {"TransportError", "ConnectionError", "gaierror", "SSLError", "ClientConnectionError"}
_TRANSPORT |= {"RequestError"}  # what came is no HTTP, or is not packed as it says
_LOOP = {"TooManyRedirects"}
_MID_STREAM = {"MidStreamFallbackError"}
_UNSUPPORTED = {"UnsupportedParamsError"}  # LiteLLM's own, before it asks anyone
# What the network's library says of these is a dump of its own objects.
_HUNG_UP = {
    "ServerDisconnectedError": "the server hung up before it answered",
    "ClientPayloadError": "the connection broke in the middle of an answer",
}
_MESSAGE_LIMIT = 1000  # characters; some servers answer with a page of HTML
_OURS = re.compile(
    r"^(?:litellm\.\w+: |\w+Error: |\w+(?:Exception|Error) - )+"
)  # LiteLLM's prefixes
_SECONDS = re.compile(r"\d+(?:\.\d*)?", re.ASCII)


def failure_of(error: BaseException, secrets: Mapping[str, str]) -> CallFailure:
    """Return what `error` says, without the values of `secrets` (name to value)."""
    chain = tuple(_chain(error))
    reason, retryable = _outcome(chain)
    headers = _headers(chain)
    return CallFailure.model_validate(
        {
            "reason": reason,
            "message": hidden(_words(chain, reason), secrets)[:_MESSAGE_LIMIT],
            "retryable": retryable,
            "retry_after": retry_after(headers, datetime.now(UTC)),
        }
    )


def answered(error: BaseException) -> bool:
    """Whether `error` is what a server answered, and not a fault on the way to it."""
    chain = tuple(_chain(error))
    return bool(_names(chain) & _HTTP or _headers(chain))


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """Return `text` with the value of each secret replaced by its name."""
    for name, value in secrets.items():
        if value:
            text = text.replace(value, f"${name}")
    return text


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a provider asks to wait: never negative, None if it doesn't say.

    A date counts from the provider's own clock where it sends one, else from `now`.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    if (milliseconds := _number(lower.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    text = lower.get("retry-after", "")
    if (seconds := _number(text)) is not None:
        return seconds
    then = _date(text)
    if then is None:
        return None
    return max(0.0, (then - (_date(lower.get("date", "")) or now)).total_seconds())


def _number(text: str) -> float | None:
    digits = text.strip()  # of more than float takes for blanks: "0\x1f" is a header too
    number = float(digits) if _SECONDS.fullmatch(digits) else math.inf
    return None if math.isinf(number) else number


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and what led to it, the first cause last."""
    seen: set[int] = set()
    step: BaseException | None = error
    while step is not None and id(step) not in seen:
        seen.add(id(step))
        yield step
        step = getattr(step, "original_exception", None) or step.__cause__ or step.__context__


def _names(chain: tuple[BaseException, ...]) -> set[str]:
    return {cls.__name__ for step in chain for cls in type(step).__mro__}


def _first(chain: tuple[BaseException, ...], attribute: str) -> Any:
    """Return the first value of an attribute along the chain that says something."""
    values = (getattr(step, attribute, None) for step in chain)
    return next((value for value in values if value), None)


def _headers(chain: tuple[BaseException, ...]) -> Mapping[str, str]:
    """Return the headers of the provider's answer; empty if there was none."""
    found = (getattr(getattr(step, "response", None), "headers", None) for step in chain)
    mapping: Mapping[str, str] = next((one for one in found if one), {})
    return mapping or _first(chain, "litellm_response_headers") or {}


def _outcome(chain: tuple[BaseException, ...]) -> Outcome:
    names, status = _names(chain), _first(chain, "status_code")
    quota = _first(chain, "code") == "insufficient_quota"
    if names & _HTTP or _headers(chain):
        return _by_status(status, quota=quota)
    if names & _UNSUPPORTED:
        return "unsupported", False
    if names & _DEADLINE:
        return "timeout", True
    if names & _LOOP:
        return "other", False
    if names & _TRANSPORT:
        return "connection", True
    if names & _MID_STREAM:
        return _in_stream(chain)
    # A fault in LiteLLM or in what it was given, which will come again, has no status of its own.
    if hasattr(builtins, type(chain[-1]).__name__) and not hasattr(chain[-1], "status_code"):
        return "other", False
    return _by_status(status, quota=quota)


def _by_status(status: object, *, quota: bool) -> Outcome:
    if not isinstance(status, int):
        return "other", False
    if status >= 500:
        return "server_error", True
    known: dict[int, Outcome] = {
        401: ("auth", False),
        403: ("auth", False),
        404: ("not_found", False),
        408: ("timeout", True),
        409: ("bad_request", True),
        429: ("rate_limited", not quota),  # money that has run out does not come back by waiting
    }
    return known.get(status, ("bad_request", False) if status >= 400 else ("other", False))


def _in_stream(chain: tuple[BaseException, ...]) -> Outcome:
    """An error that came as an event of a stream which had begun with status 200."""
    if "finish_reason was received" in str(chain[0]):
        return "connection", True
    code, kind = str(_first(chain, "code")), str(_first(chain, "type"))
    if code.isdecimal() and int(code) >= 400:
        return _by_status(int(code), quota=False)
    if "rate_limit" in code + kind:
        return "rate_limited", True
    return ("bad_request", False) if kind == "invalid_request_error" else ("server_error", True)


def _words(chain: tuple[BaseException, ...], reason: str) -> str:
    """Return what the provider said, or what the network said."""
    names = [type(step).__name__ for step in chain]
    if hung_up := next(filter(None, map(_HUNG_UP.get, names)), None):
        return hung_up
    text = _text(chain, inside=reason == "connection" or bool(_names(chain) & _LOOP))
    said = _told(_first(chain, "body")) or _told(_json_in(text))
    told = said or text.partition(" Original exception: ")[0]
    words = _OURS.sub("", told).strip() or names[0]
    return f"{words}: is the address of the server right?" if reason == "not_found" else words


def _text(chain: tuple[BaseException, ...], *, inside: bool) -> str:
    """The outermost error names the libraries of the way, the innermost what the network did."""
    text = next(filter(None, map(str, reversed(chain) if inside else chain)), "")
    return text.partition("Traceback (most recent call last)")[0]


def _told(body: object) -> str | None:
    """Return the message of an error object, which providers wrap or don't; a page is none."""
    if isinstance(body, str):
        text = body.strip()
        return None if not text or text.startswith("<") else text
    if not isinstance(body, Mapping):
        return None
    message = body.get("message")
    return message if isinstance(message, str) else _told(body.get("error"))


def _json_in(text: str) -> object:
    """Return the JSON object that LiteLLM has put into a message as it came; None without one."""
    begin, end = text.find("{"), text.rfind("}")
    try:
        return json.loads(text[begin : end + 1])
    except (ValueError, RecursionError):
        return None
