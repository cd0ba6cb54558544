"""`codetape generate`: from a request to tested code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codetape.cli.budgets import budget_option
from codetape.cli.out import put
from codetape.cli.routing import asked_models, models_option
from codetape.cli.stores import store_option

if TYPE_CHECKING:
    from codetape.result import Result

POLICIES = ("known", "cautious", "ask")
SANDBOXES = ("auto", "podman", "bubblewrap", "process")


def _pairs(mark: str, form: str) -> Callable[..., dict[str, str]]:
    """Return a callback that reads NAME<mark>VALUE options into a dictionary."""

    def read(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
        pairs: dict[str, str] = {}
        for text in given:
            name, found, value = text.partition(mark)
            if not (name and found and value):
                raise click.BadParameter(f"{text!r} is not of the form {form}", param=option)
            if name in pairs:
                raise click.BadParameter(f"{name!r} is given twice", param=option)
            pairs[name] = value
        return pairs

    return read


def _text(_: click.Context, parameter: click.Parameter, given: str) -> str:
    try:
        given.encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8", param=parameter) from None
    return given


def _schema(_: click.Context, option: click.Parameter, given: str | None) -> str | None:
    try:
        return Path(given).read_text(encoding="utf-8") if given else None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise click.BadParameter(f"cannot read {given}: {reason}", param=option) from None


def _folder(_: click.Context, option: click.Parameter, given: str | None) -> Path | None:
    """Make the folder now: that it cannot be made should be known before anything is paid."""
    try:
        if given:
            Path(given).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{given}: {error.strerror}", param=option) from None
    return Path(given) if given else None


save_option = click.option(
    "--save",
    metavar="DIR",
    callback=_folder,
    help="Write the code there, with its tests, requirements.txt, a Containerfile and a README; "
    "files of these names are replaced.",
)


@click.command()
@click.argument("prompt", callback=_text)
@click.option("--model", help="As LiteLLM names it: gpt-4.1, ollama/qwen3-coder:30b")
@models_option
@click.option(
    "--sample",
    "samples",
    metavar="NAME=PATH",
    multiple=True,
    callback=_pairs("=", "NAME=PATH"),
    help="Sample data; it is an input of the code, too. May be repeated, like all with NAME.",
)
@click.option(
    "--input",
    "inputs",
    metavar="NAME:TYPE",
    multiple=True,
    callback=_pairs(":", "NAME:TYPE"),
    help="An input: str, int, float, bool, datetime, timedelta, File or Dir.",
)
@click.option(
    "--output",
    "outputs",
    metavar="NAME:TYPE",
    multiple=True,
    callback=_pairs(":", "NAME:TYPE"),
    help="An output, of the same types.",
)
@click.option(
    "--constraint", "constraints", metavar="TEXT", multiple=True, help="What has to hold."
)
@click.option("--schema", metavar="FILE", callback=_schema, help="A text that describes the data.")
@click.option("--package", "packages", metavar="P", multiple=True, help="A package to install.")
@click.option("--max-iterations", metavar="N", type=click.IntRange(1), default=10,
              show_default=True, help="The most attempts.")  # fmt: skip
@click.option("--skip-tests", is_flag=True, help="Write no tests; build the image and stop.")
@click.option("--network", is_flag=True, help="Let the code use the network when it runs.")
@click.option(
    "--sandbox",
    type=click.Choice(SANDBOXES),
    default="auto",
    show_default=True,
    help="auto: podman, else bubblewrap. process: no isolation at all.",
)
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default="known",
    show_default=True,
    help="Which packages may be installed: what the index has; cautious: ask about young ones and "
    "look-alikes; ask: ask about all. A session that asks pauses.",
)
@budget_option
@click.option("--api-base", metavar="URL", help="The address of the model's server.")
@store_option
@save_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(prompt: str, save: Path | None, as_json: bool, **options: Any) -> int:
    """Write code for a request, and repair it until its tests pass in a sandbox.

    The key of the model's provider is read from its variable, such as OPENAI_API_KEY. What happens
    is kept: after an interruption, go on with `codetape resume last`.

    \b
    Example:
      codetape generate "Count the words of each line" --model gpt-4.1 \\
          --sample text=poem.txt --output counts.csv:File --save poem

    Ends with 0 if the tests passed, 1 if not, 2 for wrong usage, 3 if sandbox, model or store
    cannot be used, 130 if interrupted.
    """
    from codetape.cli import report
    from codetape.cli.exits import code_of
    from codetape.cli.screen import screen

    shown = screen(sys.stderr if as_json else sys.stdout)
    result = _generated(shown, prompt, options)
    if as_json:
        put(report.as_json(result))
    else:
        report.show_result(shown, result)
    if save:
        report.save_and_say(shown, result, save)
    if not as_json:
        report.show_next_steps(shown, result, options["store"])
    result.store.close()
    return code_of(result.folded)


def _generated(shown: Any, prompt: str, options: dict[str, Any]) -> Result:
    from codetape.agent import AutoCoderAgent
    from codetape.cli.hidden import load_store_library
    from codetape.cli.watching import Watch
    from codetape.composition import store_path
    from codetape.states.job import Budget

    load_store_library()
    watch = Watch(shown, options["store"])
    agent = AutoCoderAgent(
        **asked_models(options),
        name="generate",
        api_base=options["api_base"],
        base_packages=options["packages"],
        max_iterations=options["max_iterations"],
        skip_tests=options["skip_tests"],
        network_access=options["network"],
        package_policy=options["policy"],
        budget=Budget(**options["budget"]),
        sandbox=options["sandbox"],
        store=store_path(options["store"]),  # made when the arguments are known to be right
        on_event=watch.on_event,
        on_engine=watch.on_engine,
    )
    request = ("samples", "schema", "constraints", "inputs", "outputs")
    given = {name: options[name] for name in request}
    return watch.run(lambda: agent.generate.aio(prompt, **given))
