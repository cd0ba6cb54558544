"""A tape is a test: pytest collects each `*.tape.jsonl` and replays it. Loaded by pytest itself.

A tape passes if today's rules do what it says, to its end. `codetape export SESSION --as-test DIR` puts
one into a folder of tests. `-p no:codetape` turns this off. Nothing of codetape is imported before the
first tape is run.

Tapes of workflows of one's own need those: name them in the configuration of pytest, one a line.

    [tool.pytest.ini_options]
    codetape_workflows = ["my_package.rules:REVIEWED"]
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from codetape.replay.drift import Report
    from codetape.states.workflow import Workflow

SUFFIX = ".tape.jsonl"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Have the configuration name workflows."""
    parser.addini(
        "codetape_workflows",
        "workflows of your own, as module:name, under which tapes are replayed",
        type="linelist",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known that stands in the contract suites: where marks are strict, too."""
    config.addinivalue_line("markers", "slow: takes seconds, or needs much of the machine")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> TapeFile | None:
    """Collect a tape."""
    if not file_path.name.endswith(SUFFIX):
        return None
    collected: TapeFile = TapeFile.from_parent(parent, path=file_path)
    return collected


class TapeFile(pytest.File):
    """A file with one tape in it."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the one test of this file."""
        yield TapeItem.from_parent(self, name="replay")


class TapeDiffers(Exception):
    """A replay is not what the tape says; the message is the difference as a person reads it."""


class TapeItem(pytest.Item):
    """Replays a tape."""

    def runtest(self) -> None:
        """Read, check and replay. Raises TapeDiffers, and BadTapeFile for a file that was changed."""
        from codetape.replay.imports import read_tape_file
        from codetape.replay.replayer import replay
        from codetape.states.workflow import WORKFLOWS

        tape = read_tape_file(self.path)
        own = [_workflow(name) for name in self.config.getini("codetape_workflows")]
        report = replay(tape, tape.session, (*WORKFLOWS, *own))
        if not report.identical:
            raise TapeDiffers(_told(report))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Show what differs; the traceback of a fault of ours."""
        from codetape.engine.visible import escaped
        from codetape.replay.imports import BadTapeFile

        if isinstance(excinfo.value, TapeDiffers | BadTapeFile):
            return escaped(str(excinfo.value))
        return escaped(str(super().repr_failure(excinfo, style)))

    def reportinfo(self) -> tuple[Path, int, str]:
        """The name that reports show."""
        from codetape.engine.visible import safe

        return self.path, 0, f"replay of {safe(self.path.name)}"


def _told(report: Report) -> str:
    lines = [f"The tape of session {report.session} and today's rules differ."]
    for difference in report.differences:
        lines += [str(difference), *difference.diff.splitlines()]
    lines += ["", "All differences: codetape replay FILE --keep-going"]
    return "\n".join(lines)


def _workflow(name: str) -> Workflow:
    from codetape.engine.visible import safe
    from codetape.own import find

    try:
        return find(name)[0]
    except ValueError as error:
        pytest.fail(safe(f"codetape_workflows: {error}"), pytrace=False)
