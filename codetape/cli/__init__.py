"""The command line. A command is a file of this folder, imported when it is used."""

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code. Faults of codetape itself are raised.

    Nothing of codetape is imported before: Ctrl-C is heard also while Python reads the parts of a
    command.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000)  # imports make many objects and hardly any garbage: it saves a tenth
    try:
        from codetape.cli.program import run

        return run(arguments)
    except KeyboardInterrupt:
        from codetape.cli.exits import interrupted

        return interrupted()
    finally:
        gc.set_threshold(*before)


__all__ = ["main"]
