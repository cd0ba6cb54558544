"""`codetape tool`: a small tool from a question."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codetape.cli.budgets import budget_option
from codetape.cli.generate import POLICIES, SANDBOXES
from codetape.cli.out import put
from codetape.cli.routing import asked_models, models_option
from codetape.cli.stores import store_option

if TYPE_CHECKING:
    from codetape.tool import Tool


def _context(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> str:
    """Read files of context, each with its name above it."""
    return "\n\n".join(f"{name}:\n{_text(name, option).strip()}" for name in given)


def _text(name: str, option: click.Parameter) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise click.BadParameter(f"cannot read {name}: {reason}", param=option) from None


@click.command()
@click.argument("question")
@click.option("--model", help="As LiteLLM names it: gpt-4.1, ollama/qwen3-coder:30b")
@models_option
@click.option("--project", metavar="DIR", default=".", show_default=True,
              help="Where the tool goes, below implementation/.")  # fmt: skip
@click.option("--context", metavar="FILE", multiple=True, callback=_context,
              help="What is known already. May be repeated.")  # fmt: skip
@click.option("--fix-cycles", metavar="N", type=click.IntRange(0), default=3, show_default=True,
              help="The most repairs of a crash.")  # fmt: skip
@click.option("--sandbox", type=click.Choice(SANDBOXES), default="auto", show_default=True,
              help="auto: podman, else bubblewrap. process: no isolation at all.")  # fmt: skip
@click.option("--policy", type=click.Choice(POLICIES), default="known", show_default=True,
              help="Which packages may be installed; see `codetape generate --help`.")  # fmt: skip
@budget_option
@click.option("--api-base", metavar="URL", help="The address of the model's server.")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(question: str, as_json: bool, **options: Any) -> int:
    """Make a small self-contained Python tool: a script that runs, with its logic checked.

    An architect designs it and an implementer writes it; it is run in a sandbox, repaired if it
    crashes, and checked by assertions on its own functions, with one repair if they fail.

    \b
    Example:
      codetape tool "Summarise an nginx access log by status and hour" \\
          --model gpt-4.1 --project log-tools --context format.txt

    Ends with 0 if the tool passed (or was fixed), 1 if not, 2 for wrong usage, 3 if sandbox, model
    or store cannot be used, 130 if interrupted; then go on with `codetape resume last`.
    """
    from codetape.cli import tool_report
    from codetape.cli.exits import code_of
    from codetape.cli.screen import screen

    shown = screen(sys.stderr if as_json else sys.stdout)
    tool = _made(shown, question, options)
    if as_json:
        put(tool_report.as_json(tool))
    else:
        tool_report.show(shown, tool, options["store"])
    tool.store.close()
    return code_of(tool.folded)


def _made(shown: Any, question: str, options: dict[str, Any]) -> Tool:
    from codetape.cli.hidden import load_store_library
    from codetape.cli.watching import Watch
    from codetape.composition import store_path
    from codetape.states.job import Budget
    from codetape.toolmaker import ToolMaker

    load_store_library()
    watch = Watch(shown, options["store"])
    maker = ToolMaker(
        **asked_models(options),
        project=options["project"],
        research_context=options["context"],
        fix_cycles=options["fix_cycles"],
        sandbox=options["sandbox"],
        package_policy=options["policy"],
        budget=Budget(**options["budget"]),
        api_base=options["api_base"],
        store=store_path(options["store"]),
        on_event=lambda progress: watch.on_event(progress.recorded, progress.session),
        on_engine=watch.on_engine,
    )
    return watch.run(lambda: maker.make.aio(question))
