"""The tool maker from the front door: what it makes, what it tells, and what it leaves."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from codetape import AutoCoderAgent, Budget, Persona, Progress, ToolMaker
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, broke, ended, failed, passed
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.adapters.system import FixedClock, FixedIds
from codetape.cli import tool_report
from codetape.cli.screen import screen
from codetape.learning import library_of
from codetape.states.tools.personas import PERSONAS
from codetape.states.values import CallFailure
from codetape.tapes import fork, open_tape

NAN = float("nan")
TOOL = "def count(text):\n    return len(text.split())\n\n\nprint(count('a b'))\n"
OTHER = TOOL.replace("split()", "split(' ')")
HARNESS = "def test_logic():\n    assert count('a b') == 2, 'two words'\n"


def fenced(source: str) -> str:
    return f"```python\n{source}```\n"


SCRIPT: dict[str, Any] = {
    "tool_architect": ["One function: count."],
    "tool_implementer": [fenced(TOOL)],
    "harness": [fenced(HARNESS)],
}
WRONG = failed({"test_logic": ("AssertionError", "two words")})


def maker(tmp_path: Path, script: Mapping[str, Any] = SCRIPT, **options: Any) -> ToolMaker:
    defaults: dict[str, Any] = {
        "model": "scripted",
        "project": tmp_path / "log-tools",
        "llm": ScriptedLlm(script),
        "sandbox": FakeSandbox(),
        "store": MemoryStore(),
        "clock": FixedClock(),
        "ids": FixedIds(),
    }
    return ToolMaker(**(defaults | options))


def test_a_tool_is_made_and_its_files_are_there(tmp_path: Path) -> None:
    tool = maker(tmp_path).make("Count words.")
    assert (tool.status, tool.harness_status, tool.error) == ("passed", "passed", None)
    assert tool.path == tmp_path / "log-tools/implementation/20250101_000002_000000_tool.py"
    assert tool.path.read_text() == TOOL == tool.code
    assert tool.report_path is not None
    report = tool.report_path.read_text()
    for part in ("# Count words.", "## tool_architect", "One function: count.", "- status: passed"):
        assert part in report
    assert [finding.persona for finding in tool.findings] == [p.name for p in PERSONAS]
    assert sorted(p.name for p in tool.path.parent.iterdir()) == [
        tool.path.name,
        tool.report_path.name,
    ]


FIXED = {**SCRIPT, "fix_logic": [fenced(OTHER)], "fix_crash": [fenced(OTHER)]}
CRASH = ended(1, stderr="ValueError: no")


@pytest.mark.parametrize(
    ("script", "runs", "status", "harness"),
    [
        (FIXED, [ended(), WRONG, ended(), passed("test_logic")], "fixed", "passed"),
        (FIXED, [ended(), WRONG, ended(), WRONG], "logic_test_failed", "failed"),
        (FIXED, [CRASH, ended()], "passed", "passed"),
        ({**SCRIPT, "fix_crash": [fenced(TOOL)] * 3}, [CRASH], "exhausted", "missing"),
        ({**SCRIPT, "tool_implementer": ["No."]}, [], "skipped", "missing"),
    ],
)
def test_what_became_of_a_tool(
    tmp_path: Path, script: Mapping[str, Any], runs: list[Any], status: str, harness: str
) -> None:
    tool = maker(tmp_path, script, sandbox=FakeSandbox(runs=runs)).make("Count words.")
    assert (tool.status, tool.harness_status) == (status, harness)
    assert tool.success is (status in ("passed", "fixed"))
    assert (tool.path is None) == (status == "skipped")
    assert tool.report_path is not None
    assert f"- status: {status}" in tool.report_path.read_text()
    assert tool.success or tool.error


def test_progress_tells_the_stage_and_a_subscriber_that_raises_harms_nothing(
    tmp_path: Path,
) -> None:
    seen: list[Progress] = []

    def on_event(progress: Progress) -> None:
        seen.append(progress)
        raise RuntimeError("the screen is gone")

    sandbox = FakeSandbox(runs=[CRASH, ended()])
    tool = maker(tmp_path, FIXED, sandbox=sandbox, on_event=on_event).make("Count words.")
    assert tool.success
    stages = [progress.stage for progress in seen]
    assert (
        stages
        == (
            "tool_architect tool_architect tool_implementer install run fix run harness run done"
        ).split()
    )
    assert seen[2].preview == "One function: count."
    assert [progress.cycle for progress in seen][-1] == 1
    assert "ValueError" in seen[5].preview


def flag(after: int) -> Callable[[], bool]:
    """A question that is answered with yes from a certain time on."""
    asked = iter(range(1000))
    return lambda: next(asked) >= after


@pytest.mark.parametrize("after", range(9))
def test_cancelled_before_any_request_nothing_is_asked_after_it(tmp_path: Path, after: int) -> None:
    llm, sandbox = ScriptedLlm(FIXED), FakeSandbox(runs=[CRASH, ended()])
    made = maker(tmp_path, llm=llm, sandbox=sandbox, cancel=flag(after))
    tool = made.make("Count words.")
    assert tool.status == "cancelled"
    asked = (len(llm.calls), len(sandbox.specs), len(sandbox.runs))
    assert sum(asked) == after
    assert (tool.report_path is not None) == (after >= 2)
    assert (tool.path is not None) == (after >= 3)
    assert made.resume(tool.session).status == "cancelled", "done is done"


def test_the_files_are_listed_in_the_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "codetape.db")
    tool = maker(tmp_path, store=store).make("Count words.")
    with library_of(store) as library:
        listed = {artifact.kind: artifact.path for artifact in library.artifacts(tool.session)}
    assert listed == {"tool": str(tool.path), "report": str(tool.report_path)}
    store.close()


def test_an_event_cancels_as_a_function_does(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert maker(tmp_path, cancel=stop).make("x").status == "cancelled"


def test_a_cancel_that_raises_cancels_and_progress_is_told_all_the_same(tmp_path: Path) -> None:
    def cancel() -> bool:
        raise ZeroDivisionError

    seen: list[Progress] = []
    llm = ScriptedLlm(SCRIPT)
    tool = maker(tmp_path, llm=llm, cancel=cancel, on_event=seen.append).make("x")
    assert tool.status == "cancelled"
    assert not llm.calls
    assert len(seen) == tool.folded.seq


@pytest.mark.parametrize("below", ["file", "file/project", "project"])
def test_a_project_that_cannot_be_written_is_said_before_a_call(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "implementation").write_text("")
    store, llm = MemoryStore(), ScriptedLlm(SCRIPT)
    with pytest.raises(ValueError, match=r"^project: "):
        maker(tmp_path, project=tmp_path / below, store=store, llm=llm).make("x")
    assert not store.sessions()
    assert not llm.calls


def test_a_project_that_goes_away_does_not_take_the_tool_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"

    def spoil(progress: Progress) -> None:
        if progress.session.done:
            (project / "implementation").rmdir()
            (project / "implementation").write_text("")

    tool = maker(tmp_path, project=project, on_event=spoil).make("x")
    assert (tool.status, tool.code, tool.path) == ("passed", TOOL, None)
    tool_report.show(screen(), tool, None)
    shown = capsys.readouterr().out
    assert "tool:     it could not be written" in shown
    assert f"codetape show {tool.session[:8]} --code" in shown


class Interrupted(ScriptedLlm):
    """Somebody presses Ctrl-C when calls of a kind are made."""

    def __init__(self, script: Mapping[str, Any], kind: str) -> None:
        super().__init__(script)
        self._kind = kind

    async def complete(self, call: Any) -> Any:
        if call.kind == self._kind:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)
        return await super().complete(call)


def test_an_interruption_keeps_the_files_and_the_session_goes_on(tmp_path: Path) -> None:
    store = MemoryStore()

    made = maker(tmp_path, llm=Interrupted(SCRIPT, "harness"), store=store)
    with pytest.raises(KeyboardInterrupt):
        made.make("Count words.")
    (file,) = (tmp_path / "log-tools/implementation").glob("*_tool.py")
    assert file.read_text() == TOOL
    left = {"harness": SCRIPT["harness"]}
    tool = maker(tmp_path, left, store=store).resume("last")
    assert tool.status == "passed"
    assert tool.path == file
    assert repr(tool) == f"<tool of {tool.session}: passed>"


def test_a_resumed_session_is_asked_about_before_its_first_request(tmp_path: Path) -> None:
    store, llm = MemoryStore(), ScriptedLlm(SCRIPT)
    fault = SCRIPT | {"harness": [ZeroDivisionError("of an adapter")]}
    with pytest.raises(ZeroDivisionError):
        maker(tmp_path, fault, store=store).make("x")
    assert (
        maker(tmp_path, llm=llm, store=store, cancel=flag(0)).resume("last").status == "cancelled"
    )
    assert not llm.calls


def test_after_a_wait_it_is_asked_again(tmp_path: Path) -> None:
    """A provider may ask for a minute, and who cancels meanwhile pays for nothing after it."""
    stop = threading.Event()

    class Waiting(FixedClock):
        async def sleep(self, seconds: float) -> None:
            stop.set()

    busy = CallFailure(reason="rate_limited", message="busy", retryable=True, retry_after=60.0)
    llm = ScriptedLlm(SCRIPT | {"tool_architect": [busy, "One function."]})
    tool = maker(tmp_path, llm=llm, clock=Waiting(), cancel=stop).make("x")
    assert tool.status == "cancelled"
    assert len(llm.calls) == 1


def test_interrupted_again_and_again_the_files_keep_their_names(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "codetape.db")
    with pytest.raises(KeyboardInterrupt):
        maker(tmp_path, llm=Interrupted(SCRIPT, "harness"), store=store).make("x")
    llm, sandbox = Interrupted(SCRIPT, "fix_logic"), FakeSandbox(runs=[WRONG])
    with pytest.raises(KeyboardInterrupt):
        maker(tmp_path, llm=llm, sandbox=sandbox, store=store).resume("last")
    files = sorted(str(file) for file in (tmp_path / "log-tools/implementation").iterdir())
    with library_of(store) as library:
        listed = [artifact.path for artifact in library.artifacts(store.sessions()[-1].id)]
    assert sorted(listed) == files
    assert len(files) == 2
    store.close()


def test_a_fork_has_files_of_its_own(tmp_path: Path) -> None:
    store = MemoryStore()
    tool = maker(tmp_path, store=store).make("x")
    other = fork(open_tape(store), 3)
    script = SCRIPT | {"tool_implementer": [fenced(OTHER)]}
    forked = maker(tmp_path, script, store=store).resume(other.id)
    assert (forked.status, forked.code) == ("passed", OTHER)
    assert tool.path is not None
    assert tool.path.read_text() == TOOL
    assert forked.path is not None
    assert forked.path.read_text() == OTHER
    assert maker(tmp_path, store=store).load(other.id).path == forked.path


def test_a_session_of_another_workflow_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    store, llm = MemoryStore(), ScriptedLlm({})
    fault = ScriptedLlm({"plan": [ZeroDivisionError("of an adapter")]})
    agent = AutoCoderAgent(model="scripted", llm=fault, store=store, sandbox=FakeSandbox())
    with pytest.raises(ZeroDivisionError):
        agent.generate("x")
    with pytest.raises(ValueError, match="is one of autocoder, not of a tool"):
        maker(tmp_path, llm=llm, store=store).resume("last")
    assert not llm.calls


def test_the_report_and_the_output_are_of_the_tool_and_not_of_its_harness(tmp_path: Path) -> None:
    sandbox = FakeSandbox(runs=[ended(stdout="2 words\n", stderr="a warning\n"), passed()])
    tool = maker(tmp_path, sandbox=sandbox).make("x")
    assert (tool.status, tool.output) == ("passed", "2 words\n")
    assert tool.report_path is not None
    report = tool.report_path.read_text()
    assert "It printed on stdout:\n\n```text\n2 words\n```" in report
    assert "It printed on stderr:\n\n```text\na warning\n```" in report


def test_a_file_that_cannot_be_written_does_not_keep_the_other_away(tmp_path: Path) -> None:
    def spoil(progress: Progress) -> None:
        if progress.session.done:
            (tmp_path / "log-tools/implementation/20250101_000002_000000_tool.py").mkdir()

    tool = maker(tmp_path, on_event=spoil).make("x")
    assert (tool.status, tool.path) == ("passed", None)
    assert tool.report_path is not None
    assert "- status: passed" in tool.report_path.read_text()


def test_a_pause_is_no_end(tmp_path: Path) -> None:
    made = maker(tmp_path, budget=Budget(calls=2))
    tool = made.make("Count words.")
    assert tool.status is None
    assert "budget of 2 calls" in (tool.error or "")
    assert tool.path is not None
    assert made.resume(tool.session, budget=Budget(calls=9)).status == "passed"
    assert made.load("last").status == "passed"
    assert made.load("last").path == tool.path


def test_no_sandbox_is_known_before_a_call(tmp_path: Path) -> None:
    llm = ScriptedLlm(SCRIPT)
    sandbox = FakeSandbox(builds=[broke("there is none", missing=True)])
    tool = maker(tmp_path, llm=llm, sandbox=sandbox).make("x")
    assert tool.error == "there is none"
    assert tool.status == "skipped"
    assert not llm.calls


def test_today_is_from_the_clock_and_on_the_tape(tmp_path: Path) -> None:
    llm = ScriptedLlm(SCRIPT)
    maker(tmp_path, llm=llm, clock=FixedClock("2026-11-30T23:59:59+00:00")).make("x")
    assert "Today is 2026-12-01." in llm.calls[0].messages[-1].text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"project": None}, "project: None is no path"),
        ({"project": "a\0b"}, "project: 'a.x00b' is no path"),
        ({"project": "a\udcff"}, "project: 'a.udcff' is no path"),
        ({"personas": ()}, "personas: there is none"),
        ({"personas": (Persona(name="harness", directive="x"),)}, "personas: 'harness' is taken"),
        ({"personas": (PERSONAS[0], PERSONAS[0])}, "personas: 'tool_architect' is taken"),
        ({"personas": PERSONAS[0]}, "personas: a list of personas"),
        ({"personas": [{"name": "a"}]}, "personas: Persona"),
        ({"personas": [Persona(name="a", directive=" ")]}, "personas: the directive of a"),
        ({"personas": [Persona(name="a", directive="x", model=" ")]}, "personas: the model of a"),
        ({"personas": [Persona(name="a", directive="x", temperature=-1)]}, "the temperature of a"),
        ({"personas": [Persona(name="a", directive="x", temperature=NAN)]}, "the temperature of a"),
        ({"personas": None}, "personas: a list of personas"),
        ({"cancel": True}, "cancel: a function"),
        ({"cancel": asyncio.sleep}, "cancel: nobody awaits it"),
        ({"on_event": asyncio.sleep}, "on_event: nobody awaits it"),
        ({"research_context": None}, "research_context: a text"),
        ({"fix_cycles": -1}, "fix_cycles"),
        ({"timeout": 0}, "timeout"),
        ({"models": {"nobody": "m"}}, "models: 'nobody' is none of"),
        ({"package_policy": "lax"}, "package_policy"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_happens(
    tmp_path: Path, options: dict[str, Any], named: str
) -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match=named):
        maker(tmp_path, store=store, **options).make("x")
    assert list(store.sessions()) == []
    assert list(tmp_path.iterdir()) == []


def test_an_empty_question_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="prompt: it is empty"):
        maker(tmp_path).make(" ")


def test_a_persona_may_have_a_model_of_its_own(tmp_path: Path) -> None:
    llm = ScriptedLlm(SCRIPT)
    models = {"tool_architect": "big", "coder": "small", "harness": "sharp"}
    maker(tmp_path, llm=llm, models=models).make("x")
    assert [call.model for call in llm.calls] == ["big", "small", "sharp"]
