"""What adapters, clocks, stores and subscribers of an embedding program may do, and must not harm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock
from codetape.engine import loop
from codetape.engine.ports import Lease, StoreUnusable
from codetape.engine.tape import Recorded, read
from codetape.states.guards import CRASHES
from codetape.states.job import Column, Sample
from codetape.states.session import Session
from codetape.states.values import Answer, LlmCall, RunSpec
from tests.support.sessions import HAPPY, ID, JOB, engine, play


def names(store: MemoryStore) -> list[str]:
    return [record.event.name for record in read(store, ID)]


def owner(store: MemoryStore) -> str | None:
    return store.sessions()[0].owner


# --- subscribers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", range(1, 7))
def test_a_subscriber_that_is_cancelled_interrupts_the_session(seq: int) -> None:
    def cancelled(recorded: Recorded, _: Session) -> None:
        if recorded.seq == seq:
            raise asyncio.CancelledError

    store = MemoryStore()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(play(HAPPY, store=store, on_event=cancelled))
    assert names(store)[-1] in ("paused", "tests_passed"), "what came in before it is kept"
    assert asyncio.run(engine(store, ScriptedLlm(HAPPY), FakeSandbox()).resume(ID)).done


# --- adapters -------------------------------------------------------------------------------------


class GivesUp(ScriptedLlm):
    """Something inside it was cancelled, and nobody outside."""

    async def complete(self, call: LlmCall) -> Answer:
        if call.kind == "code":
            raise asyncio.CancelledError
        return await super().complete(call)


def test_an_adapter_that_is_cancelled_from_inside_has_a_fault() -> None:
    store = MemoryStore()
    with pytest.raises(RuntimeError, match="cancelled from inside while it was to write_code"):
        asyncio.run(engine(store, GivesUp(HAPPY), FakeSandbox()).start(ID, JOB))
    assert names(store)[-2:] == ["planned", "paused"]


class OneFault(ScriptedLlm):
    """Answers constraints side by side, all but the first one that it is asked about."""

    async def complete(self, call: LlmCall) -> Answer:
        answer = await super().complete(call)
        if call.kind == "parse_constraint" and len(self.calls) == 1:
            raise ZeroDivisionError("a bug")
        return answer


def test_g6_answers_that_came_in_beside_a_fault_are_kept() -> None:
    table = Sample(
        name="readings",
        path="/x.csv",
        file="x.csv",
        description="",
        columns=(Column(name="value", type="float", nullable=True),),
    )
    words = ("value is positive", "value is small", "value is there")
    job = JOB.model_copy(update={"constraints": words, "samples": (table,)})
    llm, store = (
        OneFault({"parse_constraint": [{"column_name": "", "check_type": "none"}] * 3}),
        MemoryStore(),
    )
    with pytest.raises(ZeroDivisionError):
        asyncio.run(engine(store, llm, FakeSandbox()).start(ID, job))
    assert len(llm.calls) == 3, "nothing was asked after the fault"
    assert names(store)[2:] == ["constraint_parsed", "constraint_parsed", "paused"]


def test_j6_a_fault_that_comes_with_a_cancellation_does_not_take_the_pause() -> None:
    async def main() -> None:
        class Broken(FakeSandbox):
            async def run(self, spec: RunSpec):  # type: ignore[no-untyped-def]
                run.cancel()
                raise ZeroDivisionError("a bug")

        store = MemoryStore()
        run = asyncio.ensure_future(engine(store, ScriptedLlm(HAPPY), Broken()).start(ID, JOB))
        with pytest.raises(asyncio.CancelledError):
            await run
        assert names(store)[-1] == "paused"

    asyncio.run(main())


def test_g8_a_fault_of_an_adapter_is_not_the_end_of_a_process() -> None:
    """Its host is away for a while: the session is there when it comes back."""

    class Away(ScriptedLlm):
        async def complete(self, call: LlmCall) -> Answer:
            raise OSError("no route to host")

    store = MemoryStore()
    with pytest.raises(OSError, match="no route"):
        asyncio.run(engine(store, Away({}), FakeSandbox()).start(ID, JOB))
    for _ in range(2 * CRASHES):
        with pytest.raises(OSError, match="no route"):
            asyncio.run(engine(store, Away({}), FakeSandbox()).resume(ID))
    session = asyncio.run(engine(store, ScriptedLlm(HAPPY), FakeSandbox()).resume(ID))
    assert session.ending is not None
    assert session.ending.failure is None


class TimesOut(ScriptedLlm):
    async def complete(self, call: LlmCall) -> Answer:
        raise TimeoutError("the socket said nothing")


def test_a_time_limit_of_an_adapter_is_not_called_ours() -> None:
    session = asyncio.run(engine(MemoryStore(), TimesOut({}), FakeSandbox()).start(ID, JOB))
    assert session.ending is not None
    assert "no answer in time: the socket said nothing" in session.ending.reason


class SlowToStop(ScriptedLlm):
    """Takes its time to be cancelled."""

    asked: asyncio.Event
    stopping: asyncio.Event

    async def complete(self, call: LlmCall) -> Answer:
        try:
            self.asked.set()
            await asyncio.sleep(60)
        finally:
            self.stopping.set()
            await asyncio.sleep(60)
        raise AssertionError("it was not cancelled")


def test_who_is_cancelled_twice_gives_the_lease_back() -> None:
    async def main() -> None:
        llm = SlowToStop({})
        llm.asked, llm.stopping = asyncio.Event(), asyncio.Event()
        store = MemoryStore()
        run = asyncio.ensure_future(engine(store, llm, FakeSandbox()).start(ID, JOB))
        for moment in (llm.asked, llm.stopping):
            await moment.wait()
            run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert (names(store)[-1], owner(store)) == ("paused", None)

    asyncio.run(main())


# --- stores ---------------------------------------------------------------------------------------


class Locked(MemoryStore):
    """Cannot be written to renew or release a lease, the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[str] = []
        self.renewed = asyncio.Event()

    def renew(self, lease: Lease) -> None:
        self._try("renew")
        super().renew(lease)
        self.renewed.set()

    def release(self, lease: Lease) -> None:
        self._try("release")
        super().release(lease)

    def _try(self, name: str) -> None:
        self.tried.append(name)
        if self.tried.count(name) == 1:
            raise StoreUnusable("tapes.db", "it is locked")


