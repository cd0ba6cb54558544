"""Faults of crashes and of going on after them. Others stand beside the tests of the loop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, broke
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.adapters.system import FixedClock
from codetape.cli.stores import find_session
from codetape.engine import codec
from codetape.engine.loop import Engine
from codetape.engine.ports import DamagedTape, StoreError
from codetape.engine.tape import Recorded, read
from codetape.halflive import half_live
from codetape.replay.compare import compare
from codetape.replay.imports import tape_of
from codetape.replay.reading import open_intact, open_tape
from codetape.replay.replayer import replay
from codetape.states import guards
from codetape.states.events import Noted, Resumed, SandboxBroke
from codetape.states.job import Budget
from codetape.states.machine import Machine
from codetape.states.session import Ending, Session
from codetape.states.values import Answer, FailureClass, LlmCall, RunOutcome, RunSpec
from codetape.states.workflow import AUTOCODER
from tests.support.forks import forked, resumed
from tests.support.sessions import HAPPY, ID, JOB, ONE_REPAIR, Made, engine, play
from tests.unit.replay.sessions import LONG, fails, played


class Crash(BaseException):
    """The process ends here: nothing after it happens."""


def crashing(seq: int) -> Callable[[Recorded, Session], None]:
    def on_event(recorded: Recorded, _: Session) -> None:
        if recorded.seq == seq:
            raise Crash

    return on_event


def crashed(store: MemoryStore, seq: int, llm: ScriptedLlm, sandbox: FakeSandbox) -> None:
    """Begin a session or go on with it, until event `seq` is on the tape."""
    run = engine(store, llm, sandbox, on_event=crashing(seq))
    known = [row.id for row in store.sessions()]
    with pytest.raises(Crash):
        asyncio.run(run.resume(ID) if ID in known else run.start(ID, JOB))


@pytest.mark.parametrize("lost", ["event", "text"])
def test_g3_what_comes_before_a_gap_can_be_read(lost: str) -> None:
    store = MemoryStore()
    played(LONG, store)
    row = next(row for row in store.read(ID) if row.name == "code_written")
    if lost == "event":
        del store._tapes[ID][row.seq - 1]
    else:
        del store._blobs[_blob_of(row.data)]
    with pytest.raises(DamagedTape, match=f"event {row.seq}: "):
        open_tape(store, ID)
    intact, fault = open_intact(store, ID)
    assert isinstance(fault, DamagedTape)
    assert (len(intact), fault.seq) == (row.seq - 1, row.seq)
    assert intact[-1].session.state == intact[-1].state


def _blob_of(data: str) -> str:
    return data.partition('{"$blob":"')[2][:64]


def test_g5_an_approval_is_used_once() -> None:
    """The budget is raised, and is spent again: going on without a new one is no approval."""
    store = MemoryStore()
    llm, sandbox = ScriptedLlm(HAPPY), FakeSandbox()
    run = engine(store, llm, sandbox)
    paused = asyncio.run(run.start(ID, JOB.model_copy(update={"budget": Budget(calls=1)})))
    assert paused.paused
    paused = asyncio.run(run.resume(ID, Resumed(budget=Budget(calls=2))))
    assert (paused.done, len(llm.calls)) == (False, 2)
    for _ in range(2):
        paused = asyncio.run(run.resume(ID))
        assert paused.paused
        assert len(llm.calls) == 2
    assert asyncio.run(run.resume(ID, Resumed(budget=Budget()))).done


def test_g6_what_was_finished_beside_a_step_that_failed_is_not_done_again() -> None:
    """The image was built while the tests were written, and that is where the process ended."""

    class Waiting(ScriptedLlm):
        async def complete(self, call: LlmCall) -> Answer:
            if call.kind == "tests":
                await asyncio.sleep(60)
            return await super().complete(call)

    script = {**HAPPY, "code": [{**HAPPY["code"][0], "packages": ["numpy"]}]}
    store, sandbox = MemoryStore(), FakeSandbox()
    built = next(n for n in range(4, 9) if _crashed_at(store := MemoryStore(), n, Waiting(script)))
    assert [r.event.name for r in read(store, ID)][-1] == "image_built"
    assert built == 5
    after = asyncio.run(engine(store, ScriptedLlm({**script, "plan": []}), sandbox).resume(ID))
    assert after.done
    assert sandbox.specs == []


def _crashed_at(store: MemoryStore, seq: int, llm: ScriptedLlm) -> bool:
    """True if the image was what event `seq` told of."""
    crashed(store, seq, llm, FakeSandbox())
    return [record.event.name for record in read(store, ID)][-1] == "image_built"


def test_g7_what_has_only_begun_hides_nothing() -> None:
    """Forks and sessions of processes that were killed at once: the last one is the one with events."""
    store = MemoryStore()
    played(LONG, store)
    for n in range(3):
        store.fork(f"fork{n}", ID, 12, "somebody who is gone")
        store.create(f"new{n}", "autocoder", "", "somebody who is gone")
    assert [row.id for row in store.sessions()] == [ID]
    assert find_session(store, "last") == ID


def test_g8_attempts_count_across_crashes() -> None:
    """The sandbox breaks each time, and the process ends after each time: it is not tried for ever."""
    store = MemoryStore()
    job = JOB.model_copy(update={"sandbox_retries": 2})
    runs = 0
    for _ in range(9):
        sandbox = FakeSandbox(runs=[broke("the host went down")])
        seen: list[str] = []

        def on_event(recorded: Recorded, _: Session, seen: list[str] = seen) -> None:
            seen.append(recorded.event.name)
            if isinstance(recorded.event, SandboxBroke):
                raise Crash

        run = engine(store, ScriptedLlm(HAPPY), sandbox, on_event=on_event)
        try:
            after = asyncio.run(run.resume(ID) if runs else run.start(ID, job))
        except Crash:
            runs += len(sandbox.runs)
        else:
            break
    assert runs == 1 + job.sandbox_retries
    assert after.ending
    assert after.ending.failure is FailureClass.INFRASTRUCTURE


def dying(store: MemoryStore, session: str = ID) -> FakeSandbox:
    """Begin a session, or go on with it, in a process that its first run brings down."""

    class Deadly(FakeSandbox):
        async def run(self, spec: RunSpec) -> RunOutcome:
            self.runs.append(spec)
            raise Crash

    sandbox = Deadly()
    run = engine(store, ScriptedLlm(HAPPY), sandbox)
    known = session in [row.id for row in store.sessions()]
    with contextlib.suppress(Crash):
        asyncio.run(run.resume(session) if known else run.start(session, JOB))
    return sandbox


def test_g8_a_run_that_always_brings_down_the_host_is_not_tried_for_ever() -> None:
    store = MemoryStore()
    died = [dying(store) for _ in range(guards.CRASHES)]
    assert [len(sandbox.runs) for sandbox in died] == [1] * guards.CRASHES
    assert dying(store).runs == [], "it is the end, and it is said before anything runs"
    after = open_tape(store, ID)[-1].session
    assert after.ending
    assert after.ending.failure is FailureClass.INFRASTRUCTURE
    assert "5 times in a row" in after.ending.reason
    assert replay(store, ID).identical


def test_g8_what_came_to_an_end_is_forgiven_and_a_fork_may_try_again() -> None:
    store = MemoryStore()
    for _ in range(guards.CRASHES):
        dying(store)
    before = open_tape(store, ID)
    assert resumed(store, forked(store, len(before)).id, HAPPY).session.ending == Ending(
        None, "the tests passed"
    )
    assert before[-1].session.crashes == guards.CRASHES - 1
    assert open_tape(store, "fork00000001")[-1].session.crashes == 0


def test_a_crash_is_no_difference_between_two_runs() -> None:
    store, whole = MemoryStore(), MemoryStore()
    dying(store)
    asyncio.run(engine(store, ScriptedLlm(HAPPY), FakeSandbox()).resume(ID))
    asyncio.run(engine(whole, ScriptedLlm(HAPPY), FakeSandbox()).start(ID, JOB))
    crashed, other = open_tape(store, ID), open_tape(whole, ID)
    assert [step.event.name for step in crashed if step.tells_of_a_crash] == ["resumed"]
    assert compare(crashed, other).parting is None
    again, _ = asyncio.run(half_live(crashed, "sandbox", sandbox=FakeSandbox()))
    assert compare(again, other).parting is None


def test_g8_rules_that_know_no_crash_go_on_without_being_told() -> None:
    table = [row for row in AUTOCODER.machine.table if row.event != "resumed"]
    rules = dataclasses.replace(AUTOCODER, machine=Machine(table))
    store = MemoryStore()
    dying(store)
    run = Engine(
        rules, store=store, llm=ScriptedLlm(HAPPY), sandbox=FakeSandbox(), clock=FixedClock()
    )
    assert asyncio.run(run.resume(ID)).ending == Ending(None, "the tests passed")


def test_g8_a_pause_is_no_crash() -> None:
    store = MemoryStore()
    run = engine(store, ScriptedLlm(HAPPY), FakeSandbox())
    asyncio.run(run.start(ID, JOB.model_copy(update={"budget": Budget(calls=1)})))
    for _ in range(2 * guards.CRASHES):
        assert asyncio.run(run.resume(ID)).crashes == 0


@pytest.mark.parametrize("seq", range(1, 11))
def test_g10_totals_are_of_the_whole_session(seq: int) -> None:
    whole = asyncio.run(play(ONE_REPAIR, runs=[fails("test_add")])).session
    store = MemoryStore()
    llm, sandbox = ScriptedLlm(ONE_REPAIR), FakeSandbox(runs=[fails("test_add")])
    crashed(store, seq, llm, sandbox)
    after = asyncio.run(engine(store, llm, sandbox).resume(ID))
    assert after.totals == whole.totals
    assert after.attempts == whole.attempts


def test_g11_an_old_tape_is_gone_on_with_by_a_new_version(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    llm, sandbox = ScriptedLlm(HAPPY), FakeSandbox()
    run = engine(store, llm, sandbox, on_event=crashing(4))
    run.post(Noted(text="Mind the sign."))
    with pytest.raises(Crash):
        asyncio.run(run.start(ID, JOB))
    before = list(store.read(ID))
    old = next(row for row in before if row.name == "noted")
    assert old.version == 1

    def upcast_noted_v1_v2(data: dict[str, Any]) -> dict[str, Any]:
        return {"text": data["text"].upper()}

    monkeypatch.setattr(Noted, "version", 2)
    monkeypatch.setitem(codec.UPCASTS, ("noted", 1), upcast_noted_v1_v2)
    run = engine(store, llm, sandbox)
    run.post(Noted(text="and the zero"))
    after = asyncio.run(run.resume(ID))
    rows = list(store.read(ID))
    assert rows[: len(before)] == before
    assert [row.version for row in rows if row.name == "noted"] == [1, 2]
    assert after.notes == ("MIND THE SIGN.", "and the zero")
    assert after.done


@pytest.mark.parametrize("name", ["", " ", "\n"])
def test_g12_an_empty_id_recovers_nothing(name: str) -> None:
    store = MemoryStore()
    asyncio.run(play(HAPPY, store=store))
    run = engine(store, ScriptedLlm(HAPPY), FakeSandbox())
    for work in (lambda: run.resume(name), lambda: run.start(name, JOB)):
        _refused(work)
    with pytest.raises(StoreError):
        find_session(store, name)
    assert [row.id for row in store.sessions()] == [ID]


def _refused(work: Callable[[], Awaitable[Session]]) -> None:
    async def awaited() -> None:
        await work()

    with pytest.raises(StoreError):
        asyncio.run(awaited())


def test_g15_what_a_fork_carries_on_is_not_stored_again(tmp_path: Path) -> None:
    """Three forks of a session with a megabyte of output are not four megabytes."""
    path = tmp_path / "tape.db"
    noise = random.Random(1).randbytes(500_000).hex()
    with closing(SqliteStore(path, filesystem=lambda _: "ext4")) as store:
        run = engine(store, ScriptedLlm(HAPPY), FakeSandbox())
        run.post(Noted(text=noise))
        asyncio.run(run.start(ID, JOB))
        store.close()
        before = path.stat().st_size
        for n in range(3):
            forked(store, 5, id=f"fork{n}")
            made: Made = resumed(store, f"fork{n}", HAPPY)
            assert made.session.notes == (noise,)
        store.close()
        assert path.stat().st_size < 1.5 * before
        assert len(tape_of(store, "fork2")) > 5
