"""Records a tool's making with each of its ends: `python -m tests.tapes.record_tools FOLDER`.

These are real runs: the model answers over HTTP, the tools run in bubblewrap.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedIds
from codetape.progress import Progress
from codetape.replay.export import export_tape
from codetape.toolmaker import ToolMaker
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer
from tests.support.tools import COURSES, QUESTION


def record(number: int, status: str, folder: Path) -> None:
    """Make the tool of a course and export its tape."""
    course, seen, store = COURSES[status], list[Progress](), MemoryStore()

    def cancel() -> bool:
        return course.cancelled_after is not None and len(seen) + 1 >= course.cancelled_after

    with ChatServer([Reply(answer) for answer in course.answers]) as server:
        maker = ToolMaker(
            model="openai/small",
            project="log-tools",
            api_base=server.base,
            sandbox="bubblewrap",
            store=store,
            ids=FixedIds([f"tool{number:08d}"]),
            cancel=cancel,
            on_event=seen.append,
        )
        tool = maker.make(QUESTION)
    assert tool.status == status, tool.error
    export_tape(store, tool.session, folder / f"tool_{status}.tape.jsonl")


def main(folder: str) -> int:
    """Record all; files that are there are refused."""
    target = Path(folder).absolute()
    if already := sorted(file.name for file in target.glob("tool_*")):
        print(f"{already[0]} is there and stays as it is", file=sys.stderr)
        return 1
    os.environ.setdefault("OPENAI_API_KEY", "sk-of-a-recording")
    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):
        for number, status in enumerate(COURSES, 1):
            record(number, status, target)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
