"""The questions that only the tool maker's table asks. Pure, and named."""

from __future__ import annotations

from codetape.states.guards import build_may_pass
from codetape.states.tools.session import ToolSession
from codetape.states.values import FailureClass

HARNESSES = 2
"""How often a harness may be unusable: the first one gets a request to repair it."""


def personas_left(s: ToolSession) -> bool:
    """Another persona is to be asked."""
    return s.persona is not None


def no_code(s: ToolSession) -> bool:
    """No persona gave code that parses."""
    return s.code is None


def harness_missing(s: ToolSession) -> bool:
    """The script runs, and nothing checks its logic yet."""
    return s.tests is None


def fix_left(s: ToolSession) -> bool:
    """The script may be repaired once more. A repair of its logic has to run at once."""
    return not s.logic_repairs and s.fixes < s.job.fix_cycles


def build_retry_left(s: ToolSession) -> bool:
    """The build may pass, and failed no more often than a broken sandbox is forgiven."""
    return build_may_pass(s) and s.broken_builds <= s.job.sandbox_retries


def stuck(s: ToolSession) -> bool:
    """What failed is beyond the one repair of the logic."""
    return any(f.label is FailureClass.STUCK for f in s.failures)


def harness_repair_left(s: ToolSession) -> bool:
    """The harness may be asked for once more."""
    return s.refused < HARNESSES
