"""A bare process: no isolation at all. It is used only when it is asked for by name.

The code can read what its user can read, use the network and end other processes of that user. What
it shares with the real sandboxes is the rest: a clean environment, limits, an end of the whole tree,
truthful outcomes.

There is no /var/inputs here. A text that goes in (solution, tests, arguments) has the words
/var/inputs and /var/outputs replaced by the folders of the run, and a text that comes out has them
put back, so the same code works in every sandbox. Paths that code puts together from pieces are not
found; for those there are the variables CODETAPE_INPUTS and CODETAPE_OUTPUTS.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from codetape.adapters.sandbox import runner
from codetape.adapters.sandbox.environments import Environments, default_folder
from codetape.adapters.sandbox.leftovers import mark
from codetape.adapters.sandbox.local import LocalSandbox, Run, base_variables
from codetape.adapters.sandbox.supervise import Launch
from codetape.adapters.sandbox.trees import kill_tree
from codetape.states.values import TextFile

# Not in the middle of a longer path or name: /srv/var/inputs and /var/outputs2 are something else.
FOLDERS = re.compile(r"(?<![\w.])/var/(inputs|outputs)(?![\w.-])")


class ProcessSandbox(LocalSandbox):
    """Runs code as the user who calls, without isolation.

    `environments` is the folder for environments (default: the user's cache), `outputs` the one for
    collected outputs (default: temporary, gone with `close`). `secret` gives the value of a named
    secret. `build_seconds` limits a build. `session` is written to the folder of each run.
    """

    def __init__(
        self,
        *,
        environments: Path | None = None,
        outputs: Path | None = None,
        secret: Callable[[str], str | None] = os.environ.get,
        build_seconds: float = 900.0,
        session: str = "",
    ) -> None:
        folder = environments or default_folder()
        super().__init__(Environments(folder, seconds=build_seconds), outputs, secret, session)

    def _check(self) -> None:
        """Nothing can be missing: we are a process ourselves."""

    def _text(self, run: Run, file: TextFile) -> str:
        return _inward(run, file.text) if file.name.endswith(".py") else file.text

    def _outward(self, run: Run, text: str) -> str:
        for name in ("inputs", "outputs"):
            text = text.replace(str(run.folder / name), f"/var/{name}")
        return text.replace(str(run.folder / "tmp"), "/tmp")  # noqa: S108 - a word, not a place

    def _launch(self, run: Run) -> Launch:
        inward = tuple(_inward(run, argument) for argument in run.spec.arguments)
        translated = replace(run, spec=run.spec.model_copy(update={"arguments": inward}))
        base, script = self._environments.python(run.environment), str(run.folder / runner.FILE)
        temporary = str(run.folder / "tmp")
        name, _, value = mark(run.folder).partition("=")
        return Launch(
            argv=(
                *run.group.join(),
                *translated.command(
                    base,
                    str(run.environment),
                    script,
                    str(run.inputs),
                    (temporary, str(run.outputs)),
                    own_user=False,
                ),
            ),
            environment={
                **base_variables(str(run.environment), temporary),
                **self._variables(run),
                "CODETAPE_INPUTS": str(run.inputs),
                "CODETAPE_OUTPUTS": str(run.outputs),
                name: value,
            },
            seconds=runner.longest(run.spec),
            kill=lambda process: _kill(process, run),
            watch=run.watch,
            stdin=run.nonce.encode() + b"\n",
            keep=run.spec.limits.output,
            inherited=(run.writer,),
            report=run.reader,
        )


def _inward(run: Run, text: str) -> str:
    """Put the folders of the run where the contract names /var/inputs and /var/outputs."""
    return FOLDERS.sub(lambda found: str(run.folder / found[1]), text)


def _kill(process: subprocess.Popen[bytes], run: Run) -> None:
    """End the tree: by its control group, which nothing leaves, or by searching for it."""
    process.kill()
    if not (run.group.folders and run.group.kill()):
        kill_tree(process.pid, mark(run.folder))
