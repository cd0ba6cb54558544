"""The list of commands, and a group that imports a command when it is used."""

from __future__ import annotations

from importlib import import_module

import click

from codetape.cli.out import put

COMMANDS = {
    "demo": "Run the shipped example; no key needed.",
    "generate": "Write code for a request and test it.",
    "tool": "Make a small tool from a question.",
    "run": "Run a session's code on data.",
    "sessions": "List the sessions of a store.",
    "show": "Show a session: result, events, code, tests or prompts.",
    "resume": "Go on with a session that was interrupted.",
    "feedback": "Say whether what a session made is any good.",
    "lessons": "List, correct and forget what was learned.",
    "fork": "Start a session from an event of another one.",
    "replay": "Check that today's rules do what a tape says.",
    "diff": "Say where two sessions part, and what differs after that.",
    "export": "Write a tape to one file.",
    "import": "Put the tape of a file into a store.",
    "verify": "Check that tapes are what was written.",
    "prune": "Delete sessions that nobody needs any more.",
    "compact": "Make the file of a store smaller.",
    "images": "List, explain and remove what builds have left here.",
    "check": "Say what is wrong with a table of rules.",
    "doctor": "Say what works here and what is missing.",
    "graph": "Print the state machine as Mermaid.",
}
"""Name to the line that the list of commands has; each is `command` in a file of its name."""

FILES = {"import": "import_"}
"""The names that Python keeps for itself, and the files of those commands."""

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """Lists commands without importing them."""

    def __init__(self, name: str, help: str) -> None:
        super().__init__(name, help=help, context_settings=SETTINGS)
        self.params.append(_version_option())

    def list_commands(self, _: click.Context) -> list[str]:
        """The commands in the order in which one comes to need them."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(
            f"codetape.cli.{FILES.get(cmd_name, cmd_name)}"
        ).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; click knows no name to suggest where commands are imported late."""
        from difflib import get_close_matches

        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name.lower(), COMMANDS, n=1)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"No such command '{name}'.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version_option() -> click.Option:
    return click.Option(
        ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_version,
        help="Show the version and exit.",
    )  # fmt: skip


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from importlib.metadata import version

        put(f"codetape {version('codetape')}")
        ctx.exit()
