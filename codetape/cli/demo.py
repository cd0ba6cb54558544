"""`codetape demo`: the shipped example, from the request to the outputs of tested code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from codetape.cli.generate import SANDBOXES
from codetape.cli.stores import command_line, store_option

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.engine.ports import EventStore
    from codetape.result import Result

ATTEMPTS = 5


@click.command()
@click.option("--sandbox", type=click.Choice(SANDBOXES), default="auto", show_default=True,
              help="auto: podman, else bubblewrap. process: no isolation at all.")  # fmt: skip
@store_option
def command(sandbox: str, store: str | None) -> int:
    """Run the shipped example: a report on temperature sensors. No key is needed.

    The model's answers are a script, and its first code has a mistake. The sandbox is real: there the
    tests find it. The tape is kept in the store, so all other commands work on it afterwards.

    Example: codetape demo && codetape replay last
    """
    from codetape.cli.screen import screen

    shown = screen()
    _introduce(shown)  # at once: what follows takes a moment to import
    from codetape.cli import report
    from codetape.cli.exits import code_of
    from codetape.cli.show import show_events
    from codetape.cli.stores import writing

    with writing(store) as opened:
        result = _played(shown, opened, sandbox, store)
        shown.line()
        report.show_result(shown, result)
        if result.success:
            _show_run(shown, result)
        shown.line("\nThe tape:", "title")
        show_events(shown, result)
        if result.success:
            _show_next_steps(shown, store)
        else:
            report.show_next_steps(shown, result, store)
    return code_of(result.folded)


def _introduce(shown: Screen) -> None:
    from codetape import demo

    shown.line("The model of this demo is scripted and needs no key. The sandbox is real.", "good")
    shown.line()
    shown.line(demo.PROMPT, "dim")
    shown.line()


def _played(shown: Screen, opened: EventStore, sandbox: str, store: str | None) -> Result:
    from codetape import demo
    from codetape.agent import AutoCoderAgent
    from codetape.cli.watching import Watch

    watch = Watch(shown, store)
    agent = AutoCoderAgent(
        model=demo.MODEL,
        name="demo",
        max_iterations=ATTEMPTS,
        sandbox=sandbox,
        store=opened,
        on_event=watch.on_event,
        on_engine=watch.on_engine,
    )
    return watch.run(
        lambda: agent.generate.aio(
            prompt=demo.PROMPT,
            samples={"readings": demo.readings()},
            inputs=demo.INPUTS,
            outputs=demo.OUTPUTS,
        )
    )


def _show_run(shown: Screen, result: Result) -> None:
    from codetape import demo
    from codetape.cli.run import show_outputs

    shown.line(
        f"\nThe code, run on all readings with a threshold of {demo.THRESHOLD:g} °C:", "title"
    )
    show_outputs(shown, result, result.run(threshold=demo.THRESHOLD))


def _show_next_steps(shown: Screen, store: str | None) -> None:
    shown.line("\nNow try:", "title")
    shown.fields(
        [
            ("prove the tape", command_line("replay", ["last"], store=store)),
            ("read the code", command_line("show", ["last"], ["--code"], store=store)),
            ("run it yourself", command_line("run", ["last"], ["--threshold", "2.5"], store=store)),
        ]
    )