def test_g13_a_sign_of_life_that_fails_is_given_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "HEARTBEAT", 0.0)

    class Waits(ScriptedLlm):
        async def complete(self, call: LlmCall) -> Answer:
            await store.renewed.wait()
            return await super().complete(call)

    store = Locked()
    assert asyncio.run(engine(store, Waits(HAPPY), FakeSandbox()).start(ID, JOB)).done
    assert "a sign of life could not be written" in caplog.text


def test_a_lease_that_cannot_be_given_back_takes_no_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Locked()
    assert asyncio.run(engine(store, ScriptedLlm(HAPPY), FakeSandbox()).start(ID, JOB)).done
    assert "a lease could not be given back" in caplog.text


# --- clocks ---------------------------------------------------------------------------------------


class Says(FixedClock):
    """Says what it is told to."""

    def __init__(self, said: Callable[[], object]) -> None:
        super().__init__()
        self._said = said

    def now(self) -> str:
        return self._said()  # type: ignore[return-value]


@pytest.mark.parametrize(
    "said", [None, 5, "", "yesterday", "2025-01-31T12:00:00", "2025-01-31T12:00:00+01:00", "\ud800"]
)
def test_a_time_that_is_none_is_refused_before_anything_is_paid(said: object) -> None:
    store, llm = MemoryStore(), ScriptedLlm(HAPPY)
    run = engine(store, llm, FakeSandbox(), clock=Says(lambda: said))
    with pytest.raises(ValueError, match="the clock says"):
        asyncio.run(run.start(ID, JOB))
    assert (llm.calls, store.sessions()) == ((), [])
