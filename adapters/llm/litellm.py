"""Models of any provider, through LiteLLM.

LiteLLM takes seconds to import, so that happens in a thread, at the latest when the first call is made.
Keys and addresses travel with each call; nothing is set for the whole process but what keeps LiteLLM
quiet and off the network. The adapter never retries: the rules do. It asks a second time only where a
model refuses a member of the request, then without that member, and the notes of the answer say so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

from codetape.adapters.aside import aside
from codetape.adapters.llm import failures, quirks
from codetape.adapters.llm.listed import price_of
from codetape.adapters.llm.reading import (
    NotStreamed,
    Reading,
    read_received,
    read_stream,
    read_whole,
)
from codetape.adapters.llm.received import Received
from codetape.engine.ports import LlmError
from codetape.states.answers import REFUSAL
from codetape.states.job import Price
from codetape.states.values import Answer, CallFailure, LlmCall

# Its parts have no types that are worth much, and they don't leave this file.
Module = Any

_NO_KEY = "none"  # OpenAI's client insists on a key, also for a server at home that needs none
# What pydantic says about LiteLLM's code. LiteLLM silences it too, when it is imported; that is lost
# where filters are set anew, and where warnings are errors it would then end an answer.
_ITS_WARNINGS = (
    ".*conflict with protected namespace",
    ".*Accessing the .* attribute on the instance is deprecated",
    ".*`ReadOnly` qualifier",
    "Pydantic serializer warnings",
)
_REFUSED = (400, 422)  # the statuses of a request that is not taken as it is


def load() -> Module:
    """Import LiteLLM (seconds, the first time) and keep it quiet."""
    # Without the first, importing it fetches a price list; without the second, it reads the .env
    # files of the folders above its own into this process. Who has set them knows better.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm

    # There is no setting per call: it prints advertisements to stdout with each exception, and
    # warnings to stderr about what is reported here anyway.
    litellm.suppress_debug_info = True
    if "LITELLM_LOG" not in os.environ:
        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    for message in _ITS_WARNINGS:
        warnings.filterwarnings("ignore", message)
    return litellm


def _load_early() -> None:
    with suppress(Exception):  # the first call imports it again and says what is wrong
        load()


def check_model(model: str) -> None:
    """Raise ValueError if `model` names no provider that LiteLLM knows. Asks nobody."""
    litellm = load()
    provider, _, name = model.partition("/")
    known = {str(getattr(one, "value", one)) for one in litellm.provider_list}
    # Not through get_llm_provider: for some providers that logs in.
    if name and provider in known:
        return
    if provider in known or _provider(litellm, model) is None:
        message = (
            f"model {model!r} names no provider that LiteLLM knows: write provider/model, such as "
            "anthropic/claude-sonnet-4-5, or openai/NAME for a server that speaks OpenAI's protocol"
        )
        raise ValueError(message)


def price(model: str) -> Price | None:
    """Return what a token of input and of output costs; None if LiteLLM's list has no price."""
    litellm = load()
    try:
        # The raw entry: elsewhere LiteLLM turns a price that it doesn't know into 0.
        return price_of(litellm.model_cost[litellm.get_model_info(model)["key"]])
    except Exception:  # noqa: BLE001 - the answer is paid for, whatever fails here
        return None


