"""Providers and prices as LiteLLM's files list them are those that LiteLLM itself knows."""

from __future__ import annotations

import pytest

from codetape.adapters.llm import listed, litellm

NAMES = [
    "",
    "/",
    "x",
    " gpt-4.1",
    "openai/",
    "/gpt",
    "GPT-4.1",
    "no-such/gpt",
    "sample_spec",
    "ft:gpt-4.1",
]


def models() -> list[str]:
    """Names of models as people write them, from LiteLLM's own lists, and odd ones."""
    known = litellm.load().model_cost
    names = [key for key, entry in known.items() if entry.get("mode") in ("chat", "responses")]
    bare = {name.rpartition("/")[2] for name in names}
    served = {f"{known[name]['litellm_provider']}/{name}" for name in names}
    some = {
        f"{provider}/{name}" for provider in ("openai", "azure", "hosted_vllm") for name in bare
    }
    return sorted({*names, *bare, *served, *some, *NAMES})


def knows(model: str) -> bool:
    try:
        litellm.check_model(model)
    except ValueError:
        return False
    return True


def test_a_model_that_is_listed_is_known_to_litellm() -> None:
    listed_ones = [model for model in models() if listed.lists_model(model)]
    assert len(listed_ones) > 1000
    assert [model for model in listed_ones if not knows(model)] == []


@pytest.mark.parametrize(
    "model",
    [
        *("gpt-4.1", "openai/gpt-4.1", "openai/anything", "anthropic/claude-sonnet-4-5"),
        *("gemini/gemini-2.5-pro", "ollama/qwen3-coder:30b", "ollama_chat/any", "azure/mine"),
        *("mistral/codestral-latest", "deepseek/deepseek-chat", "openrouter/x/y", "hosted_vllm/z"),
        *(
            "lm_studio/any",
            "groq/any",
            "bedrock/anthropic.claude-3-haiku-20240307-v1:0",
            "xai/grok-4",
        ),
    ],
)
def test_names_that_people_use_are_listed(model: str) -> None:
    assert listed.lists_model(model)


def test_a_listed_price_is_that_of_litellm() -> None:
    """LiteLLM has none for a few models that it sends elsewhere than their entry says."""
    differ = {
        model: (found, known)
        for model in models()
        if (found := listed.price(model)) and (known := litellm.price(model)) not in (found, None)
    }
    assert differ == {}


@pytest.mark.parametrize("model", ["gpt-4.1", "openai/gpt-4.1", "azure/gpt-4.1"])
def test_prices_that_people_need_are_listed(model: str) -> None:
    assert listed.price(model) is not None
    assert listed.price(model) == litellm.price(model)


def test_a_price_that_is_not_listed_is_unknown_and_not_zero() -> None:
    assert listed.price("twelvelabs.pegasus-1-2-v1:0") is None
    assert listed.price("openai/nobody-knows") is None
    assert listed.price_of({"input_cost_per_token": 1e-6}) is None
    assert listed.price_of({"input_cost_per_token": "free", "output_cost_per_token": 0}) is None
