"""Running one command: what goes wrong is one line and an exit code."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

import click

from codetape.cli.exits import USAGE, Failed, explained, interrupted
from codetape.cli.groups import Commands
from codetape.cli.out import put
from codetape.engine.visible import safe


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Faults of codetape itself are raised."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not every stream that stands in for one has it
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _warn(message)
            _show_logs_and_faults()
            _know_own_workflows()
            code = app.main(
                list(arguments) if arguments else None, "codetape", standalone_mode=False
            )
    except Failed as failed:
        return _say(failed.message, failed.code)
    except click.exceptions.NoArgsIsHelpError as error:
        put(error.format_message(), error=True)
        return USAGE
    except click.UsageError as error:
        return _say(_usage(error), USAGE)
    except (click.Abort, KeyboardInterrupt):
        return interrupted()
    except BrokenPipeError:  # whoever read our output has seen enough
        _end_output()
        return 1
    except Exception as error:
        if (explanation := explained(error)) is None:
            raise
        if isinstance(error, OSError) and not error.filename:
            _end_output()
        return _say(*explanation)
    return code if isinstance(code, int) else 0


def _know_own_workflows() -> None:
    """Import what the variable names: tapes of such workflows can be read from then on."""
    if "CODETAPE_WORKFLOWS" not in os.environ:
        return
    from codetape.own import register_named

    try:
        register_named()
    except ValueError as error:
        raise Failed(str(error), USAGE) from error


def _open_what_is_closed() -> None:
    """Python has None for a stream that was closed before it started: nobody will read it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _end_output() -> None:
    """Throw away what is still to be written, which Python would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn(message: Warning | str) -> None:
    """Say a warning as one line; where in the code it was raised helps nobody here."""
    _say(f"warning: {message}", 0)


class _Logs(logging.Handler):
    """Shows what the library logs as lines like any other."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say a record, with its traceback if it has one."""
        _say(self.format(record), 0)


def _show_logs_and_faults() -> None:
    """Have Python show through us what it would print as it is: logs, and faults of ours."""
    log = logging.getLogger("codetape")
    if not any(isinstance(handler, _Logs) for handler in log.handlers):
        log.addHandler(_Logs(logging.WARNING))
    sys.excepthook = lambda *fault: put("".join(traceback.format_exception(*fault)), error=True)


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else "codetape"
    message = error.format_message().rstrip(".")
    end = "" if message.endswith("?") else "."
    return f"{message}{end} Try: {path} --help"


def _say(message: str, code: int) -> int:
    """Say one line on stderr; further lines (what a program printed) are set in."""
    first, *others = safe(message.strip()).split("\n")
    put("\n".join([f"codetape: {first}", *(f"  {line}" for line in others)]), error=True)
    return code


app = Commands(
    "codetape",
    help="""Turn a request in plain language into Python code that has passed its tests in a sandbox,
    and keep a tape of how it got there.

    \b
    To see it work, without a key:  codetape demo
    To look at it again:            codetape show last --events
    To prove that tape:             codetape replay last

    A SESSION is any unique prefix of an id, or `last`. The tapes are in one file: --store FILE,
    else the variable CODETAPE_STORE, else ./codetape.db.""",
)
"""The command line as click sees it."""

__all__ = ["app", "run"]
