"""codetape: from a request to Python code that has passed its tests in a sandbox, with a tape.

    from codetape import AutoCoderAgent, File

    agent = AutoCoderAgent(model="gpt-4.1")
    result = agent.generate(prompt="…", samples={"readings": "readings.csv"}, outputs={"report": File})
    report = result.run()

Names are imported when they are first used, so that `import codetape` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing itself would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

    from codetape.adapters.sandbox.gate import Decision, Package, allow_only
    from codetape.agent import AutoCoderAgent
    from codetape.authority import Authority, NotGranted
    from codetape.engine.ports import (
        ConcurrentAppend,
        DamagedTape,
        LeaseLost,
        SandboxBroken,
        SessionOwned,
        StoreError,
        StoreUnusable,
        UnknownSession,
    )
    from codetape.progress import Progress
    from codetape.result import Result
    from codetape.running import RunFailed
    from codetape.states.job import Budget, Persona
    from codetape.states.machine import IllegalTransition
    from codetape.states.tools.personas import ARCHITECT, IMPLEMENTER
    from codetape.tapes import fork, open_tape
    from codetape.task import Task
    from codetape.tool import Tool
    from codetape.toolmaker import ToolMaker
    from codetape.values import Dir, File, ImageConfig, Resources, Secret

_HOMES = {
    "ARCHITECT": "codetape.states.tools.personas",
    "IMPLEMENTER": "codetape.states.tools.personas",
    "Authority": "codetape.authority",
    "AutoCoderAgent": "codetape.agent",
    "Budget": "codetape.states.job",
    "ConcurrentAppend": "codetape.engine.ports",
    "Decision": "codetape.adapters.sandbox.gate",
    "NotGranted": "codetape.authority",
    "Package": "codetape.adapters.sandbox.gate",
    "allow_only": "codetape.adapters.sandbox.gate",
    "DamagedTape": "codetape.engine.ports",
    "Dir": "codetape.values",
    "File": "codetape.values",
    "IllegalTransition": "codetape.states.machine",
    "ImageConfig": "codetape.values",
    "LeaseLost": "codetape.engine.ports",
    "Persona": "codetape.states.job",
    "Progress": "codetape.progress",
    "Resources": "codetape.values",
    "Result": "codetape.result",
    "RunFailed": "codetape.running",
    "SandboxBroken": "codetape.engine.ports",
    "Secret": "codetape.values",
    "SessionOwned": "codetape.engine.ports",
    "StoreError": "codetape.engine.ports",
    "StoreUnusable": "codetape.engine.ports",
    "Task": "codetape.task",
    "Tool": "codetape.tool",
    "ToolMaker": "codetape.toolmaker",
    "UnknownSession": "codetape.engine.ports",
    "fork": "codetape.tapes",
    "open_tape": "codetape.tapes",
}

__all__ = [
    "ARCHITECT",
    "IMPLEMENTER",
    "Authority",
    "AutoCoderAgent",
    "Budget",
    "ConcurrentAppend",
    "DamagedTape",
    "Decision",
    "Dir",
    "File",
    "IllegalTransition",
    "ImageConfig",
    "LeaseLost",
    "NotGranted",
    "Package",
    "Persona",
    "Progress",
    "Resources",
    "Result",
    "RunFailed",
    "SandboxBroken",
    "Secret",
    "SessionOwned",
    "StoreError",
    "StoreUnusable",
    "Task",
    "Tool",
    "ToolMaker",
    "UnknownSession",
    "allow_only",
    "fork",
    "open_tape",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'codetape' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
