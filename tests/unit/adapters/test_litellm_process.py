"""What LiteLLM may do to the process around it: keys, names, output, imports."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from codetape.adapters.llm import litellm
from codetape.adapters.llm.litellm import LiteLlm, check_model
from codetape.engine.ports import LlmError
from tests.support.chat_calls import KEY, PLAIN, ask, failure_of, make
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer, refusal

# --- keys -----------------------------------------------------------------------------------------


def test_a_missing_key_names_the_variable_and_asks_nobody() -> None:
    with ChatServer([Reply("x")]) as server:
        for environment in ({}, {"MY_KEY": ""}):
            llm = LiteLlm(api_key_env="MY_KEY", api_base=server.base, getenv=environment.get)
            failure = failure_of(llm)
            assert (failure.reason, failure.retryable) == ("auth", False)
            assert failure.message.endswith("set the environment variable MY_KEY")
    assert server.requests == []


def test_the_variable_of_the_provider_is_named_where_none_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    failure = failure_of(LiteLlm())
    assert (failure.reason, failure.retryable) == ("auth", False)
    assert failure.message.endswith("set the environment variable OPENAI_API_KEY")


def test_a_variable_that_is_empty_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    failure = failure_of(LiteLlm())
    assert (failure.reason, failure.retryable) == ("auth", False)
    assert failure.message.endswith("set the environment variable OPENAI_API_KEY")
    with ChatServer([Reply("x")]) as server:
        assert asyncio.run(LiteLlm(api_base=server.base).complete(PLAIN)).text == "x"


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}\u00fc"], ids=["line end", "umlaut"])
@pytest.mark.parametrize("named", [None, "OPENAI_API_KEY"])
def test_a_key_that_cannot_be_sent_is_named_and_not_shown(
    key: str, named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with ChatServer([Reply("x")]) as server:
        failure = failure_of(LiteLlm(api_key_env=named, api_base=server.base))
    assert (failure.reason, failure.retryable) == ("auth", False)
    assert failure.message.startswith("the variable OPENAI_API_KEY holds no key that could be sent")
    assert KEY not in failure.message
    assert server.requests == []


def test_a_failure_of_a_server_is_not_blamed_on_a_missing_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ChatServer([refusal(429, "slow down")]) as server:
        # Signed in by a token, so that the variable of the key is not there and not needed.
        monkeypatch.setenv("AZURE_API_BASE", server.base.removesuffix("/v1"))
        monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
        monkeypatch.delenv("AZURE_API_KEY", raising=False)
        signed_in: dict[str, JsonValue] = {"azure_ad_token": "token"}
        call = PLAIN.model_copy(update={"model": "azure/mine", "parameters": signed_in})
        failure = failure_of(LiteLlm(), call)
    assert (failure.reason, failure.message) == ("rate_limited", "slow down")


def test_a_server_at_home_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ChatServer([Reply("x")]) as server:
        assert asyncio.run(LiteLlm(api_base=server.base).complete(PLAIN)).text == "x"


def test_the_key_of_the_provider_is_used_where_none_was_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer([refusal(401, f"wrong key {KEY}")], key=KEY) as server:
        failure = failure_of(LiteLlm(api_base=server.base, getenv=os.environ.get))
    assert failure.message == "wrong key $OPENAI_API_KEY"


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_that_a_provider_repeats_is_not_repeated_here(status: int) -> None:
    with (
        ChatServer([refusal(status, f"no entry with {KEY}, {KEY}!")]) as server,
        pytest.raises(LlmError) as caught,
    ):
        asyncio.run(make(server).complete(PLAIN))
    assert caught.value.failure.message == "no entry with $MY_KEY, $MY_KEY!"
    assert KEY not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


def test_a_refusal_that_repeats_the_key_does_not(capfd: pytest.CaptureFixture[str]) -> None:
    with ChatServer([Reply(None, refusal=f"not with {KEY}")]) as server:
        answer = ask(server, PLAIN)
    assert answer.notes == ("the model refused: not with $MY_KEY",)
    assert KEY not in "".join(capfd.readouterr())


# --- names of models ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gpt-4.1", "openai/anything", "ollama/llama3", "azure/mine"])
def test_a_model_with_a_provider(model: str) -> None:
    check_model(model)


@pytest.mark.parametrize(
    "model", ["my-model", "", "/", "openai/", "/gpt", "no-such/gpt", " gpt-4.1"]
)
def test_a_model_without_a_provider_is_named_in_one_line(model: str) -> None:
    with pytest.raises(ValueError, match="write provider/model") as caught:
        check_model(model)
    assert str(caught.value).startswith(f"model {model!r} ")
    assert "\n" not in str(caught.value)


# --- the process ----------------------------------------------------------------------------------


def test_nothing_is_printed_whatever_happens(capfd: pytest.CaptureFixture[str]) -> None:
    replies = [
        refusal(500, "broke"),
        refusal(400, "no"),
        Reply("x", cut="in_body"),
        Reply("x", finish_reason="a new word"),
    ]
    with ChatServer(replies) as server:
        for _ in replies[:3]:
            failure_of(make(server))
        ask(server, PLAIN)
    with pytest.raises(ValueError, match="names no provider"):
        check_model("my-model")
    assert capfd.readouterr() == ("", "")


def test_what_the_environment_says_to_litellm_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_MODE", "DEV")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "False")
    litellm.load()
    assert os.environ["LITELLM_MODE"] == "DEV"
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "False"


SCRIPT = """
import asyncio, os, sys, time
from codetape.adapters.llm.litellm import LiteLlm
from codetape.states.values import LlmCall, Message
assert "litellm" not in sys.modules, "imported before it is used"

async def longest_pause(done):
    longest, last = 0.0, time.monotonic()
    while not done.is_set():
        await asyncio.sleep(0.01)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest

async def main():
    done, began = asyncio.Event(), time.monotonic()
    watching = asyncio.create_task(longest_pause(done))
    await asyncio.sleep(0.02)
    call = LlmCall(kind="code", model="gpt-4.1", messages=(Message(role="user", parts=("hi",)),))
    answer = await LiteLlm(api_base=sys.argv[1]).complete(call)
    done.set()
    return answer.text, await watching / (time.monotonic() - began)

text, share = asyncio.run(main())
assert share < 0.5, f"the event loop stood still for {share:.0%} of the time"
assert os.environ["LITELLM_MODE"] == "PRODUCTION", "it has read .env files"
print(text)
"""


@pytest.mark.timeout(300)  # imports LiteLLM anew, and the machine may be busy
def test_the_first_call_imports_litellm_off_the_network_and_beside_the_event_loop(
    tmp_path: Path,
) -> None:
    environment = {"PATH": os.environ["PATH"], "HTTPS_PROXY": "http://127.0.0.1:9"}
    with ChatServer([Reply("quiet")]) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", "-c", SCRIPT, server.base],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
    assert (done.stdout, done.stderr, done.returncode) == ("quiet\n", "", 0)
