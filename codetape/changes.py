"""What a fork may change of a request: the fields by name, checked like an agent's arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from codetape import composition, models, shapes, validation
from codetape.states.job import Budget, Job
from codetape.values import bytes_of

Made = Callable[[Job, Any], Mapping[str, Any]]
"""From the job before and a new value to the fields of the job that differ."""

_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def changed(job: Job, changes: Mapping[str, Any]) -> Job:
    """Return the job with `changes` made. Raises ValueError, which names the field that is wrong."""
    for name, value in changes.items():
        made, _ = _known(name)
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f"{name}: {value} is no limit; leave it out, or give a number")
        job = Job.model_validate({**dict(job), **made(job, value)})
    return job


def from_text(name: str, text: str) -> Any:
    """Return the value that a text gives for a field. Raises ValueError, which names the field."""
    _, read = _known(name)
    try:
        return read(text)
    except ValueError:
        raise ValueError(f"{name}: {text!r} is no {_KINDS[read]}") from None


def _known(name: str) -> tuple[Made, Callable[[str], Any]]:
    if name not in FIELDS:
        raise ValueError(f"{name}: a fork cannot change that; it can change {', '.join(FIELDS)}")
    return FIELDS[name]


# --- values ---------------------------------------------------------------------------------------


def _flag(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError(text)
    return text.lower() in _TRUE


def _names(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]


def _budget(text: str) -> Budget:
    raise ValueError(text)


_KINDS: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bytes_of: "size, such as 512Mi",
    _flag: "yes or no",
    _names: "list of names",
    _budget: "budget; set usd, tokens, calls or seconds",
}


# --- fields ---------------------------------------------------------------------------------------


def _prompt(_: Job, value: Any) -> Mapping[str, Any]:
    return {"prompt": validation.prompt(value)}


def _model(job: Job, value: Any) -> Mapping[str, Any]:
    """Another model, with its price: what its calls may cost at most follows from that."""
    check_model(value)
    if value.startswith(composition.SCRIPTED):
        return {"model": value}
    known = {value: found} if (found := models.price(value, job.budget)) else {}
    return {"model": value, "prices": {**job.prices, **known}}


def check_model(name: str) -> None:
    """Raise ValueError if nobody knows the model. Asks nobody."""
    if not name.strip():
        raise ValueError("model: it is empty; name one, or leave it out")
    if name.startswith(composition.SCRIPTED):
        composition.make_llm(None, Job(prompt="-", model=name))
        return
    models.check_model(name)


def _plain(name: str) -> Made:
    return lambda _, value: {name: value}


def _at_least(name: str, least: float) -> Made:
    return lambda _, value: {name: shapes.at_least(name, value, least)}


def _packages(_: Job, value: Any) -> Mapping[str, Any]:
    return {"base_packages": validation.base_packages(value)}


def _limit(name: str, argument: str, least: float) -> Made:
    """A limit of one run."""

    def made(job: Job, value: Any) -> Mapping[str, Any]:
        amount = bytes_of(value) if argument in {"memory", "disk"} else value
        limit = shapes.at_least(argument, amount, least)
        return {"limits": job.limits.model_copy(update={name: limit})}

    return made


def _spending(name: str) -> Made:
    """A limit of the budget."""

    def made(job: Job, value: Any) -> Mapping[str, Any]:
        limit = shapes.at_least(name, value, 0)
        return {"budget": job.budget.model_copy(update={name: limit})}

    return made


FIELDS: dict[str, tuple[Made, Callable[[str], Any]]] = {
    "prompt": (_prompt, str),
    "model": (_model, str),
    "system_prompt": (_plain("system_prompt"), str),
    "schema": (lambda _, value: {"schema_text": value}, str),
    "base_packages": (_packages, _names),
    "max_iterations": (_at_least("max_iterations", 1), int),
    "fix_cycles": (_at_least("fix_cycles", 0), int),
    "sandbox_retries": (_at_least("sandbox_retries", 0), int),
    "plan": (_plain("plan"), _flag),
    "skip_tests": (_plain("skip_tests"), _flag),
    "network_access": (_plain("network_access"), _flag),
    "seed": (_plain("seed"), int),
    "timeout": (_limit("seconds", "timeout", 0.1), float),
    "cpu": (_limit("cpus", "cpu", 0.01), float),
    "memory": (_limit("memory", "memory", 32 << 20), bytes_of),
    "disk": (_limit("disk", "disk", 1), bytes_of),
    "processes": (_limit("processes", "processes", 8), int),
    "usd": (_spending("usd"), float),
    "tokens": (_spending("tokens"), int),
    "calls": (_spending("calls"), int),
    "seconds": (_spending("seconds"), float),
    "budget": (_plain("budget"), _budget),
}
"""By name: how a value becomes fields of a job, and how a text becomes a value."""