class LiteLlm:
    """A language model behind LiteLLM; implements `Llm`.

    `api_key_env` is the name of the variable that holds the key (None: the provider's own, such as
    OPENAI_API_KEY); `api_base` is the address of the server (None: the provider's own). A call may take
    its own `seconds`, and no more than `timeout` if that is given; `idle_timeout` bounds the silence
    after the first piece of an answer. Both are in seconds.
    """

    def __init__(
        self,
        *,
        api_key_env: str | None = None,
        api_base: str | None = None,
        timeout: float | None = None,
        idle_timeout: float = 90.0,
        getenv: Callable[[str], str | None] = os.environ.get,
    ) -> None:
        self._api_key_env, self._api_base = api_key_env, api_base
        self._timeout, self._idle_timeout = timeout, idle_timeout
        self._getenv = getenv
        self._quirks: defaultdict[str, quirks.Quirks] = defaultdict(quirks.Quirks)

    def prepare(self) -> None:
        """Begin to import LiteLLM, in a thread beside the work that comes before the first call."""
        Thread(target=_load_early, name="import-litellm", daemon=True).start()

    async def complete(self, call: LlmCall) -> Answer:
        """Answer one call. Raises LlmError; cancelling the task ends the call."""
        litellm = await aside(load)
        key, secrets = self._key(litellm, call.model), self._secrets(litellm, call.model)
        _check_sendable(secrets)
        exchange = _Exchange(litellm, call, key=key, base=self._api_base, secrets=secrets)
        total = min(call.seconds, self._timeout or call.seconds)
        try:
            async with asyncio.timeout(total):
                return await self._ask(exchange)
        except TimeoutError:
            message = f"{call.model} has not answered within {total:g} s"
            raise LlmError(CallFailure(reason="timeout", message=message, retryable=True)) from None
        except LlmError:
            raise
        except Exception as error:  # noqa: BLE001 - any class may come out of LiteLLM
            # No cause: what a provider answers may hold the key.
            raise LlmError(self._failure(exchange, error)) from None

    async def _ask(self, exchange: _Exchange) -> Answer:
        """Ask until the model takes the request; each turn leaves out what it has refused."""
        known = self._quirks[exchange.call.model]
        wanted = exchange.wanted()
        for requests in range(1, len(wanted) + 3):
            sent = known.sent(wanted)
            try:
                reading = await exchange.ask(sent, self._idle_timeout)
            except NotStreamed:
                known.learn("stream")
            except Exception as error:
                refused = _refused(error, sent)
                if refused is None:
                    raise
                known.learn(refused)
            else:
                notes = known.notes(wanted) + exchange.notes(sent, requests)
                notes += reading.notes
                return exchange.answer(reading, notes)
        raise AssertionError(wanted)  # each turn leaves out one member, or renames it once

    def _failure(self, exchange: _Exchange, error: Exception) -> CallFailure:
        """Return what `error` means; a refused request says what it was left without already."""
        failure = exchange.failure(error)
        left_out = self._quirks[exchange.call.model].notes(exchange.wanted())
        if failure.reason != "bad_request" or not left_out:
            return failure
        message = f"{failure.message} ({'; '.join(left_out)})"
        return failure.model_copy(update={"message": message})

    def _key(self, litellm: Module, model: str) -> str | None:
        """Return the key to send; None leaves it to LiteLLM. Raises LlmError."""
        if self._api_key_env is not None:
            key = self._getenv(self._api_key_env)
            if not key:
                raise LlmError(_no_key(model, self._api_key_env))
            return key
        if self._api_base is not None and _missing(litellm, model):
            return _NO_KEY
        return None

    def _secrets(self, litellm: Module, model: str) -> dict[str, str]:
        """Return the key that is sent, by the name of its variable."""
        variable = self._api_key_env or _variable(litellm, model)
        return {variable: self._getenv(variable) or ""}


