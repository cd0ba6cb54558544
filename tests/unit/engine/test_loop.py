"""The loop: order, overlap, cancellation, limits, crashes and what may not harm it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, broke, built, failed
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.system import FixedClock
from codetape.engine.boundary import Boundary
from codetape.engine.loop import Engine
from codetape.engine.ports import Lease, LeaseLost, Llm, SessionOwned
from codetape.engine.tape import Recorded, fold, read
from codetape.states.events import Cancelled, Noted, Paused, Resumed
from codetape.states.job import Budget, Job
from codetape.states.machine import State
from codetape.states.session import Session
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    FailureClass,
    ImageRef,
    ImageSpec,
    LlmCall,
)
from codetape.states.workflow import AUTOCODER
from tests.support.sessions import HAPPY, ID, JOB, ONE_REPAIR, RIGHT, TESTS, engine, play

WRONG_SUM = failed({"test_add": ("AssertionError", "assert -1 == 3")})


def test_the_happy_path_takes_three_calls_and_one_attempt() -> None:
    made = asyncio.run(play(HAPPY))
    assert made.path == [
        ("session_opened", "NeedsCode"),
        ("sandbox_ready", "NeedsCode"),
        ("planned", "NeedsCode"),
        ("code_written", "NeedsTests"),
        ("tests_written", "NeedsRebuild"),
        ("image_built", "Testing"),
        ("tests_passed", "Done"),
    ]
    assert made.session.totals.calls == 3
    assert made.session.attempts == 1


def test_without_a_plan_two_calls_are_enough() -> None:
    script = {"code": [RIGHT], "tests": [TESTS]}
    made = asyncio.run(play(script, job=JOB.model_copy(update={"plan": False})))
    assert made.session.ending is not None
    assert made.session.ending.failure is None
    assert made.session.totals.calls == 2


def test_a_logic_repair_costs_two_more_calls() -> None:
    made = asyncio.run(play(ONE_REPAIR, runs=[WRONG_SUM]))
    assert made.session.state is State.DONE
    assert made.session.attempts == 2
    assert made.session.totals.calls == 5


def test_the_live_session_is_the_fold_of_its_tape() -> None:
    seen: list[Session] = []
    made = asyncio.run(play(ONE_REPAIR, runs=[WRONG_SUM], on_event=lambda _, s: seen.append(s)))
    assert fold(AUTOCODER, ID, made.records) == made.session
    for number, session in enumerate(seen, 1):
        assert fold(AUTOCODER, ID, made.records[:number]) == session


def test_a15_a_missing_sandbox_ends_the_session_before_a_model_is_paid() -> None:
    made = asyncio.run(play(HAPPY, builds=[broke("no podman here", missing=True)]))
    assert made.path[-1] == ("sandbox_broke", "Done")
    assert made.session.totals.calls == 0
    assert made.session.ending is not None
    assert made.session.ending.failure is FailureClass.INFRASTRUCTURE
    assert "no podman here" in made.session.ending.reason


def test_g14_the_first_event_is_durable_before_anything_is_asked() -> None:
    class Watching(FakeSandbox):
        async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
            assert [record.event.name for record in read(store, ID)] == ["session_opened"]
            raise KeyboardInterrupt

    store = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(engine(store, ScriptedLlm(HAPPY), Watching()).start(ID, JOB))
    assert len(list(read(store, ID))) >= 1


class SlowBuilds(FakeSandbox):
    """Builds wait for `go`, so that a test decides what finishes first."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.begun = asyncio.Event(), asyncio.Event()
        self.started = self.cancelled = 0

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        if not spec.requirements:
            return built(spec)
        self.started += 1
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().build(spec)


class Hooked:
    """A model that runs something before it answers a kind of call."""

    def __init__(self, llm: Llm, kind: str, before: Callable[[], Awaitable[None]]) -> None:
        self._llm, self._kind, self._before = llm, kind, before

    async def complete(self, call: LlmCall) -> Answer:
        if call.kind == self._kind:
            await self._before()
        return await self._llm.complete(call)


