"""A tool for people, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetape.cli.out import in_json
from codetape.cli.stores import command_line, short
from codetape.cli.text import counted, duration, money, one_line

if TYPE_CHECKING:
    from codetape.cli.screen import Screen
    from codetape.tool import Tool


def show(screen: Screen, tool: Tool, store: str | None) -> None:
    """Say what became of the tool, where it is, and what one may want to do now."""
    screen.line()
    if tool.success:
        screen.line(f"{str(tool.status).capitalize()}: {_reason(tool)}.", "good")
    else:
        screen.line(
            f"Not passed ({tool.status or 'not done'}): {one_line(tool.error or '')}", "bad"
        )
    screen.fields([*_facts(tool)])
    screen.line()
    screen.fields([*_steps(tool, store)])


def _reason(tool: Tool) -> str:
    return tool.folded.ending.reason if tool.folded.ending else ""


def _facts(tool: Tool) -> Iterator[tuple[str, str]]:
    session = tool.folded
    paid = session.totals
    tokens = f"{paid.input_tokens:,} tokens in, {paid.output_tokens:,} out"
    yield "session", session.id
    yield "tool", str(tool.path or _missing(tool.code, "no answer had code"))
    yield "report", str(tool.report_path or _missing(tool.findings, "nobody found anything"))
    yield "harness", tool.harness_status
    yield (
        "repairs",
        f"{counted(tool.cycles, 'crash', 'crashes')}, {session.logic_repairs} of its logic",
    )
    yield "model", f"{session.job.model}, {counted(paid.calls, 'call')}, {tokens}"
    yield "cost", money(paid.cost)
    yield "time", duration(session.seconds)


def _missing(made: object, reason: str) -> str:
    return "it could not be written" if made else f"none, {reason}"


def _steps(tool: Tool, store: str | None) -> Iterator[tuple[str, str]]:
    name = short(tool.session)
    yield "the events", command_line("show", [name], ["--events"], store=store)
    if tool.path:
        yield "run it", f"python3 {_argument(tool.path)} --help"
    elif tool.code:
        yield "the code", command_line("show", [name], ["--code"], store=store)
    if not tool.folded.done:
        yield "go on", command_line("resume", [name], store=store)


def _argument(path: Path) -> str:
    """A path as a word of a command line, also one that looks like an option."""
    return shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))


def as_json(tool: Tool) -> str:
    """Return the tool as one JSON object; null is unknown or not there."""
    paid = tool.folded.totals
    facts: dict[str, Any] = {
        "session": tool.session,
        "status": tool.status,
        "success": tool.success,
        "harness_status": tool.harness_status,
        "error": tool.error,
        "path": str(tool.path) if tool.path else None,
        "report_path": str(tool.report_path) if tool.report_path else None,
        "code": tool.code,
        "harness": tool.harness,
        "findings": [{"persona": f.persona, "text": f.text} for f in tool.findings],
        "fix_cycles": tool.cycles,
        "logic_repairs": tool.folded.logic_repairs,
        "output": tool.output,
        "model_calls": paid.calls,
        "input_tokens": paid.input_tokens,
        "output_tokens": paid.output_tokens,
        "cost_usd": paid.cost,
    }
    return in_json(facts)
