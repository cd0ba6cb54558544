"""What an exception of a model call means, without a model and without LiteLLM."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codetape.adapters.llm.failures import answered, failure_of, hidden, retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Response:
    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers


class ProviderError(Exception):
    """As the classes of LiteLLM and of the clients below it: facts are attributes."""

    def __init__(self, message: str = "words", /, **facts: object) -> None:
        super().__init__(message)
        vars(self).update(facts)


class MidStreamFallbackError(ProviderError):
    """By name the one of LiteLLM."""


class HTTPStatusError(Exception):
    """By name the one of httpx."""


class TransportError(Exception):
    """By name the one of httpx."""


class ServerDisconnectedError(Exception):
    """By name the one of aiohttp."""


class RequestError(Exception):
    """By name the one of httpx."""


class TooManyRedirects(RequestError):
    """By name the one of httpx."""


class Timeout(ProviderError):
    """By name the one of LiteLLM, which has a status of its own making."""


class UnsupportedParamsError(ProviderError):
    """By name the one of LiteLLM."""


HUNG_UP = "the server hung up before it answered"


def caused(error: Exception, *causes: Exception) -> Exception:
    """Return `error` with a chain of causes, the first cause last."""
    step = error
    for cause in causes:
        step.__cause__ = cause
        step = cause
    return error


def with_status(error: Exception, status: int) -> Exception:
    """Return `error` with the status that LiteLLM gives to exceptions of no class of its own."""
    error.status_code = status  # type: ignore[attr-defined]
    return error


def from_server(status: int, **facts: object) -> Exception:
    response = Response({"content-type": "application/json"})
    return ProviderError(status_code=status, response=response, **facts)


@pytest.mark.parametrize(
    ("status", "reason", "retryable"),
    [
        (400, "bad_request", False),
        (401, "auth", False),
        (402, "bad_request", False),
        (403, "auth", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "bad_request", True),
        (413, "bad_request", False),
        (422, "bad_request", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (503, "server_error", True),
        (529, "server_error", True),
        (302, "other", False),
    ],
)
def test_a_status_of_the_server_decides(status: int, reason: str, *, retryable: bool) -> None:
    failure = failure_of(from_server(status), {})
    assert (failure.reason, failure.retryable) == (reason, retryable)
    assert answered(from_server(status))


def test_money_that_has_run_out_is_not_waited_for() -> None:
    failure = failure_of(from_server(429, code="insufficient_quota"), {})
    assert (failure.reason, failure.retryable) == ("rate_limited", False)


@pytest.mark.parametrize(
    ("error", "reason", "retryable"),
    [
        (caused(ProviderError(status_code=500), TransportError("cut")), "connection", True),
        (caused(ProviderError(status_code=500), ConnectionResetError()), "connection", True),
        (Timeout(status_code=408), "timeout", True),
        (caused(ProviderError(status_code=500), TimeoutError()), "timeout", True),
        (caused(ProviderError(status_code=500), TypeError("a bug")), "other", False),
        (KeyError("a bug"), "other", False),
        (caused(ProviderError(status_code=500), HTTPStatusError()), "server_error", True),
        (
            caused(ProviderError(status_code=504), HTTPStatusError(), TypeError()),
            "server_error",
            True,
        ),
        (caused(from_server(504), TypeError()), "server_error", True),
        (ProviderError(status_code=401), "auth", False),
        (caused(ProviderError(status_code=500), RequestError("no HTTP")), "connection", True),
        (caused(ProviderError(status_code=500), TooManyRedirects()), "other", False),
        (
            caused(ProviderError(status_code=429), with_status(Exception(), 429)),
            "rate_limited",
            True,
        ),
        (ProviderError(status_code=None), "other", False),
        (UnsupportedParamsError(status_code=400), "unsupported", False),
    ],
)
def test_the_chain_of_causes_decides_without_an_answer(
    error: Exception, reason: str, *, retryable: bool
) -> None:
    failure = failure_of(error, {})
    assert (failure.reason, failure.retryable) == (reason, retryable)


@pytest.mark.parametrize(
    ("facts", "text", "reason", "retryable"),
    [
        ({}, "overloaded", "server_error", True),
        ({"code": 429}, "too many", "rate_limited", True),
        ({"code": "429"}, "too many", "rate_limited", True),
        ({"type": "rate_limit_error"}, "too many", "rate_limited", True),
        ({"code": 503}, "loading", "server_error", True),
        ({"code": 400}, "too long", "bad_request", False),
        ({"code": 401}, "wrong key", "auth", False),
        ({"code": "too_long", "type": "invalid_request_error"}, "too long", "bad_request", False),
        ({}, "Stream ended before a finish_reason was received", "connection", True),
    ],
)
def test_an_error_in_the_middle_of_a_stream(
    facts: dict[str, object], text: str, reason: str, *, retryable: bool
) -> None:
    error = MidStreamFallbackError(text, original_exception=ProviderError(text, **facts))
    failure = failure_of(error, {})
    assert (failure.reason, failure.retryable) == (reason, retryable)


def test_what_was_raised_while_another_was_handled_belongs_to_the_chain() -> None:
    error = ProviderError(status_code=500)
    error.__context__ = ConnectionResetError()
    assert failure_of(error, {}).reason == "connection"


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = ProviderError(), ProviderError()
    first.__cause__, second.__cause__ = second, first
    assert failure_of(first, {}).reason == "other"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ProviderError("litellm.BadRequestError: OpenAIException - no"), "no"),
        (ProviderError("litellm.APIError: APIError: AnthropicError - no"), "no"),
        (ProviderError("no", body={"message": "in full"}), "in full"),
        (ProviderError('b\'{"type": "error", "error": {"message": "in full"}}\''), "in full"),
        (ProviderError("{no json}"), "{no json}"),
        (ProviderError("Error code: 503", body="loading"), "loading"),
        (ProviderError("Error code: 503", body="<html>"), "Error code: 503"),
        (ProviderError('{"error": "loading"}'), "loading"),
        (caused(ProviderError("x"), ServerDisconnectedError()), HUNG_UP),
        (ProviderError("no Original exception: APIError: no"), "no"),
        (ProviderError('no Traceback (most recent call last)\n  File "x"'), "no"),
        (caused(ProviderError("Connection error."), TransportError("refused")), "refused"),
        (caused(ProviderError("cut"), TransportError("")), "cut"),
        (ProviderError(""), "ProviderError"),
        (ProviderError("litellm.APIError: "), "ProviderError"),
        (caused(ProviderError("outer"), ValueError("inner")), "outer"),
        (ProviderError("x" * 5000), "x" * 1000),
    ],
)
def test_the_message_is_what_the_provider_or_the_network_said(
    error: Exception, message: str
) -> None:
    assert failure_of(error, {}).message == message


def test_no_secret_is_in_a_message() -> None:
    error = ProviderError("wrong key sk-12345 of sk-12345", body={"message": "wrong key sk-12345"})
    failure = failure_of(error, {"MY_KEY": "sk-12345", "UNSET": ""})
    assert failure.message == "wrong key $MY_KEY"
    assert hidden("nothing", {"UNSET": ""}) == "nothing"


def test_a_secret_at_the_limit_is_hidden_before_the_cut() -> None:
    error = ProviderError("x" * 995 + "sk-12345")
    assert "sk-1" not in failure_of(error, {"K": "sk-12345"}).message


@pytest.mark.parametrize("place", ["response", "litellm_response_headers"])
def test_the_wait_is_found_wherever_the_headers_are(place: str) -> None:
    headers = {"Retry-After": "7"}
    facts: dict[str, object] = {
        place: Response(headers) if place == "response" else headers,
        "status_code": 429,
    }
    assert failure_of(caused(ProviderError(), ProviderError(**facts)), {}).retry_after == 7.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"Retry-After": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"Retry-After": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"Retry-After": "Sun, 01 Mar 2026 12:00:30 -0000"}, 30.0),
        ({"Retry-After": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        (
            {
                "Retry-After": "Sun, 01 Mar 2026 15:00:09 GMT",
                "Date": "Sun, 01 Mar 2026 15:00:00 GMT",
            },
            9.0,
        ),
        ({"Retry-After": "Sun, 01 Mar 2026 12:00:30 GMT", "Date": "soon"}, 30.0),
        ({}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "1_0"}, None),
        ({"Retry-After": "٣"}, None),
        ({"Retry-After": "Sun, 99 Mar 2026 12:00:30 GMT"}, None),
    ],
)
def test_how_long_to_wait(headers: Mapping[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@example({"Retry-After": "0\x1f"})
@given(st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms", "Date"]), st.text()))
def test_any_header_gives_a_wait_or_nothing(headers: dict[str, str]) -> None:
    seconds = retry_after(headers, NOW)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


@given(st.integers(0, 10**9), st.sampled_from(["RETRY-AFTER", "retry-after", "Retry-After"]))
def test_every_number_and_its_date_mean_the_same(seconds: int, name: str) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after({name: str(seconds)}, NOW) == seconds
    assert retry_after({name: date}, NOW) == seconds
