"""A program to be killed: it runs code without an end in a sandbox. `SANDBOX FOLDER MARK`.

The mark is among the arguments of the code, and so on the command line of each of its processes. What
the sandbox builds lies in the folder.
"""

import asyncio
import sys
from pathlib import Path

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.podman import PodmanSandbox
from codetape.adapters.sandbox.process import ProcessSandbox
from codetape.engine.ports import Sandbox
from codetape.states.values import ImageRef, ImageSpec, Limits, RunSpec, TextFile

CODE = """
import os, subprocess, sys, time
if sys.argv[-1] != "child":
    # One in a session of its own, which nobody waits for.
    subprocess.Popen([sys.executable, *sys.argv, "child"], start_new_session=True)
open("/var/outputs/begun", "w").close()
while True: time.sleep(1)
"""


def make(name: str, folder: Path) -> Sandbox:
    """Return the sandbox of a name."""
    if name == "podman":
        return PodmanSandbox(session="to-be-killed")
    kind = {"bubblewrap": BubblewrapSandbox, "process": ProcessSandbox}[name]
    return kind(environments=folder, session="to-be-killed")


async def main(name: str, folder: str, mark: str) -> None:
    """Run until somebody kills us."""
    sandbox = make(name, Path(folder))
    image = await sandbox.build(ImageSpec(base=""))
    assert isinstance(image, ImageRef), image
    files = (TextFile(name="solution.py", text=CODE),)
    limits = Limits(seconds=600.0)
    spec = RunSpec(
        purpose="script", image=image, files=files, arguments=(mark,), limits=limits, outputs=("o",)
    )
    await sandbox.run(spec)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
