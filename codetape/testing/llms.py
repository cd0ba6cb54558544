"""The contract of `Llm`, as tests. An adapter's author subclasses `LlmContract`:

class TestMyLlm(LlmContract):
    @contextmanager
    def serving(self, *turns):
        with a_provider_that_does(turns) as provider:
            yield MyLlm(provider.address)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import ClassVar, TypeVar

import pytest
from pydantic import JsonValue

from codetape.engine.ports import Llm, LlmError
from codetape.states.values import Answer, CallFailure, LlmCall, Message, Usage

T = TypeVar("T")

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"test_code": {"type": "string"}},
    "required": ["test_code"],
    "additionalProperties": False,
}
CALL = LlmCall(
    kind="tests",
    model="gpt-4.1",
    messages=(
        Message(role="system", parts=("You write tests.", "Answer in JSON.")),
        Message(role="user", parts=("Add two numbers.",)),
    ),
    answer_schema=json.dumps(SCHEMA),
    parameters={"temperature": 0.5},
)
TEXTS = (
    '{"test_code": "assert True"}',
    "no JSON",
    "  spaces around \n\n",
    "```python\nprint('fenced')\n```\nand prose",
    "\U0001f9ea\u00e9\u200b\x00\u202e e\u0301\U0010ffff",
    "\ud83c half of an emoji",
    "line\r\nends\r",
    "x" * 20_000,
)
FINISH_REASONS = ("stop", "length", "content_filter")
FAILURES = (
    CallFailure(reason="rate_limited", message="slow down", retryable=True, retry_after=7.0),
    CallFailure(reason="rate_limited", message="slow down", retryable=True),
    CallFailure(reason="server_error", message="overloaded", retryable=True),
    CallFailure(reason="connection", message="the connection was cut", retryable=True),
    CallFailure(reason="auth", message="wrong key"),
    CallFailure(reason="not_found", message="no such model"),
    CallFailure(reason="bad_request", message="the input is too long"),
)


class Silence:
    """A turn in which the provider takes the call and then says nothing."""


Turn = Answer | CallFailure | Silence


def run(work: Coroutine[object, object, T]) -> T:
    """Run to the end; nothing in this suite takes longer than a minute."""
    return asyncio.run(asyncio.wait_for(work, 60))


class LlmContract:
    """What every model does. `gaps` names the tests that an adapter fails, with the reason.

    A gap that passes is a failure: it is to be taken from the list.
    """

    gaps: ClassVar[dict[str, str]] = {}

    def serving(self, *turns: Turn) -> AbstractContextManager[Llm]:
        """Return an adapter whose provider takes one turn for each request that reaches it.

        Of an answer the provider sends text, finish reason, usage and model.
        """
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _expect_gaps(self, request: pytest.FixtureRequest) -> None:
        name = request.node.originalname
        if name in self.gaps:
            request.applymarker(pytest.mark.xfail(reason=self.gaps[name], strict=True))

    # --- answers ----------------------------------------------------------------------------------

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    def test_the_text_is_as_it_was_received(self, text: str) -> None:
        with self.serving(Answer(text=text, finish_reason="stop")) as llm:
            assert run(llm.complete(CALL)).text == text

    @pytest.mark.parametrize("reason", FINISH_REASONS)
    def test_the_finish_reason_is_kept(self, reason: str) -> None:
        with self.serving(Answer(text="{", finish_reason=reason)) as llm:
            answer = run(llm.complete(CALL))
        assert (answer.text, answer.finish_reason) == ("{", reason)

    @pytest.mark.parametrize("reason", FINISH_REASONS)
    def test_no_text_is_not_an_empty_text(self, reason: str) -> None:
        with self.serving(Answer(text=None, finish_reason=reason)) as llm:
            answer = run(llm.complete(CALL))
        assert (answer.text, answer.finish_reason) == (None, reason)

    def test_tokens_are_what_the_provider_counted(self) -> None:
        usage = Usage(input_tokens=123, output_tokens=45)
        with self.serving(Answer(text="{}", finish_reason="stop", usage=usage)) as llm:
            assert run(llm.complete(CALL)).usage == usage

    def test_tokens_that_nobody_counted_are_unknown(self) -> None:
        with self.serving(Answer(text="{}", finish_reason="stop")) as llm:
            answer = run(llm.complete(CALL))
        assert (answer.usage, answer.cost) == (Usage(), None)

    def test_the_model_that_answers_is_named(self) -> None:
        with self.serving(Answer(text="{}", finish_reason="stop", model="gpt-other")) as llm:
            assert run(llm.complete(CALL)).model == "gpt-other"

    def test_a_call_without_schema_and_parameters(self) -> None:
        plain = LlmCall(kind="plan", model="gpt-4.1", messages=CALL.messages)
        with self.serving(Answer(text="words", finish_reason="stop")) as llm:
            assert run(llm.complete(plain)).text == "words"

    def test_turns_are_taken_in_order_also_in_a_new_event_loop(self) -> None:
        turns = [Answer(text=str(number), finish_reason="stop") for number in range(3)]
        with self.serving(*turns) as llm:
            assert [run(llm.complete(CALL)).text for _ in turns] == ["0", "1", "2"]

    def test_calls_at_the_same_time_get_one_answer_each(self) -> None:
        async def together(llm: Llm) -> list[Answer]:
            return await asyncio.gather(*(llm.complete(CALL) for _ in range(5)))

        with self.serving(*(Answer(text=str(n), finish_reason="stop") for n in range(5))) as llm:
            assert {answer.text for answer in run(together(llm))} == set("01234")

    # --- failures ---------------------------------------------------------------------------------

    @pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.reason)
    def test_a_failure_says_what_to_do(self, failure: CallFailure) -> None:
        with self.serving(failure) as llm, pytest.raises(LlmError) as caught:
            run(llm.complete(CALL))
        told = caught.value.failure
        assert told.reason == failure.reason
        assert (told.retryable, told.retry_after) == (failure.retryable, failure.retry_after)
        assert told.message

    @pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.reason)
    def test_a_failure_is_not_retried_here(self, failure: CallFailure) -> None:
        with self.serving(failure, Answer(text="later", finish_reason="stop")) as llm:
            with pytest.raises(LlmError):
                run(llm.complete(CALL))
            assert run(llm.complete(CALL)).text == "later"

    def test_cancelling_the_task_ends_the_call(self) -> None:
        async def cancel(llm: Llm) -> None:
            task = asyncio.create_task(llm.complete(CALL))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 10)

        with self.serving(Silence()) as llm:
            run(cancel(llm))
