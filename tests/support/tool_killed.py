"""Makes a tool many times, each time killed right after another event.

    python -m tests.support.tool_killed FOLDER 1 2 3 …

leaves FOLDER/<event>.db for each event that is named, and the files of its tool in FOLDER/<event>.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from codetape import Progress, ToolMaker
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, ended, failed
from codetape.adapters.store.sqlite import SqliteStore
from tests.support.tools import COURSES, QUESTION

KINDS = ("tool_architect", "tool_implementer", "harness", "fix_logic")
SAID = dict(zip(KINDS, COURSES["fixed"].answers, strict=True))
RUNS = (ended(), failed({"test_logic": ("AssertionError", "one line, one status")}), ended())


def maker(store: str, project: str, calls: int = 0, runs: int = 0, event: int = 0) -> ToolMaker:
    """Return a tool maker after so many calls and runs, which is killed after `event`."""

    def on_event(progress: Progress) -> None:
        if progress.recorded.seq == event:
            os.kill(os.getpid(), signal.SIGKILL)

    left = {kind: [SAID[kind]] for kind in KINDS[calls:]}
    return ToolMaker(
        model="scripted",
        project=project,
        store=store,
        llm=ScriptedLlm(left),
        sandbox=FakeSandbox(runs=RUNS[runs:]),
        on_event=on_event,
    )


def main(folder: str, *events: str) -> int:
    """Fork for each event: what was imported once need not be imported again."""
    for event in events:
        store = Path(folder, f"{event}.db")
        SqliteStore(store).close()  # to make the tables is what takes long
        child = os.fork()
        if child == 0:
            maker(str(store), str(Path(folder, event)), event=int(event)).make(QUESTION)
            os._exit(1)  # it ran to its end: there is no such event
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            print(f"event {event}: status {status}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