class _Exchange:
    """One call, as it is put to LiteLLM."""

    def __init__(
        self,
        litellm: Module,
        call: LlmCall,
        *,
        key: str | None,
        base: str | None,
        secrets: dict[str, str],
    ) -> None:
        self._litellm, self.call = litellm, call
        self._key, self._base, self._secrets = key, base, secrets

    def wanted(self) -> quirks.Request:
        """Return the members of the request that a model may refuse."""
        # Only a stream shows that a model is still at work.
        stream: quirks.Request = {"stream": True, "stream_options": {"include_usage": True}}
        return {**self.call.parameters, **quirks.response_format(self.call), **stream}

    async def ask(self, sent: quirks.Request, idle: float) -> Reading:
        """Make one request. Raises LlmError, NotStreamed, and what LiteLLM raises."""
        request = {
            **sent,
            "model": self.call.model,
            "messages": quirks.messages(self.call, schema_in_prompt=self._schema_in_prompt(sent)),
            "api_key": self._key,
            "api_base": self._base,
            "timeout": self.call.seconds,  # shorter deadlines end the task
            "num_retries": 0,  # the rules own retries
            "max_retries": 0,
            "fallbacks": None,
            # A connection that is kept may be dead when it is needed, and outlives the event loop.
            "extra_headers": {"Connection": "close", **_mapping(sent.get("extra_headers"))},
        }
        if "stream" not in sent:
            return await self._ask_whole(request)
        stream = await self._litellm.acompletion(**request)
        try:
            return await read_stream(stream, idle)
        finally:
            await stream.aclose()

    async def _ask_whole(self, request: dict[str, Any]) -> Reading:
        received = Received()
        try:
            response = await self._litellm.acompletion(**request, logger_fn=received.keep)
            return read_whole(response, received)
        except Exception as error:
            if "Invalid response object" not in str(error):
                raise
            if received.pieces is not None:
                return read_received(received, self._litellm.Usage)
            if isinstance(error, self._litellm.exceptions.InternalServerError):
                return Reading()  # a choice without a message: LiteLLM trips over it
            raise

    def answer(self, reading: Reading, notes: tuple[str, ...]) -> Answer:
        """Return what was read. Nothing that fails from here on may lose a paid answer."""
        refusal = failures.hidden("".join(reading.refusals), self._secrets)
        return Answer(
            text=reading.text,
            finish_reason=reading.finish_reason,
            usage=reading.usage,
            cost=self._cost(reading),
            model=reading.model,
            request_id=reading.request_id,
            notes=(*notes, f"{REFUSAL}{refusal}") if refusal else notes,
        )

    def failure(self, error: Exception) -> CallFailure:
        """Return what `error` means."""
        failure = failures.failure_of(error, self._secrets)
        if failure.reason in ("timeout", "connection") or failures.answered(error):
            return failure
        # LiteLLM reports a missing key as an error 500.
        missing = self._key is None and _missing(self._litellm, self.call.model)
        return _no_key(self.call.model, *missing) if missing else failure

    def notes(self, sent: quirks.Request, requests: int) -> tuple[str, ...]:
        """Say what was done beyond asking once."""
        notes = []
        if requests > 1:
            notes.append(f"asked {requests} times: a request with a refused member is asked anew")
        if "response_format" in sent and self._schema_in_prompt(sent):
            notes.append("the JSON schema was sent in the prompt too: the model may ignore it else")
        return tuple(notes)

    def _schema_in_prompt(self, sent: quirks.Request) -> bool:
        """Whether the model may not know the schema otherwise: some servers ignore the member."""
        model = self.call.model
        return "response_format" not in sent or not self._litellm.supports_response_schema(model)

    def _cost(self, reading: Reading) -> float | None:
        if None in reading.usage.model_dump().values() or price(self.call.model) is None:
            return None
        try:
            costs = self._litellm.cost_per_token(
                model=self.call.model, usage_object=reading.counted
            )
            return float(sum(costs))
        except Exception:  # noqa: BLE001 - the answer is paid for, whatever fails here
            return None


def _provider(litellm: Module, model: str) -> str | None:
    try:
        return str(litellm.get_llm_provider(model)[1])
    except litellm.exceptions.BadRequestError:
        return None


def _variable(litellm: Module, model: str) -> str:
    """Return the name of the variable that usually holds the key of a model's provider."""
    return f"{_provider(litellm, model)}_API_KEY".upper()


def _missing(litellm: Module, model: str) -> list[str]:
    """Return the variables that LiteLLM would read for `model`, and that are not set or empty."""
    names: list[str] = litellm.validate_environment(model)["missing_keys"]
    usual = _variable(litellm, model)
    return names or ([usual] if os.environ.get(usual) == "" else [])


def _check_sendable(keys: dict[str, str]) -> None:
    """Raise LlmError for a key with a line end, or with a letter that no header can hold."""
    for variable, key in keys.items():
        if not (key.isascii() and key.isprintable()):
            message = (
                f"the variable {variable} holds no key that could be sent: there is a line end or "
                "another odd character in it"
            )
            raise LlmError(CallFailure(reason="auth", message=message))


def _no_key(model: str, *variables: str) -> CallFailure:
    names = ", ".join(variables)
    message = f"there is no API key for {model}: set the environment variable {names}"
    return CallFailure(reason="auth", message=message)


def _refused(error: Exception, sent: quirks.Request) -> str | None:
    """Return the member of the request that the model refuses, if that is what `error` says."""
    if getattr(error, "status_code", None) not in _REFUSED:
        return None
    message = f"{error} {getattr(error, 'code', '') or ''}"
    return quirks.refused_member(message, getattr(error, "param", None), sent)


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
