"""Providers and prices as LiteLLM's own files list them, read without importing it: that takes seconds.

A list says yes, never no: a name or a price that is not found here may still be known to LiteLLM, which
has rules beside its lists (models of an own provider, dated names, aliases).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codetape.states.job import Price

_PRICES = "model_prices_and_context_window_backup.json"
_PROVIDERS = "types/utils.py"
_PROVIDER_CLASS = re.compile(r"^class LlmProviders\(.*?\):\n(.*?)^\S", re.MULTILINE | re.DOTALL)
_PROVIDER = re.compile(r'^    \w+ = "([^"]+)"', re.MULTILINE)
_OF_BARE_NAMES = ("openai", "anthropic")  # of others LiteLLM knows some bare names and some not


def lists_model(model: str) -> bool:
    """Whether LiteLLM knows who serves `model`: a listed provider and any name, or a listed name."""
    provider, _, name = model.partition("/")
    if name:
        return provider in _providers()
    return not model.startswith("ft:") and _entry(model) is not None


def price(model: str) -> Price | None:
    """Return what a token of input and of output costs; None if the list has no such model."""
    entry = _entry(model)
    return None if entry is None else price_of(entry)


def price_of(entry: Mapping[str, Any]) -> Price | None:
    """Return the price in an entry of LiteLLM's list; None if the list has none of both."""
    try:
        return Price(
            input=float(entry["input_cost_per_token"]),
            output=float(entry["output_cost_per_token"]),
            output_limit=entry.get("max_output_tokens"),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _entry(model: str) -> Mapping[str, Any] | None:
    """Return the entry of a model, under its whole name or its name without the provider."""
    provider, _, name = model.partition("/")
    served_by = _OF_BARE_NAMES if not name else (provider,) if provider in _providers() else ()
    for key in (model, name):
        entry = _prices().get(key)
        if isinstance(entry, Mapping) and entry.get("litellm_provider") in served_by:
            return entry
    return None


@cache
def _prices() -> Mapping[str, Any]:
    try:
        listed = json.loads(_text(_PRICES))
    except ValueError:
        return {}
    return listed if isinstance(listed, dict) else {}


@cache
def _providers() -> frozenset[str]:
    listed = _PROVIDER_CLASS.search(_text(_PROVIDERS))
    return frozenset(_PROVIDER.findall(listed[1])) if listed else frozenset()


def _text(file: str) -> str:
    """Return the text of a file of LiteLLM; an empty one if this version has none."""
    spec = find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        try:
            return (Path(folder) / file).read_text(encoding="utf-8")
        except OSError:
            continue
    return ""