def test_the_image_is_built_while_tests_are_written_and_survives_the_change_of_state() -> None:
    async def main() -> tuple[list[str], SlowBuilds]:
        sandbox, store = SlowBuilds(), MemoryStore()

        async def build_has_begun() -> None:
            await sandbox.begun.wait()
            asyncio.get_running_loop().call_later(0.01, sandbox.go.set)

        llm = Hooked(ScriptedLlm(HAPPY), "tests", build_has_begun)
        await engine(store, llm, sandbox).start(ID, JOB)
        return [record.event.name for record in read(store, ID)], sandbox

    names, sandbox = asyncio.run(main())
    assert names[-3:] == ["tests_written", "image_built", "tests_passed"]
    assert sandbox.started == 1
    assert sandbox.cancelled == 0


def test_an_image_that_is_ready_first_is_on_the_tape_first() -> None:
    async def main() -> list[tuple[str, str]]:
        sandbox, store, recorded = SlowBuilds(), MemoryStore(), asyncio.Event()

        async def image_is_built() -> None:
            sandbox.go.set()
            await recorded.wait()

        def watch(record: Recorded, _: Session) -> None:
            if record.event.name == "image_built":
                recorded.set()

        llm = Hooked(ScriptedLlm(HAPPY), "tests", image_is_built)
        await engine(store, llm, sandbox, on_event=watch).start(ID, JOB)
        return [(record.event.name, record.dest) for record in read(store, ID)]

    assert asyncio.run(main())[-3:] == [
        ("image_built", "NeedsTests"),
        ("tests_written", "Testing"),
        ("tests_passed", "Done"),
    ]


def test_what_is_no_longer_wanted_is_cancelled() -> None:
    """Cancelling the session ends the build that is in flight."""

    async def main() -> tuple[Session, SlowBuilds]:
        sandbox, store = SlowBuilds(), MemoryStore()
        running = engine(store, ScriptedLlm(HAPPY), sandbox)
        task = asyncio.ensure_future(running.start(ID, JOB))
        await sandbox.begun.wait()
        assert {flight.asked.request.name for flight in running.in_flight} >= {"build_image"}
        running.post(Cancelled(by="a test"))
        return await task, sandbox

    session, sandbox = asyncio.run(main())
    assert session.ending is not None
    assert session.ending.failure is FailureClass.CANCELLED
    assert sandbox.cancelled == 1


def test_a_note_reaches_the_next_prompt() -> None:
    async def main() -> ScriptedLlm:
        llm, store = ScriptedLlm(HAPPY), MemoryStore()
        running = engine(store, llm, FakeSandbox())
        running.post(Noted(text="use no loops"))
        await running.start(ID, JOB)
        return llm

    llm = asyncio.run(main())
    code = next(call for call in llm.calls if call.kind == "code")
    assert any("use no loops" in message.text for message in code.messages)


def test_a_pause_ends_the_run_and_resume_goes_on_without_paying_again() -> None:
    async def main() -> tuple[Session, ScriptedLlm, list[str]]:
        llm, store = ScriptedLlm(HAPPY), MemoryStore()

        def pause(record: Recorded, _: Session) -> None:
            if record.event.name == "code_written":
                first.post(Paused(by="a test"))

        first = engine(store, llm, SlowBuilds(), on_event=pause)
        paused = await first.start(ID, JOB)
        assert paused.paused
        assert not paused.done
        session = await engine(store, llm, FakeSandbox()).resume(ID)
        return session, llm, [record.event.name for record in read(store, ID)]

    session, llm, names = asyncio.run(main())
    assert session.ending is not None
    assert session.ending.failure is None
    assert names.count("planned") == names.count("code_written") == 1
    assert "resumed" in names
    assert [call.kind for call in llm.calls].count("code") == 1


@pytest.mark.parametrize("stop_at", range(1, 11))
def test_cancelling_the_task_at_any_event_leaves_a_session_that_can_be_resumed(
    stop_at: int,
) -> None:
    async def main() -> tuple[Session, int]:
        llm, store = ScriptedLlm(ONE_REPAIR), MemoryStore()
        sandbox = FakeSandbox(runs=[WRONG_SUM])

        def stop(record: Recorded, _: Session) -> None:
            if record.seq == stop_at:
                task.cancel()

        task = asyncio.ensure_future(engine(store, llm, sandbox, on_event=stop).start(ID, JOB))
        with pytest.raises(asyncio.CancelledError):
            await task
        session = await engine(store, llm, sandbox).resume(ID)
        assert fold(AUTOCODER, ID, read(store, ID)) == session
        return session, len(llm.calls)

    session, calls = asyncio.run(main())
    assert session.ending is not None
    assert session.ending.failure is None
    # A call that was cancelled on its way may be made again; one whose answer is there may not.
    assert session.totals.calls == 5
    assert calls <= 6


