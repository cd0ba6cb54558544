"""The command line. A command is a file of this folder, imported when it is used."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code. Faults of codetape itself are raised.

    Nothing is imported before: Ctrl-C is heard also while Python reads what a command is made of.
    """
    try:
        from codetape.cli.program import run

        return run(arguments)
    except KeyboardInterrupt:
        from codetape.cli.exits import interrupted

        return interrupted()


__all__ = ["main"]
