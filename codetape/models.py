"""Which models are asked: whether they can be, what they cost, and a file that says which."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codetape import composition
from codetape.engine.ports import Llm
from codetape.states.budget import worst_answer
from codetape.states.job import Budget, Job, Price


def prices(job: Job, llm: Llm | None) -> dict[str, Price]:
    """Check that each model can be asked, and return what is known of their prices.

    Raises ValueError for a model that nobody serves, and for a budget that cannot be kept.
    """
    if llm is not None:
        return {}
    if job.model.startswith(composition.SCRIPTED):
        composition.make_llm(None, job)  # there is no model to ask but this one
        return {}
    named = (job.model, *job.models.values(), *(p.model for p in job.personas if p.model))
    models = tuple(dict.fromkeys((*named, *job.fallback_models)))
    for model in models:
        check_model(model)
    known = {model: found for model in models if (found := price(model, job.budget))}
    _check_budget(job.model_copy(update={"prices": known}), models)
    return known


def check_model(model: str) -> None:
    """Raise ValueError if `model` names no provider. LiteLLM is imported for names beyond its lists."""
    from codetape.adapters.llm import listed

    if not listed.lists_model(model):
        from codetape.adapters.llm.litellm import check_model as check

        check(model)


def price(model: str, budget: Budget) -> Price | None:
    """Return what a token of a model costs; None if that is unknown.

    LiteLLM is imported for a price beyond its lists only where a limit of money hangs on it.
    """
    from codetape.adapters.llm import listed

    if (found := listed.price(model)) or budget.usd is None:
        return found
    from codetape.adapters.llm.litellm import price as beyond_the_lists

    return beyond_the_lists(model)


def _check_budget(job: Job, models: tuple[str, ...]) -> None:
    """A limit of money can be kept only if each price is known and an answer fits into it."""
    if (most := job.budget.usd) is None:
        return
    for model in models:
        if model not in job.prices:
            raise ValueError(
                f"budget: the price of {model} is unknown, so a limit in US dollars cannot be kept; "
                "limit tokens or calls instead"
            )
        if (answer := worst_answer(job, model)) > most:
            raise ValueError(
                f"budget: one answer of {model} may cost {answer:.2f} US dollars, more than {most:g}; "
                'raise the limit, or set litellm_params={"max_tokens": …}'
            )


def check_prices(job: Job, known: Mapping[str, Price]) -> None:
    """Check that the prices of a job that others wrote hide nothing: what a call may cost at most
    follows from them. Raises ValueError."""
    for model, price in known.items():
        told = job.prices.get(model)
        if told is None or not _covers(told, price):
            raise ValueError(
                f"budget: its tape says that {model} costs less than it does, so a limit in US "
                "dollars cannot be kept; limit tokens or calls instead"
            )


def _covers(told: Price, price: Price) -> bool:
    limits = (told.output_limit or 0) >= (price.output_limit or 0)
    return told.input >= price.input and told.output >= price.output and limits


def routing(path: str | Path) -> dict[str, Any]:
    """Read which models are asked from a TOML file, as arguments of an agent or a tool maker.

        model = "gpt-4.1-mini"                 # for all that is not named below
        fallback_models = ["ollama/qwen3-coder:30b"]

        [models]
        orchestrator = "gpt-4.1"               # a lane: plans, diagnoses, designs
        coder = "ollama/qwen3-coder:30b"       # a lane: writes code and tests
        diagnosis = "o4-mini"                  # one kind of call

    Raises ValueError, which names the file and what is wrong in it.
    """
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: it is no TOML: {error}") from error
    if unknown := sorted(given.keys() - _KEYS):
        raise ValueError(f"{path}: {unknown[0]} is none of {', '.join(sorted(_KEYS))}")
    for key, value in given.items():
        if not _KEYS[key](value):
            raise ValueError(f"{path}: {key} is of the wrong type")
    return given


def _texts(value: object) -> bool:
    values = list(value.values()) if isinstance(value, Mapping) else value
    return isinstance(values, list) and all(isinstance(text, str) for text in values)


_KEYS = {
    "model": lambda value: isinstance(value, str),
    "models": lambda value: isinstance(value, Mapping) and _texts(value),
    "fallback_models": lambda value: isinstance(value, list) and _texts(value),
}
