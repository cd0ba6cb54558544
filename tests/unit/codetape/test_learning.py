"""What a session teaches, and a person says of it, is told to the next one with a similar request."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codetape import AutoCoderAgent, Budget, ToolMaker
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, failed
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.adapters.system import FixedClock, FixedIds
from codetape.engine.ports import EventStore, StoredEvent, StoreUnusable, UnknownSession
from codetape.learning import give_feedback, guidance_for, learn_after, learn_from, library_of
from codetape.replay.export import tape_lines
from codetape.replay.replayer import replay
from codetape.result import Result
from codetape.states.workflow import WORKFLOWS
from codetape.tool import Tool
from tests.support.sessions import HAPPY, LOGIC, ONE_REPAIR, TESTS

ASKED = "Add the numbers of two columns of a ledger."
SIMILAR = "Add the columns of this ledger, as numbers."
OTHER = "Draw the phases of the moon."
NOTE = "it should use decimals"
AVOID = "A person wants this avoided: it should use decimals"
MENDED = "Replace `a - b` with `a + b`"
TITLE = "## What earlier sessions taught"


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    if request.param == "memory":
        yield MemoryStore()
        return
    with closing(SqliteStore(tmp_path / "tapes.db")) as store:
        yield store


def generate(
    store: EventStore, prompt: str, script: Any = HAPPY, **options: Any
) -> tuple[Result, str]:
    """Run a session, and return it with all that its model was asked."""
    llm = ScriptedLlm(script)
    runs = (
        [failed({"test_add": ("AssertionError", "assert -1 == 3")})] if script is ONE_REPAIR else []
    )
    made: dict[str, Any] = {"sandbox": FakeSandbox(runs=runs), "store": store, "cache": "disable"}
    agent = AutoCoderAgent(model="scripted", llm=llm, clock=FixedClock(), **{**made, **options})
    result = agent.generate(prompt)
    asked = "\n".join(message.text for call in llm.calls for message in call.messages)
    return result, asked


def make(store: EventStore, folder: Path, prompt: str, **options: Any) -> tuple[Tool, str]:
    """Make a tool, and return it with all that its model was asked."""
    tool = "```python\ndef add(a, b):\n    return a + b\n```"
    check = "```python\ndef test_logic():\n    assert add(1, 2) == 3\n```"
    script = {"tool_architect": ["A design."], "tool_implementer": [tool], "harness": [check]}
    llm = ScriptedLlm(script)
    made: dict[str, Any] = {"sandbox": FakeSandbox(), "store": store, "project": folder, **options}
    maker = ToolMaker(model="scripted", llm=llm, clock=FixedClock(), **made)
    result = maker.make(prompt)
    return result, "\n".join(message.text for call in llm.calls for message in call.messages)


def test_feedback_changes_the_next_prompt_for_a_similar_request_only(store: EventStore) -> None:
    result, asked = generate(store, ASKED)
    assert TITLE not in asked
    result.feedback(good=False, note=NOTE)
    assert AVOID not in generate(store, OTHER)[1]
    similar, asked = generate(store, SIMILAR)
    assert asked.count(f"{TITLE}\n- {AVOID}\n") == 3  # the plan, the code, the tests
    assert similar.folded.job.guidance == (AVOID,)


def test_a_tool_is_judged_too_and_lanes_learn_apart(store: EventStore, tmp_path: Path) -> None:
    tool, _ = make(store, tmp_path, ASKED)
    tool.feedback(good=False, note=NOTE)
    assert AVOID not in generate(store, SIMILAR)[1]
    assert make(store, tmp_path, SIMILAR)[1].count(AVOID) == 3  # who designs, writes and checks
    assert AVOID not in make(store, tmp_path, SIMILAR, lessons=False)[1]


def test_what_was_told_is_on_the_tape_and_replays(store: EventStore) -> None:
    generate(store, ASKED)[0].feedback(good=True, note=NOTE)
    result, _ = generate(store, SIMILAR)
    assert result.folded.job.guidance == (f"A person praised this: {NOTE}",)
    with library_of(store) as library:
        (lesson,) = library.lessons()
        assert lesson.uses == 1
        library.forget(lesson.id)
    assert replay(store, result.session, WORKFLOWS).identical


def test_a_repair_is_learned_and_told(store: EventStore) -> None:
    result, _ = generate(store, ASKED, ONE_REPAIR)
    with library_of(store) as library:
        (lesson,) = library.lessons("autocoder")
    assert MENDED in lesson.text
    assert (lesson.session, lesson.request) == (result.session, ASKED)
    assert lesson.at == result.records[-1].at
    assert MENDED in generate(store, SIMILAR)[1]
    assert learn_from(store, result.session) == 0  # once


def test_who_wants_no_lessons_has_none(store: EventStore) -> None:
    generate(store, ASKED, ONE_REPAIR, lessons=False)
    with library_of(store) as library:
        assert library.lessons() == ()
    generate(store, ASKED, ONE_REPAIR)
    _, asked = generate(store, SIMILAR, lessons=False)
    assert TITLE not in asked


def test_a_session_that_is_not_done_teaches_nothing_yet(store: EventStore) -> None:
    wrong = ("AssertionError", "assert 1 == 2")
    two = f"{TESTS['test_code']}\n\ndef test_more():\n    assert add(0, 0) == 0\n"
    blamed: Any = [
        {**LOGIC["failures"][0], "test_name": name} for name in ("test_add", "test_more")
    ]
    script = {**ONE_REPAIR, "tests": [{"test_code": two}], "diagnosis": [{"failures": blamed}]}
    runs = [failed({"test_add": wrong, "test_more": wrong}), failed({"test_more": wrong})]
    budget, sandbox = Budget(calls=5), FakeSandbox(runs=runs)
    paused, _ = generate(store, ASKED, script, sandbox=sandbox, budget=budget)
    assert paused.folded.paused
    assert paused.attempts == 2
    assert learn_from(store, paused.session) == 0  # though test_add was repaired
    other = {
        "test_name": "test_more",
        "fixed_code": "def test_more():\n    assert add(0, 1) == 1\n",
    }
    patched: Any = {"patch_tests": [{"patches": [other]}], "verify_tests": [{"missing_fixes": []}]}
    rest = ScriptedLlm({"diagnosis": [{"failures": blamed[1:]}], **patched})
    made: dict[str, Any] = {"llm": rest, "sandbox": FakeSandbox(), "store": store}
    agent = AutoCoderAgent(model="scripted", clock=FixedClock(), **made)
    assert agent.resume(paused.session, budget=Budget()).success
    with library_of(store) as library:
        assert MENDED in "".join(lesson.text for lesson in library.lessons())


def test_a_bad_verdict_sinks_what_its_session_taught(store: EventStore) -> None:
    result, _ = generate(store, ASKED, ONE_REPAIR)
    with library_of(store) as library:
        library.learn("other", "autocoder", "ledger columns", ["Elsewhere."])
    assert guidance_for(store, "autocoder", SIMILAR)[-1] == "Elsewhere."
    result.feedback(good=False)
    assert guidance_for(store, "autocoder", SIMILAR)[0] == "Elsewhere."


def test_feedback_needs_a_session(store: EventStore) -> None:
    with pytest.raises(UnknownSession):
        give_feedback(store, "nobody", good=True)


def test_a_known_secret_is_taken_out_of_a_note(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret")
    generate(store, ASKED)[0].feedback(good=False, note="it printed sk-very-secret")
    with library_of(store) as library:
        (lesson,) = library.lessons()
    assert lesson.text == "it printed <secret SOME_API_KEY>"


def test_lessons_of_a_store_in_memory_go_with_it() -> None:
    store = MemoryStore()
    with library_of(store) as library:
        library.learn("s", "autocoder", ASKED, ["one"])
    with library_of(MemoryStore()) as other:
        assert other.lessons() == ()
    gone = weakref.ref(library)
    del store, library
    gc.collect()
    assert gone() is None


def test_learning_that_fails_harms_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreUnusable("tapes.db", "the disk is full")

    monkeypatch.setattr("codetape.learning.learn_from", broken)
    learn_after(MemoryStore(), "s1")
    assert "nothing was learned from session s1: store tapes.db: the disk is full" in caplog.text


def test_a_store_without_lessons_changes_no_tape() -> None:
    def tape(**options: Any) -> list[str]:
        result, _ = generate(MemoryStore(), ASKED, ids=FixedIds(), **options)
        return list(tape_lines(result.store, result.session))

    assert tape() == tape(lessons=False)


class Slotted:
    """A store that nobody can be told the end of."""

    __slots__ = ("_store",)

    def __init__(self) -> None:
        self._store = MemoryStore()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_lessons_of_a_store_without_an_end_go_at_once() -> None:
    store: Any = Slotted()
    with library_of(store) as library:
        library.learn("s", "autocoder", ASKED, ["one"])
        assert len(library.lessons()) == 1
    with library_of(store) as library:
        assert library.lessons() == ()


def test_a_store_that_raises_what_it_should_not_takes_no_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Odd(MemoryStore):
        def read(self, session: str, after: int = 0) -> Iterator[StoredEvent]:
            raise ZeroDivisionError("a bug")

    learn_after(Odd(), "s1")
    assert "nothing was learned from session s1: a bug" in caplog.text
