"""Runs the demo many times, each time killed right after another event: no cleaning up, no goodbye.

    python -m tests.support.demo_killed FOLDER SANDBOX 1 2 3 …

leaves FOLDER/<event>.db for each event that is named.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from codetape import AutoCoderAgent, demo
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.tape import Recorded
from codetape.states.session import Session


def run_until(event: int, store: Path, sandbox: str) -> None:
    """Run the demo; the process ends by SIGKILL when event number `event` is on the tape."""

    def kill(recorded: Recorded, _: Session) -> None:
        if recorded.seq == event:
            os.kill(os.getpid(), signal.SIGKILL)

    agent = AutoCoderAgent(
        model=demo.MODEL, name="demo", store=store, sandbox=sandbox, on_event=kill
    )
    agent.generate(
        demo.PROMPT,
        samples={"readings": demo.readings()},
        inputs=demo.INPUTS,
        outputs=demo.OUTPUTS,
    )


def main(folder: str, sandbox: str, *events: str) -> int:
    """Fork for each event: what was imported once need not be imported again."""
    for event in events:
        store = Path(folder, f"{event}.db")
        SqliteStore(store).close()  # to make the tables is what takes long
        child = os.fork()
        if child == 0:
            run_until(int(event), store, sandbox)
            os._exit(1)  # it ran to its end: there is no such event
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            print(f"event {event}: status {status}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
