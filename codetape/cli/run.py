"""`codetape run`: the code of a session on other data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codetape.cli.exits import PASSED
from codetape.cli.out import put
from codetape.cli.stores import allow_option, find_session, reading, store_option

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.result import Result

HEAD_LINES, HEAD_BYTES = 12, 4096
"""What is shown of a file."""


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    options_metavar="[--NAME VALUE]... [OPTIONS]",
)
@click.argument("session", required=False, metavar="SESSION")
@click.option("--output-dir", metavar="DIR", help="Where files go.  [default: a new folder]")
@click.option("--overwrite", is_flag=True, help="Replace what lies in DIR under an output's name.")
@click.option("--unverified", is_flag=True, help="Run code that has not passed its tests, too.")
@allow_option
@store_option
@click.option("-h", "--help", "asked", is_flag=True, help="Show this, and the session's inputs.")
@click.pass_context
def command(
    ctx: click.Context,
    session: str | None,
    output_dir: str | None,
    store: str | None,
    allow: tuple[str, ...],
    *,
    overwrite: bool,
    unverified: bool,
    asked: bool,
) -> int:
    """Run the newest code of a session in its sandbox.

    Each input of the session is an option. One that is not given takes its sample. What stands after
    -- is an input, whatever it is called. SESSION is a prefix of its id, or last.

    \b
    Examples:
      codetape run last --help
      codetape run last --threshold 2.5 --readings new.csv --output-dir out
    """
    from codetape.authority import read_grants
    from codetape.cli.screen import screen
    from codetape.result import Result

    if asked:
        put(ctx.get_help())
    if not session:
        if asked:
            return PASSED
        raise click.UsageError("Missing argument 'SESSION'", ctx)
    with reading(store) as opened:
        found = find_session(opened, session)
        result = Result.load(found, opened, authority=read_grants(allow))
        if asked:
            _show_inputs(screen(), result)
        else:
            how = {"overwrite": overwrite, "unverified": unverified}
            show_outputs(screen(), result, _run(ctx, result, output_dir, how))
    return PASSED


def _run(ctx: click.Context, result: Result, output_dir: str | None, how: dict[str, bool]) -> Any:
    from codetape.authority import NotGranted

    given: dict[str, Any] = {**how, **dict(_given(ctx.args, list(result.declared_inputs)))}
    try:
        return result.run(output_dir=output_dir, **given)
    except NotGranted:
        raise
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from error


def _show_inputs(shown: Screen, result: Result) -> None:
    samples = {sample.name: sample.path for sample in result.folded.job.samples}
    shown.line(f"\nInputs of session {result.session}:")
    rows = [
        (f"--{name}", kind, samples.get(name, "none, it has to be given"))
        for name, kind in result.declared_inputs.items()
    ]
    shown.table(("input", "type", "default"), rows)


def _given(arguments: list[str], known: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for `--name value` and `--name=value`; a dash in a name may be a _."""
    left = iter(arguments)
    for word in left:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not name:
            raise click.UsageError(
                f"Unexpected argument {word!r}: inputs are given as --NAME VALUE"
            )
        if not equals:
            following = next(left, None)
            if following is None:
                raise click.UsageError(f"Option '--{name}' requires a value")
            value = following
        yield name if name in known else name.replace("-", "_"), value


def show_outputs(shown: Screen, result: Result, values: Any) -> None:
    """Show the typed outputs of a run: values as they are, files with their place and their head."""
    declared = result.folded.job.outputs
    if not declared:
        shown.line("The code ran; it declares no outputs.")
        return
    each = [values] if len(declared) == 1 else list(values)
    shown.fields([(d.name, _shown(value)) for d, value in zip(declared, each, strict=True)])
    for value in each:
        if (text := _head(value)) is not None:
            shown.line()
            shown.code(text, "text")


def _shown(value: Any) -> str:
    return str(getattr(value, "path", value)) or "(empty)"


def _head(value: Any) -> str | None:
    """Return the first lines of a file that is a text."""
    path = getattr(value, "path", None)
    if path is None or not Path(path).is_file():
        return None
    with Path(path).open("rb") as file:
        raw = file.read(HEAD_BYTES)
    if b"\0" in raw:
        return None
    lines = raw.decode("utf-8", "replace").splitlines()
    more = len(lines) > HEAD_LINES or len(raw) == HEAD_BYTES
    return "\n".join([*lines[:HEAD_LINES], *(["…"] if more else [])])
