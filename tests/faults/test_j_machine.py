"""Faults of state machines and of asynchronous loops that drive them."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox, failed
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.ports import EventStore, SessionOwned, StoreError
from codetape.engine.tape import Recorded, fold, read
from codetape.states.events import Cancelled, Noted, Paused
from codetape.states.machine import Machine, Row, State
from codetape.states.session import Session
from codetape.states.values import FailureClass, ImageSpec, RunOutcome, RunSpec
from codetape.states.workflow import AUTOCODER
from tests.support.sessions import HAPPY, ID, JOB, ONE_REPAIR, engine, play

FAILS = failed({"test_add": ("AssertionError", "assert -1 == 3")})


def names(store: EventStore, session: str = ID) -> list[str]:
    return [record.event.name for record in read(store, session)]


# --- J1: what comes from outside, and what has come in --------------------------------------------


class Told(FakeSandbox):
    """While it runs the tests, somebody cancels; the run ends in the same turn of the loop."""

    async def run(self, spec: RunSpec) -> RunOutcome:
        self.say()
        return await super().run(spec)

    def say(self) -> None:
        raise NotImplementedError


def test_j1_an_outcome_that_has_come_in_goes_before_what_somebody_says() -> None:
    store, sandbox = MemoryStore(), Told()
    run = engine(store, ScriptedLlm(HAPPY), sandbox)
    sandbox.say = lambda: run.post(Noted(text="Hurry."))  # type: ignore[method-assign]
    asyncio.run(run.start(ID, JOB))
    assert names(store)[-1] == "tests_passed"
    assert "noted" not in names(store), "the session was done when its turn came"


def test_j1_a_cancellation_during_a_run_ends_the_session_in_the_state_it_was_in() -> None:
    class Waiting(FakeSandbox):
        async def run(self, spec: RunSpec) -> RunOutcome:
            run.post(Cancelled(by="an operator"))
            await asyncio.sleep(60)
            raise AssertionError("it was not cancelled")

    store = MemoryStore()
    run = engine(store, ScriptedLlm(HAPPY), Waiting())
    session = asyncio.run(run.start(ID, JOB))
    last = list(read(store, ID))[-1]
    assert (last.event.name, last.source, last.dest) == ("cancelled", "Testing", "Done")
    assert session.ending is not None
    assert session.ending.failure is FailureClass.CANCELLED


# --- J2: many at once -----------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EventStore:
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "t.db")


def test_j2_of_a_hundred_that_start_a_session_one_does(store: EventStore) -> None:
    async def main() -> list[Session | BaseException]:
        starts = (
            engine(store, ScriptedLlm(HAPPY), FakeSandbox(), owner=f"starter {n}").start(ID, JOB)
            for n in range(100)
        )
        return await asyncio.gather(*starts, return_exceptions=True)

    ended = asyncio.run(main())
    refused = [one for one in ended if isinstance(one, BaseException)]
    assert len(refused) == 99
    assert all(isinstance(one, StoreError) for one in refused)
    assert names(store).count("session_opened") == names(store).count("tests_passed") == 1


def test_j2_of_many_that_resume_a_session_one_does(store: EventStore) -> None:
    def pause(record: Recorded, _: Session) -> None:
        if record.event.name == "code_written":
            first.post(Paused(by="a test"))

    first = engine(store, ScriptedLlm(HAPPY), FakeSandbox(), on_event=pause)
    asyncio.run(first.start(ID, JOB))

    async def main() -> list[Session | BaseException]:
        runs = (
            engine(store, ScriptedLlm(HAPPY), FakeSandbox(), owner=f"resumer {n}").resume(ID)
            for n in range(50)
        )
        return await asyncio.gather(*runs, return_exceptions=True)

    ended = asyncio.run(main())
    assert sum(isinstance(one, Session) for one in ended) == 1
    assert sum(isinstance(one, SessionOwned) for one in ended) == 49
    assert names(store).count("resumed") == names(store).count("tests_passed") == 1


# --- J3: after something was cancelled ------------------------------------------------------------


def test_j3_after_a_cancelled_request_the_next_event_works() -> None:
    """A build in flight is not wanted any more; what follows is processed all the same."""

    class Slow(FakeSandbox):
        cancelled = 0

        async def build(self, spec: ImageSpec):  # type: ignore[no-untyped-def]
            if "pytest" in spec.requirements and not self.cancelled:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    Slow.cancelled += 1
                    raise
            return await super().build(spec)

    importing = {"test_code": "import yaml\n" + HAPPY["tests"][0]["test_code"]}
    store = MemoryStore()
    run = engine(store, ScriptedLlm({**HAPPY, "tests": [importing]}), Slow())
    session = asyncio.run(run.start(ID, JOB))
    assert Slow.cancelled == 1
    assert session.ending is not None
    assert session.ending.failure is None


def test_j3_after_a_cancelled_run_the_same_engine_goes_on() -> None:
    async def main() -> Session:
        def stop(record: Recorded, _: Session) -> None:
            if record.seq == 4:
                task.cancel()

        run = engine(store, ScriptedLlm(HAPPY), FakeSandbox(), on_event=stop)
        task = asyncio.ensure_future(run.start(ID, JOB))
        with pytest.raises(asyncio.CancelledError):
            await task
        return await run.resume(ID)

    store = MemoryStore()
    assert asyncio.run(main()).done
    assert names(store)[-1] == "tests_passed"


# --- J4: machines are never pickled ---------------------------------------------------------------

REBUILT = """
import sys
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.tape import fold, read
from codetape.states.workflow import AUTOCODER