def test_a_subscriber_that_raises_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(record: Recorded, _: Session) -> None:
        raise RuntimeError("no display")

    with caplog.at_level(logging.WARNING, "codetape"):
        made = asyncio.run(play(HAPPY, on_event=fail))
    assert made.session.done
    assert "subscriber" in caplog.text


def test_a_session_that_somebody_runs_is_refused_by_the_name_of_its_owner() -> None:
    async def main() -> None:
        store = MemoryStore()
        await engine(store, ScriptedLlm(HAPPY), FakeSandbox()).start(ID, JOB)
        store.acquire(ID, "somebody@elsewhere")
        with pytest.raises(SessionOwned, match="somebody@elsewhere"):
            await engine(store, ScriptedLlm(HAPPY), FakeSandbox()).resume(ID)

    asyncio.run(main())


def test_resuming_a_session_that_is_done_changes_nothing() -> None:
    async def main() -> None:
        made = await play(HAPPY)
        before = made.records
        session = await engine(made.store, ScriptedLlm({}), FakeSandbox()).resume(ID)
        assert session == made.session
        assert tuple(read(made.store, ID)) == before

    asyncio.run(main())


def _retried(script: Mapping[str, Any], **changes: object) -> tuple[Session, FixedClock]:
    async def main() -> tuple[Session, FixedClock]:
        clock, store = FixedClock(step=0.0), MemoryStore()
        job = Job.model_validate(JOB.model_dump() | changes)
        running: Engine = engine(store, ScriptedLlm(script), FakeSandbox(), clock=clock)
        return await running.start(ID, job), clock

    return asyncio.run(main())


BUSY = CallFailure(reason="rate_limited", message="busy", retryable=True, retry_after=7.0)
LATE = CallFailure(reason="server_error", message="overloaded", retryable=True)
BAD = CallFailure(reason="bad_request", message="too long")


def test_a_call_that_may_succeed_later_waits_as_long_as_the_provider_asks() -> None:
    session, clock = _retried({**HAPPY, "code": [BUSY, BUSY, RIGHT]})
    assert session.ending is not None
    assert session.ending.failure is None
    assert clock.monotonic() == 14.0


def test_back_off_grows_and_ends() -> None:
    session, clock = _retried({**HAPPY, "code": [LATE] * 9}, call_retries=4)
    assert session.ending is not None
    assert session.ending.failure is FailureClass.MODEL
    assert session.call_failures == 5
    assert 0.75 * 15 <= clock.monotonic() <= 15


def test_a_permanent_error_is_not_repeated() -> None:
    session, clock = _retried({**HAPPY, "code": [BAD, RIGHT]})
    assert session.call_failures == 1
    assert session.ending is not None
    assert session.ending.reason == "the model gave no answer: too long"
    assert clock.monotonic() == 0.0


def test_another_model_takes_over_where_one_gives_no_answer() -> None:
    async def main() -> tuple[Session, ScriptedLlm]:
        script: dict[str, Any] = {**HAPPY, "code": [BAD, LATE, LATE, RIGHT]}
        llm = ScriptedLlm(script)
        job = JOB.model_copy(
            update={
                "model": "first",
                "models": {"tests": "tester"},
                "fallback_models": ("second", "third"),
                "call_retries": 1,
            }
        )
        return await engine(MemoryStore(), llm, FakeSandbox()).start(ID, job), llm

    session, llm = asyncio.run(main())
    assert session.ending is not None
    assert session.ending.failure is None
    asked = [(call.kind, call.model) for call in llm.calls]
    assert asked == [
        ("plan", "first"),
        ("code", "first"),
        ("code", "second"),
        ("code", "second"),
        ("code", "third"),
        ("tests", "third"),
    ]


