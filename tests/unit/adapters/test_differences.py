"""Where adapters differ on purpose from the system whose job this one takes over.

One test for each weakness of that system; each would fail on what that system does.
"""

from __future__ import annotations

import asyncio
import os

from codetape.adapters.llm.litellm import LiteLlm
from codetape.states.values import Answer
from tests.support.chat_calls import PLAIN, WITH_SCHEMA, ask, failure_of, make, warm_up
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer, refusal


def test_x02_key_and_address_travel_with_each_call() -> None:
    """Two models at once, each with its own key at its own address; the process knows neither."""
    warm_up()
    with (
        ChatServer([Reply("one", delay=0.2)], key="sk-key-of-one") as first,
        ChatServer([Reply("two")], key="sk-key-of-two") as second,
    ):
        keys = {"ONE": "sk-key-of-one", "TWO": "sk-key-of-two"}
        models = [
            LiteLlm(api_key_env=name, api_base=server.base, getenv=keys.get)
            for name, server in (("ONE", first), ("TWO", second))
        ]

        async def together() -> list[Answer]:
            return await asyncio.gather(*(model.complete(PLAIN) for model in models))

        answers = asyncio.run(together())
    assert [answer.text for answer in answers] == ["one", "two"]
    assert not set(keys.values()) & set(os.environ.values())


REFUSED = refusal(400, "response_format is not supported", param="response_format")


def test_w42_where_that_fails_too_the_error_says_what_was_tried() -> None:
    with ChatServer([REFUSED, refusal(400, "JSON is beyond me")]) as server:
        failure = failure_of(make(server), WITH_SCHEMA)
    assert failure.reason == "bad_request"
    assert failure.message == (
        "JSON is beyond me (the JSON schema was sent in the prompt: "
        "the model refuses response_format)"
    )
    assert len(server.requests) == 2


def test_x14_limits_are_settings_and_none_is_sent_unasked() -> None:
    with ChatServer([Reply("a"), Reply("b", finish_reason="length")]) as server:
        ask(server, PLAIN)
        cut = ask(server, PLAIN.model_copy(update={"parameters": {"max_tokens": 4000}}))
    limits = [request.body.get("max_tokens") for request in server.requests]
    assert limits == [None, 4000]
    assert cut.finish_reason == "length"
