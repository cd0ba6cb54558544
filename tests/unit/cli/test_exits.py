"""Exit codes of sessions and errors."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Literal

import pytest

from codetape.cli.exits import code_of, explained
from codetape.engine.ports import (
    DamagedTape,
    SandboxBroken,
    SessionOwned,
    StoreUnusable,
    UnknownSession,
)
from codetape.running import RunFailed
from codetape.states.machine import State
from codetape.states.session import Ending, Session
from codetape.states.values import CallFailure, FailureClass, RunOutcome, SandboxFailure

Reason = Literal["auth", "connection", "timeout", "server_error", "script_dry", "bad_request"]


def ended(failure: FailureClass | None) -> Session:
    return Session(id="x", state=State.DONE, ending=Ending(failure, "so"))


@pytest.mark.parametrize(
    ("session", "code"),
    [
        (ended(None), 0),
        (ended(FailureClass.STUCK), 1),
        (ended(FailureClass.MODEL), 1),
        (ended(FailureClass.INFRASTRUCTURE), 3),
        (Session(id="x"), 1),
    ],
)
def test_code_of_a_session(session: Session, code: int) -> None:
    assert code_of(session) == code


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("auth", 3),
        ("connection", 3),
        ("timeout", 3),
        ("server_error", 3),
        ("script_dry", 1),
        ("bad_request", 1),
    ],
)
def test_a_model_out_of_reach_is_infrastructure(reason: Reason, code: int) -> None:
    failure = CallFailure(reason=reason, message="so")
    assert code_of(replace(ended(FailureClass.MODEL), call_failure=failure)) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownSession("ab", ("abc", "abd")), 2),
        (StoreUnusable("x.db", "full"), 3),
        (DamagedTape("x", 3, "gap"), 3),
        (SessionOwned("x", "process 1 on here"), 3),
        (SandboxBroken(SandboxFailure(message="no podman")), 3),
        (RunFailed("exit status 1", RunOutcome()), 1),
    ],
)
def test_errors_are_one_line_with_a_code(error: Exception, code: int) -> None:
    found = explained(error)
    assert found is not None
    assert found[1] == code
    assert str(error) in found[0]


def test_a_fault_of_ours_is_not_explained_away() -> None:
    assert explained(ValueError("bug")) is None


INTERRUPTED_AT = """
import sys

class CtrlC:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
from codetape.cli import main
sys.exit(main(["--help"]))
"""


@pytest.mark.parametrize("module", ["codetape.cli.program", "click", "codetape.cli.groups"])
def test_ctrl_c_is_heard_before_the_command_line_is_there(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, module], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "codetape: interrupted\n"