def test_when_the_last_model_is_given_up_the_session_ends() -> None:
    job = JOB.model_copy(update={"fallback_models": ("second",)})
    made = asyncio.run(play({**HAPPY, "code": [BAD, BAD]}, job=job))
    assert made.session.ending is not None
    assert made.session.ending.failure is FailureClass.MODEL
    assert made.path[-2:] == [("call_failed", "NeedsCode"), ("call_failed", "Done")]


def test_a_model_that_never_answers_is_late() -> None:
    class Silent:
        async def complete(self, call: LlmCall) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

    async def main() -> Session:
        job = JOB.model_copy(update={"call_seconds": 0.01, "call_retries": 1})
        return await engine(MemoryStore(), Silent(), FakeSandbox()).start(ID, job)

    session = asyncio.run(main())
    assert session.call_failure is not None
    assert session.call_failure.reason == "timeout"
    assert session.call_failures == 2


def test_a_spent_budget_pauses_and_a_larger_one_goes_on() -> None:
    async def main() -> None:
        llm, store = ScriptedLlm(HAPPY), MemoryStore()
        job = JOB.model_copy(update={"budget": Budget(calls=2)})
        session = await engine(store, llm, FakeSandbox()).start(ID, job)
        reason = "the budget of 2 calls does not allow the next call (2 spent, up to 1 next)"
        assert session.paused == reason
        again = await engine(store, llm, FakeSandbox()).resume(ID)
        assert again.paused == session.paused
        done = await engine(store, llm, FakeSandbox()).resume(ID, Resumed(budget=Budget(calls=3)))
        assert done.ending is not None
        assert done.ending.failure is None

    asyncio.run(main())


@pytest.mark.parametrize("limit", ["calls", "tokens", "usd", "seconds"])
def test_a_budget_of_nothing_allows_no_call(limit: str) -> None:
    job = JOB.model_copy(update={"budget": Budget.model_validate({limit: 0})})
    made = asyncio.run(play(HAPPY, job=job))
    assert made.session.paused
    assert made.session.totals.calls == 0


class Robbable(MemoryStore):
    """A store that shows the lease it gave."""

    def create(self, session: str, workflow: str, name: str, owner: str) -> Lease:
        self.lease = super().create(session, workflow, name, owner)
        return self.lease


def test_a_lost_lease_stops_the_engine() -> None:
    """Somebody took the session over: nothing more is written by the one who lost it."""

    async def main() -> None:
        store = Robbable()

        def robbed(record: Recorded, _: Session) -> None:
            if record.event.name == "planned":
                store.release(store.lease)
                store.acquire(ID, "a thief")

        running = engine(store, ScriptedLlm(HAPPY), FakeSandbox(), on_event=robbed)
        with pytest.raises(LeaseLost):
            await running.start(ID, JOB)
        assert [r.event.name for r in read(store, ID)][-1] == "planned"

    asyncio.run(main())


def test_secrets_of_the_job_are_on_no_tape() -> None:
    async def main() -> MemoryStore:
        store = MemoryStore()
        canary = "canary-4f1a"
        script = {**HAPPY, "plan": [{"description": f"use {canary}", "approach": canary}]}
        job = JOB.model_copy(update={"prompt": f"Log in with {canary}."})
        running = engine(
            store,
            ScriptedLlm(script),
            FakeSandbox(),
            boundary=Boundary({"SERVICE_KEY": canary}),
        )
        await running.start(ID, job)
        return store

    store = asyncio.run(main())
    texts = [row.data for row in store.read(ID)]
    assert not any("canary" in text for text in texts)
    assert any("<secret SERVICE_KEY>" in text for text in texts)


def test_an_adapter_that_has_a_fault_is_not_an_outcome() -> None:
    class Faulty:
        async def complete(self, call: LlmCall) -> Answer:
            raise ZeroDivisionError("a bug")

    async def main() -> None:
        store = MemoryStore()
        with pytest.raises(ZeroDivisionError):
            await engine(store, Faulty(), FakeSandbox()).start(ID, JOB)
        llm = ScriptedLlm(HAPPY)
        assert (await engine(store, llm, FakeSandbox()).resume(ID)).done

    asyncio.run(main())


def test_a_dry_script_ends_the_session_with_a_clear_reason() -> None:
    made = asyncio.run(play({"plan": [], "code": [RIGHT]}))
    assert made.session.ending is not None
    assert made.session.ending.failure is FailureClass.MODEL
    assert "plan" in made.session.ending.reason
