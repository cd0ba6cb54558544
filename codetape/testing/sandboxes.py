"""The contract of `Sandbox`, as tests that try the attack. An adapter's author subclasses it:

    class TestMySandbox(SandboxContract):
        gaps = {"test_processes_are_limited": "this kernel does not count them"}

        def make_sandbox(self, folder):
            return MySandbox(images=folder)

`gaps` names the tests that fail, with the reason; a gap that passes fails the suite. `base` is a
fixture to override where images stand on one. A sandbox that isolates passes `HarmContract` too.
"""

from __future__ import annotations

from codetape.testing.sandbox_cheats import CheatContract
from codetape.testing.sandbox_files import FileContract, LifeContract
from codetape.testing.sandbox_floods import FloodContract
from codetape.testing.sandbox_harm import HarmContract
from codetape.testing.sandbox_isolation import IsolationContract
from codetape.testing.sandbox_limits import LimitContract
from codetape.testing.sandbox_nulls import NullContract
from codetape.testing.sandbox_reports import ReportContract
from codetape.testing.sandbox_scripts import ScriptContract
from codetape.testing.sandbox_skips import SkipContract


class SandboxContract(
    ReportContract,
    CheatContract,
    ScriptContract,
    NullContract,
    SkipContract,
    LimitContract,
    FloodContract,
    IsolationContract,
    FileContract,
    LifeContract,
):
    """What every sandbox does."""


ISOLATION = tuple(
    name
    for part in (IsolationContract, HarmContract)
    for name in vars(part)
    if name.startswith("test_")
)
"""The tests of isolation: a real sandbox has no gap among them."""

__all__ = ["ISOLATION", "HarmContract", "SandboxContract"]
