"""What the tool maker's states ask for."""

from __future__ import annotations

from collections.abc import Callable

from codetape.states import requests as r
from codetape.states.machine import State
from codetape.states.session import base_spec
from codetape.states.tools import prompts
from codetape.states.tools import requests as t
from codetape.states.tools.harness import appended
from codetape.states.tools.session import ToolSession
from codetape.states.values import TextFile
from codetape.states.wanting import nothing, rebuild, run_of


def wanted(s: ToolSession) -> tuple[r.Request, ...]:
    """Return the requests that the session calls for; none if it is paused or done."""
    if s.done or s.paused:
        return ()
    if s.sandbox is None:
        return (r.CheckSandbox(spec=base_spec(s.job), seconds=s.job.build_seconds),)
    return _WANTED[s.state](s)


def _needs_code(s: ToolSession) -> tuple[r.Request, ...]:
    if persona := s.persona:
        call = prompts.persona(s, persona)
        return (t.AskPersona(call=call, persona=persona.name, writes=s.writes(persona)),)
    return (t.FixCode(call=prompts.fix_logic(s) if s.tests else prompts.fix_crash(s)),)


def _needs_tests(s: ToolSession) -> tuple[r.Request, ...]:
    if s.code is None:
        raise ValueError("NeedsTests is entered with code")
    return (t.WriteHarness(call=prompts.harness(s), source=s.code.source),)


def _testing(s: ToolSession) -> tuple[r.Request, ...]:
    """The script first, as it is, and its harness when it has run."""
    if s.code is None:
        raise ValueError("Testing is entered with code")
    script = TextFile(name="solution.py", text=s.code.source)
    if not s.ran or s.tests is None:
        return (t.RunScript(spec=run_of(s, "script", (script,))),)
    whole = appended(s.code.source, s.tests.source)
    tests = TextFile(name="test_solution.py", text=whole)
    return (r.RunTests(spec=run_of(s, "tests", (script, tests))),)


_WANTED: dict[State, Callable[[ToolSession], tuple[r.Request, ...]]] = {
    State.NEEDS_CODE: _needs_code,
    State.NEEDS_TESTS: _needs_tests,
    State.NEEDS_REBUILD: rebuild,
    State.TESTING: _testing,
    State.DIAGNOSING: nothing,
    State.RECLASSIFY: nothing,
    State.DONE: nothing,
}
