"""Contents of typed parts and reasons of an end, which LiteLLM drops or changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.llm.received import Received
from tests.support.chat_calls import PLAIN, ask
from tests.support.chat_replies import Json, Reply
from tests.support.chat_server import ChatServer

PROVIDERS = ("gpt-4.1", "hosted_vllm/m", "mistral/m", "openrouter/m")
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
HELLO = [THOUGHT, {"type": "text", "text": "hello "}, {"type": "text", "text": "world"}]


def model_of(name: str) -> Json:
    return PLAIN.model_copy(update={"model": name})


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("model", PROVIDERS)
def test_texts_of_typed_parts_are_joined(model: str, *, whole: bool) -> None:
    with ChatServer([Reply(parts=HELLO, refuse=("stream",) * whole)]) as server:
        answer = ask(server, model_of(model))
    assert (answer.text, answer.finish_reason) == ("hello world", "stop")
    assert answer.usage.input_tokens or model == "mistral/m"  # LiteLLM asks it for no usage
    assert "parts of the answer that are no text were left out: thinking" in answer.notes


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("parts", "text", "kinds"),
    [
        ([{"type": "output_text", "text": "a"}, {"text": "b"}, "c"], "abc", ""),
        ([{"type": "text", "text": {"value": "a", "annotations": []}}], "a", ""),
        ([{"type": "image_url", "image_url": {"url": "x"}}], None, "image_url"),
        ([{"type": "text"}, {"type": 7}, None, {"type": "a\nb"}], None, "text, unknown"),
        ([], None, ""),
    ],
)
def test_parts_of_other_kinds_are_named(
    parts: Json, text: str | None, kinds: str, *, whole: bool
) -> None:
    with ChatServer([Reply(parts=parts, refuse=("stream",) * whole)]) as server:
        answer = ask(server, PLAIN)
    assert (answer.text, answer.finish_reason) == (text, "stop")
    named = [note.rpartition(": ")[2] for note in answer.notes if "are no text" in note]
    assert named == [kinds] * bool(kinds)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("told", ["model_length", "network_error", "MALFORMED_RESPONSE"])
def test_an_unknown_reason_of_an_end_stays_unknown(model: str, told: str, *, whole: bool) -> None:
    with ChatServer([Reply("{", finish_reason=told, refuse=("stream",) * whole)]) as server:
        answer = ask(server, model_of(model))
    assert (answer.text, answer.finish_reason) == ("{", told)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("max_tokens", "length"),
        ("SAFETY", "content_filter"),
        ("end_turn", "stop"),
        ("COMPLETE", "stop"),
        ("a\nb", "unknown"),
        ("x" * 99, "unknown"),
    ],
)
def test_other_words_for_a_known_end_are_known(told: str, reason: str, *, whole: bool) -> None:
    with ChatServer([Reply("{}", finish_reason=told, refuse=("stream",) * whole)]) as server:
        assert ask(server, PLAIN).finish_reason == reason


VALUES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "delta", "content", "message", "type", "text"]), below
        )
    ),
)


@given(VALUES)
def test_no_form_of_an_answer_is_tripped_over(value: Json) -> None:
    received = Received()
    received.seen({"choices": [{"delta": {"content": value}, "finish_reason": value}]})
    received.seen({"choices": [value]})
    received.seen(value)
    received.keep({"original_response": value})
    assert received.end("length") == "length"
    assert isinstance(received.end("stop"), str)
