"""What a result may be used for, and arguments that are given as None."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from codetape import AutoCoderAgent
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, ended, failed
from codetape.adapters.store.memory import MemoryStore
from codetape.cli import main
from codetape.result import Result
from tests.support.sessions import RIGHT, TESTS

SCRIPT: dict[str, list[Any]] = {"code": [RIGHT], "tests": [TESTS]}

FAILS = failed({"test_add": ("AssertionError", "assert 1 == 3")})


def result(*, passes: bool, store: str | Path | MemoryStore | None = None) -> Result:
    """A session of one attempt whose tests pass or fail, and whose code runs."""
    sandbox = FakeSandbox(runs=[] if passes else [FAILS, ended(), ended()])
    agent = AutoCoderAgent(
        model="m",
        plan=False,
        max_iterations=1,
        llm=ScriptedLlm(SCRIPT),
        sandbox=sandbox,
        store=store or MemoryStore(),
    )
    return agent.generate("Add two numbers.")


def test_j5_code_that_has_not_passed_runs_only_where_that_is_said() -> None:
    failing = result(passes=False)
    assert not failing.success
    for run in (failing.run, failing.run_outcome):
        with pytest.raises(ValueError, match=r"has not passed its tests .*unverified=True"):
            run()
    failing.run(unverified=True)


def test_j5_a_task_of_it_is_refused_and_runs_where_that_is_said() -> None:
    failing = result(passes=False)
    with pytest.raises(ValueError, match="has not passed its tests"):
        failing.as_task()
    failing.as_task(unverified=True)()


def test_j5_a_passed_session_runs_as_before() -> None:
    passing = result(passes=True)
    passing.run()
    passing.as_task()()


def test_j5_no_input_has_the_name_of_the_option() -> None:
    agent = AutoCoderAgent(model="m", llm=ScriptedLlm({}), sandbox=FakeSandbox())
    with pytest.raises(ValueError, match="'unverified' cannot be the name"):
        agent.generate("Add.", inputs={"unverified": bool})


def test_j5_the_command_line_refuses_it_and_names_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "codetape.db"
    failing = result(passes=False, store=store)
    assert main(["run", failing.session, "--store", str(store)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "has not passed its tests" in told
    assert "--unverified" in told


def test_j9_none_stands_for_the_default() -> None:
    agent = AutoCoderAgent(
        model="m",
        plan=False,
        system_prompt=None,
        resources=None,
        image_config=None,
        timeout=None,
        llm=ScriptedLlm(SCRIPT),
        sandbox=FakeSandbox(),
        store=MemoryStore(),
    )
    made = agent.generate("Add two numbers.")
    assert made.success
    assert made.folded.job.limits.seconds == 120.0
    assert made.folded.job.system_prompt == ""


def test_j9_the_output_is_the_log_of_the_last_run() -> None:
    failing = result(passes=False)
    assert failing.output == "test_add FAILED\n    AssertionError: assert 1 == 3"
    assert result(passes=True).output == "test_add PASSED"


def test_j9_progress_is_logged_and_silent_by_default(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "codetape"):
        made = result(passes=True)
    lines = [record.getMessage() for record in caplog.records if record.name == "codetape"]
    assert len(lines) == len(made.records)
    assert lines[0].endswith("event 1, session_opened, NeedsCode -> NeedsCode")
    assert lines[-1].endswith("tests_passed, Testing -> Done")
    caplog.clear()
    result(passes=True)
    assert caplog.records == []


def test_j8_a_repair_is_asked_to_leave_all_else_as_it_is() -> None:
    wrong = {"code": "def add(a, b):\n    return a - b\n"}
    fix = {"test_name": "test_add", "error_type": "logic", "suggested_fix": "Replace `-` with `+`"}
    answers: dict[str, list[Any]] = {"code": [wrong, RIGHT], "diagnosis": [{"failures": [fix]}]}
    llm = ScriptedLlm({**SCRIPT, **answers})
    agent = AutoCoderAgent(
        model="m", plan=False, llm=llm, sandbox=FakeSandbox(runs=[FAILS]), store=MemoryStore()
    )
    assert agent.generate("Add two numbers.").success
    asked = [call.messages[-1].text for call in llm.calls if call.kind == "code"]
    assert ["all else stays as it is" in text for text in asked] == [False, True]
