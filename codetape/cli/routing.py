"""The options that say which models are asked."""

from __future__ import annotations

from typing import Any

import click


def _routing(_: click.Context, option: click.Parameter, given: str | None) -> dict[str, Any]:
    from codetape.models import routing

    try:
        return routing(given) if given else {}
    except ValueError as error:
        raise click.BadParameter(str(error), param=option) from None


models_option = click.option(
    "--models",
    "routing",
    metavar="FILE",
    callback=_routing,
    help="A TOML file that says which models are asked: model, fallback_models, and [models] with "
    "orchestrator, coder, or kinds of calls.",
)


def asked_models(options: dict[str, Any]) -> dict[str, Any]:
    """Return model, models and fallback_models; --model goes before the file's."""
    given: dict[str, Any] = options["routing"]
    model = options["model"] or given.get("model")
    if not model:
        raise click.UsageError("Missing option '--model', or a model in the file of --models.")
    return {**given, "model": model}
