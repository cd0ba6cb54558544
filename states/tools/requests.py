"""What the tool maker asks of the outside world, beyond what every workflow does."""

from __future__ import annotations

from codetape.states.requests import ModelRequest, RunRequest


class AskPersona(ModelRequest):
    """What does a persona find? `writes`: its answer is to hold the whole script."""

    name = "ask_persona"
    persona: str
    writes: bool


class FixCode(ModelRequest):
    """The whole script anew, without the crash or the error that its harness found."""

    name = "fix_code"


class RunScript(RunRequest):
    """Does the script run without arguments?"""

    name = "run_script"


class WriteHarness(ModelRequest):
    """Assertions over the functions of the script `source`."""

    name = "write_harness"
    source: str
