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
NO_SANDBOX = (
    "No sandbox works here: the demo's own code runs in a bare process. "
    "Why none works: codetape doctor"
)


@click.command()
@click.option("--sandbox", type=click.Choice(SANDBOXES), default="auto", show_default=True,
              help="auto: podman, else bubblewrap. process: no isolation at all.")  # fmt: skip
@store_option
def command(sandbox: str, store: str | None) -> int:
    """Run the shipped example: a report on temperature sensors. No key is needed.

    The model's answers are a script, and its first code has a mistake. The sandbox is real: there the
    tests find it. Where no sandbox works, this code, which is shipped, runs in a bare process; no other
    command does that by itself. The tape is kept in the store, so all other commands work on it
    afterwards.

    Example: codetape demo && codetape replay last
    """
    from codetape.cli.screen import screen

    shown = screen()
    _introduce(shown)  # at once: what follows takes a moment to import
    from codetape.cli import report
    from codetape.cli.exits import code_of
    from codetape.cli.stores import writing

    with writing(store) as opened:
        result = _played(shown, opened, _chosen(shown, sandbox), store)
        shown.line()
        report.show_result(shown, result)
        if result.success:
            _show_run(shown, result)
        if result.success:
            _show_next_steps(shown, store)
        else:
            report.show_next_steps(shown, result, store)
    return code_of(result.folded)


def _introduce(shown: Screen) -> None:
    from codetape import demo

    shown.line("The model of this demo is scripted and needs no key. The tests are real.", "good")
    shown.line()
    shown.line(demo.PROMPT, "dim")
    shown.line()


def _chosen(shown: Screen, asked: str) -> str:
    """Return the sandbox to play in; where none works, the shipped code may do without, and says so."""
    import asyncio

    # The cheaper one is tried first, but for a sign of life only: auto still takes podman before it.
    if asked != "auto" or any(asyncio.run(_works(kind)) for kind in ("bubblewrap", "podman")):
        return asked
    shown.line(NO_SANDBOX, "bad")
    shown.line()
    return "process"


async def _works(kind: str) -> bool:
    from codetape.composition import make_sandbox
    from codetape.engine.ports import SandboxBroken
    from codetape.states.values import ImageRef, ImageSpec

    sandbox = make_sandbox(kind)
    try:
        return isinstance(await sandbox.build(ImageSpec(base="")), ImageRef)
    except SandboxBroken:
        return False
    finally:
        await sandbox.close()


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
