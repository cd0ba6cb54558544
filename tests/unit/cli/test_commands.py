"""The list of commands, finding sessions, the inputs of `run`, and the graph."""

from __future__ import annotations

import asyncio

import click
import pytest

from codetape.adapters.store.memory import MemoryStore
from codetape.cli.graph import ANYWHERE, mermaid
from codetape.cli.groups import COMMANDS
from codetape.cli.program import app
from codetape.cli.run import _given
from codetape.cli.stores import find_session
from codetape.engine.ports import UnknownSession
from codetape.states.autocoder import TABLE
from codetape.states.machine import State
from tests.support.sessions import HAPPY, play


def commands() -> list[tuple[str, click.Command]]:
    context = click.Context(app)
    return [(name, app.get_command(context, name)) for name in COMMANDS]  # type: ignore[misc]


@pytest.mark.parametrize(("name", "command"), commands())
def test_help_teaches_with_an_example(name: str, command: click.Command) -> None:
    assert "Example" in (command.help or "")
    assert f"codetape {name}" in (command.help or "")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"


@pytest.mark.parametrize(("name", "command"), commands())
def test_help_fits_eighty_columns_and_is_not_cut(name: str, command: click.Command) -> None:
    context = click.Context(command, info_name=f"codetape {name}", max_content_width=80)
    lines = command.get_help(context).splitlines()
    for named in getattr(command, "commands", {}).values():
        lines += named.get_help(click.Context(named, max_content_width=80)).splitlines()
    lines = [line for line in lines if not line.startswith("Usage: ")]
    assert [line for line in lines if len(line) > 80 or line.endswith("...")] == []


@pytest.mark.parametrize("name", ["demo", "generate", "run", "sessions", "show", "resume",
                                  "replay", "export", "doctor"])  # fmt: skip
def test_every_command_with_a_store_takes_its_file(name: str) -> None:
    command = dict(commands())[name]
    assert "--store" in [flag for parameter in command.params for flag in parameter.opts]


def test_sessions_are_found_by_prefix_and_last() -> None:
    store = MemoryStore()
    for name in ("aaa1", "aab2", "bbb3"):
        asyncio.run(play(HAPPY, store=store, session_id=name))
    assert find_session(store, "aaa1") == "aaa1"
    assert find_session(store, "b") == "bbb3"
    with pytest.raises(UnknownSession) as caught:
        find_session(store, "aa")
    assert caught.value.candidates == ("aaa1", "aab2")
    for nobody in ("", "zzz"):
        with pytest.raises(UnknownSession):
            find_session(store, nobody)


def test_an_empty_store_has_no_last_session() -> None:
    with pytest.raises(UnknownSession):
        find_session(MemoryStore(), "last")


def test_inputs_are_read_as_options() -> None:
    words = ["--threshold", "-5", "--max-rows=3", "--label", "--odd"]
    given = dict(_given(words, ["threshold", "max_rows", "label"]))
    assert given == {"threshold": "-5", "max_rows": "3", "label": "--odd"}


@pytest.mark.parametrize("words", [["stray"], ["--name"], ["--"], ["-x", "1"]])
def test_wrong_inputs_are_usage_errors(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        dict(_given(words, []))


def test_graph_has_every_row_of_the_table() -> None:
    lines = list(mermaid(everything=True))
    assert lines[0] == "stateDiagram-v2"
    for row in TABLE:
        for source in row.sources:
            (arrow,) = [line for line in lines if f"    {source} --> {row.dest} :" in line]
            assert row.event in arrow
            assert all(guard in arrow for guard in row.guard_names)
    assert all(any(f" {state}" in line for line in lines) for state in State)


def test_graph_leaves_out_what_can_happen_anywhere() -> None:
    text = "\n".join(mermaid())
    assert not [name for name in ANYWHERE if name in text]
    assert "code_written [tests_missing]" in text
