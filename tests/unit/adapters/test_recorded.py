"""What was recorded is found by what was asked, and nothing is made up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest

from codetape.adapters.llm.recorded import RecordedLlm
from codetape.adapters.recordings import Recording, differing, recordings
from codetape.adapters.sandbox.recorded import RecordedSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.engine.ports import DamagedTape, Llm, LlmError, SandboxBroken
from codetape.states.values import (
    Answer,
    BuildFailure,
    ImageRef,
    ImageSpec,
    LlmCall,
    Message,
    SandboxFailure,
)
from codetape.testing.llms import CALL, LlmContract, Silence, Turn
from tests.support.sessions import ID
from tests.unit.replay.sessions import LONG, played


class TestRecordedLlm(LlmContract):
    gaps: ClassVar[dict[str, str]] = {
        "test_cancelling_the_task_ends_the_call": "a tape answers at once: there is no waiting",
    }

    @contextmanager
    def serving(self, *turns: Turn) -> Iterator[Llm]:
        plain = LlmCall(kind="plan", model="gpt-4.1", messages=CALL.messages)
        yield RecordedLlm(
            Recording(seq, call, turn)
            for call in (CALL, plain)
            for seq, turn in enumerate(turns, 1)
            if not isinstance(turn, Silence)
        )


def asking(text: str, kind: str = "code") -> LlmCall:
    return LlmCall(kind=kind, model="m", messages=(Message(role="user", parts=(text,)),))


def answered(llm: Llm, call: LlmCall) -> str | None:
    return asyncio.run(llm.complete(call)).text


def failure(llm: Llm, call: LlmCall) -> str:
    with pytest.raises(LlmError) as caught:
        answered(llm, call)
    assert caught.value.failure.reason == "script_dry"
    assert not caught.value.failure.retryable
    return caught.value.failure.message


def recorded(*texts: str) -> RecordedLlm:
    """A model that was asked these texts, at events 1, 2, …, and answered with them in capitals."""
    return RecordedLlm(
        Recording(seq, asking(text), Answer(text=text.upper())) for seq, text in enumerate(texts, 1)
    )


def test_h5_calls_in_another_order_get_their_own_answers_and_are_told() -> None:
    llm = recorded("a", "b", "c")
    assert [answered(llm, asking(text)) for text in "bac"] == ["B", "A", "C"]
    assert [recording.seq for recording in llm.recordings.out_of_order] == [1]


def test_h5_an_equal_call_gets_the_next_answer_and_not_the_first_one_again() -> None:
    llm = RecordedLlm(Recording(n, asking("a"), Answer(text=str(n))) for n in (3, 7))
    assert [answered(llm, asking("a")) for _ in range(2)] == ["3", "7"]
    assert failure(llm, asking("a")) == "this code call was recorded at event 3, 7, and used"


def test_h7_a_call_that_was_not_recorded_names_the_nearest() -> None:
    llm = recorded("one\ntwo\nthree", "one\ntwo\nfour", "five", "one\nsix")
    assert failure(llm, asking("one\ntwo\nseven")) == (
        "this code call was not recorded: event 1 differs in 1 line; "
        "event 2 differs in 1 line; event 4 differs in 2 lines"
    )
    assert failure(llm, asking("one", kind="plan")) == "no plan call was recorded"
    assert llm.recordings.left_over() == (1, 2, 3, 4)


def test_h7_a_build_that_was_not_recorded_names_the_nearest() -> None:
    specs = [ImageSpec(base="x", requirements=names) for names in (("numpy",), ("numpy", "scipy"))]
    refs = [ImageRef(ref=str(n), spec_key=spec.key) for n, spec in enumerate(specs)]
    sandbox = RecordedSandbox(map(Recording, (1, 2), specs, refs))
    assert asyncio.run(sandbox.build(specs[1])) == refs[1]
    with pytest.raises(SandboxBroken, match="event 1 differs in 1 line") as caught:
        asyncio.run(sandbox.build(ImageSpec(base="x", requirements=("pandas",))))
    assert caught.value.failure.missing


def test_failures_come_back_as_they_were() -> None:
    spec = ImageSpec(base="x")
    broke = SandboxFailure(message="gone")
    failed = BuildFailure(cause="disk", message="full")
    sandbox = RecordedSandbox([Recording(1, spec, broke), Recording(2, spec, failed)])
    with pytest.raises(SandboxBroken) as caught:
        asyncio.run(sandbox.build(spec))
    assert caught.value.failure == broke
    assert asyncio.run(sandbox.build(spec)) == failed
    asyncio.run(sandbox.close())


def test_a_tape_is_recordings_of_all_that_was_asked() -> None:
    store = MemoryStore()
    played(LONG, store)
    kinds = [recording.kind for recording in recordings(store, ID)]
    assert kinds.count("build") == 2
    assert kinds.count("run of tests") == 3
    assert kinds.count("code call") == 3
    assert len(kinds) == sum(row.request_key is not None for row in store.read(ID))


def test_what_was_asked_and_is_gone_is_damage_of_its_event() -> None:
    store = MemoryStore()
    played(LONG, store)
    first = next(row for row in store.read(ID) if row.request_key)
    del store._blobs[str(first.request_key)]
    with pytest.raises(DamagedTape, match=f"at event {first.seq}: blob .* is gone"):
        list(recordings(store, ID))


def test_lines_are_compared_whatever_their_order() -> None:
    assert differing(asking("a\nb"), asking("b\na")) == 0
    assert differing(asking("a\nb\nc"), asking("b")) == 2