store = SqliteStore(sys.argv[1])
session = fold(AUTOCODER, sys.argv[2], read(store, sys.argv[2]))
print(session.state, session.seq, session.ending.reason)
"""


def test_j4_a_child_process_rebuilds_the_session_from_its_tape(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    store = SqliteStore(path)
    made = asyncio.run(play(ONE_REPAIR, runs=[FAILS], store=store))
    store.close()
    command = [sys.executable, "-c", REBUILT, str(path), ID]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == f"Done {made.session.seq} the tests passed\n"


def test_j4_a_machine_is_not_pickled_and_a_session_needs_none() -> None:
    made = asyncio.run(play(HAPPY))
    assert pickle.loads(pickle.dumps(made.session)) == made.session
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(AUTOCODER.machine)


def _state_in_child(events: list[str]) -> str:
    state = State.NEEDS_CODE
    for event in events:
        state = AUTOCODER.machine.next_state("s", state, event, AUTOCODER.blank("s"))
    return str(state)


def test_j4_a_forked_child_has_a_machine_that_works() -> None:
    assert _state_in_child(["planned"]) == "NeedsCode"
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_state_in_child, (["code_written"],)) == "NeedsTests"


# --- J5: two machines -----------------------------------------------------------------------------


def test_j5_two_machines_of_one_class_know_nothing_of_each_other() -> None:
    asked: list[str] = []

    def of(name: str):  # type: ignore[no-untyped-def]
        def guard(_: Session) -> bool:
            asked.append(name)
            return True

        return guard

    def machine(name: str, dest: State) -> Machine:
        row = Row("planned", State.NEEDS_CODE, dest, (of(name),))
        return Machine((row, Row("planned", State.NEEDS_CODE, State.DONE)))

    one, other = machine("one", State.TESTING), machine("other", State.NEEDS_TESTS)
    for _ in range(3):
        assert one.next_state("s", State.NEEDS_CODE, "planned", None) is State.TESTING
        assert asked.pop() == "one"
        assert other.next_state("s", State.NEEDS_CODE, "planned", None) is State.NEEDS_TESTS
        assert asked.pop() == "other"
    assert asked == []


def test_j5_two_engines_side_by_side_do_not_meet() -> None:
    async def main() -> tuple[Session, Session]:
        stores = MemoryStore(), MemoryStore()
        return await asyncio.gather(
            engine(stores[0], ScriptedLlm(HAPPY), FakeSandbox()).start("one", JOB),
            engine(stores[1], ScriptedLlm(ONE_REPAIR), FakeSandbox(runs=[FAILS])).start(
                "other", JOB
            ),
        )

    one, other = asyncio.run(main())
    assert (one.id, one.attempts) == ("one", 1)
    assert (other.id, other.attempts) == ("other", 2)


def test_j5_threads_share_a_machine_and_no_state() -> None:
    start = Barrier(8)

    def walk(number: int) -> list[str]:
        start.wait()
        event = ("planned", "tests_passed")[number % 2]
        source = (State.NEEDS_CODE, State.TESTING)[number % 2]
        blank = AUTOCODER.blank("s")
        return [str(AUTOCODER.machine.next_state("s", source, event, blank)) for _ in range(200)]

    with ThreadPoolExecutor(8) as pool:
        walked = list(pool.map(walk, range(8)))
    assert [set(states) for states in walked] == [{"NeedsCode"}, {"Done"}] * 4


# --- J6: a cancellation leaves a record -----------------------------------------------------------


@pytest.mark.parametrize("turn", range(1, 40))
def test_j6_a_cancellation_at_any_await_is_on_the_tape_and_is_raised(turn: int) -> None:
    """The task is cancelled after so many turns of the event loop, wherever it waits then."""

    async def main() -> tuple[MemoryStore, bool]:
        store = MemoryStore()
        sandbox = FakeSandbox(runs=[FAILS])
        task = asyncio.ensure_future(engine(store, ScriptedLlm(ONE_REPAIR), sandbox).start(ID, JOB))
        for _ in range(turn):
            await asyncio.sleep(0)
        ended = task.done()
        task.cancel()
        (raised,) = await asyncio.gather(task, return_exceptions=True)
        assert ended or isinstance(raised, asyncio.CancelledError)
        return store, ended

    store, ended = asyncio.run(main())
    if not store.sessions():
        return  # it was cancelled before it was begun
    session = fold(AUTOCODER, ID, read(store, ID))
    assert session.done or names(store)[-1] == "paused"
    assert session.done or not ended
    assert store.acquire(ID, "another"), "nobody holds it any more"
