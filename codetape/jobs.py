"""What the arguments of an agent and of a tool maker have in common, checked, as parts of a Job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codetape import composition, secrecy, shapes, validation
from codetape.engine.ports import Clock, EventStore, Ids, Llm, Sandbox
from codetape.states.job import Job
from codetape.states.values import Limits
from codetape.values import ImageConfig, Resources


def shared(who: Any) -> dict[str, Any]:
    """Return the parts of a job that an AutoCoderAgent and a ToolMaker name alike.

    Raises ValueError, which names the argument that is wrong.
    """
    for listener in ("on_event", "on_engine"):
        shapes.function(listener, getattr(who, listener))
    _check_ports(who)
    return {**_models(who), **_image(who), **_runs(who)}


def _check_ports(who: Any) -> None:
    """Look at what a caller gives in place of ours. Raises ValueError."""
    if not isinstance(who.store, str | Path):
        shapes.port("store", who.store, EventStore)
    if not isinstance(who.sandbox, str):
        shapes.port("sandbox", who.sandbox, Sandbox)
    if who.llm is not None:
        shapes.port("llm", who.llm, Llm)
    shapes.port("clock", who.clock, Clock)
    shapes.port("ids", who.ids, Ids)


def job(**fields: Any) -> Job:
    """Return a job. Raises ValueError, which names the argument that is wrong."""
    return shapes.made(Job, _ARGUMENTS, **fields)


_ARGUMENTS = {
    "schema_text": "schema",
    "parameters": "litellm_params",
    "environment": "env_vars",
    "context": "research_context",
}
"""The arguments from which fields of a job with other names come."""


def sandbox_name(who: Any) -> str:
    """Return the name of the sandbox, or the class of the one that was given."""
    if not isinstance(who.sandbox, str):
        return type(who.sandbox).__name__
    name: str = validation.one_of("sandbox", who.sandbox, composition.SANDBOXES)
    return name


def _models(who: Any) -> dict[str, Any]:
    check = validation
    return {
        "model": shapes.filled("model", who.model),
        "fallback_models": shapes.texts("fallback_models", who.fallback_models),
        "api_key": secrecy.variable("api_key", who.api_key) if who.api_key else None,
        "api_base": secrecy.address(shapes.text("api_base", who.api_base))
        if who.api_base
        else None,
        "parameters": secrecy.parameters(shapes.mapping("litellm_params", who.litellm_params)),
        "budget": check.budget(who.budget),
        "seed": who.seed,
    }


def _image(who: Any) -> dict[str, Any]:
    check, config = (
        validation,
        shapes.instance("image_config", _or(who.image_config, ImageConfig()), ImageConfig),
    )
    return {
        "base_packages": check.base_packages(who.base_packages),
        "package_policy": _policy(who.package_policy),
        "base_image": check.base_image(config),
        "registry_secret": check.registry_secret(config),
        "python": check.python(config.python),
        "system_packages": check.system_packages(config.system_packages),
        "commands": shapes.texts("image_config: commands", config.commands),
    }


def _policy(given: Any) -> str:
    if callable(given):
        return "custom"
    name: str = validation.one_of("package_policy", given, composition.POLICIES)
    return name


def _or(given: Any, default: Any) -> Any:
    """Return the default where None was given."""
    return default if given is None else given


def _runs(who: Any) -> dict[str, Any]:
    check = validation
    return {
        "sandbox": sandbox_name(who),
        "limits": check.limits(_or(who.resources, Resources()), _or(who.timeout, Limits().seconds)),
        "network_access": who.network_access,
        "sandbox_retries": shapes.whole("sandbox_retries", who.sandbox_retries, 0),
        "environment": check.variables("env_vars", who.env_vars),
        "secrets": check.secrets(who.secrets),
    }
