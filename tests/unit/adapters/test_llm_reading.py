"""How an answer is put together, from streams that are made by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace as Part

import pytest

from codetape.adapters.llm.reading import NotStreamed, Reading, read_stream, read_whole
from codetape.engine.ports import LlmError

BEGUN: Mapping[str, object] = {"provider_response_model": "m", "received_model_id": "chatcmpl-9"}


def piece(text: str | None = None, finish: str | None = None, index: int = 0) -> Part:
    return Part(index=index, delta=Part(content=text), finish_reason=finish)


def chunk(*choices: Part, hidden: Mapping[str, object] = BEGUN, usage: object = None) -> Part:
    return Part(choices=list(choices), hidden_params=hidden, usage=usage)


class Stream:
    """A stream of chunks, each after its pause in seconds, with an error at its end or none."""

    def __init__(
        self,
        *chunks: Part,
        pauses: tuple[float, ...] = (),
        error: Exception | None = None,
        finish: str | None = None,
    ):
        self.chunks = [*chunks]
        self.received_finish_reason = finish
        self._pauses, self._error = pauses, error
        self._sent = self._send()

    async def _send(self) -> AsyncIterator[Part]:
        pauses = [*self._pauses, *[0.0] * len(self.chunks)]
        for one, pause in zip(self.chunks, pauses, strict=False):
            await asyncio.sleep(pause)
            yield one
        if self._error is not None:
            raise self._error

    async def __anext__(self) -> Part:
        return await anext(self._sent)


def read(stream: Stream, idle: float = 5.0) -> Reading:
    return asyncio.run(read_stream(stream, idle))


def test_pieces_are_joined_and_the_reason_is_kept_to_the_end() -> None:
    late = chunk(piece(), usage=Part(prompt_tokens=3, completion_tokens=2))
    reading = read(Stream(chunk(piece("a")), chunk(piece("b", "stop")), late, chunk()))
    assert (reading.text, reading.finish_reason) == ("ab", "stop")
    assert (reading.usage.input_tokens, reading.usage.output_tokens) == (3, 2)
    assert (reading.model, reading.request_id) == ("m", "chatcmpl-9")


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        ((0, 0), (None, None)),
        ((3, 0), (3, None)),
        ((-3, -2), (None, None)),
        ((None, None), (None, None)),
    ],
)
def test_a_count_that_cannot_be_is_unknown(
    told: tuple[int, int], counted: tuple[int | None, int | None]
) -> None:
    usage = Part(prompt_tokens=told[0], completion_tokens=told[1])
    reading = read(Stream(chunk(piece("a", "stop"), usage=usage)))
    assert (reading.usage.input_tokens, reading.usage.output_tokens) == counted


def test_an_answer_that_is_whole_outlives_the_end_of_its_stream() -> None:
    broken = Stream(chunk(piece("a")), error=OSError("reset"), finish="length")
    reading = read(broken)
    assert (reading.text, reading.finish_reason) == ("a", "length")
    assert reading.usage.input_tokens is None
    silent = Stream(chunk(piece("a")), chunk(), pauses=(0.0, 5.0), finish="stop")
    assert read(silent, idle=0.1).text == "a"


@pytest.mark.parametrize("finish", [None, "error", "of a kind that nobody knows"])
def test_an_answer_that_is_not_whole_ends_with_its_stream(finish: str | None) -> None:
    with pytest.raises(OSError, match="reset"):
        read(Stream(chunk(piece("a")), error=OSError("reset"), finish=finish))


def test_only_the_first_choice_is_the_answer() -> None:
    reading = read(Stream(chunk(piece("a"), piece("x", index=1)), chunk(piece("b", "stop"))))
    assert reading.text == "ab"


def test_the_first_chunk_may_take_longer_than_the_others() -> None:
    chunks = chunk(piece("a")), chunk(piece("b", "stop"))
    assert read(Stream(*chunks, pauses=(0.4, 0.0)), idle=0.1).text == "ab"
    with pytest.raises(LlmError) as caught:
        read(Stream(*chunks, pauses=(0.0, 5.0)), idle=0.1)
    assert caught.value.failure.reason == "timeout"


def test_a_deadline_of_the_library_is_not_taken_for_ours() -> None:
    with pytest.raises(TimeoutError, match="theirs"):
        read(Stream(chunk(piece("a")), error=TimeoutError("theirs")))


def test_a_stream_that_ends_without_choices_is_an_answer_without_text() -> None:
    early = RuntimeError("ended before a finish_reason was received")
    reading = read(Stream(chunk(), error=early))
    assert (reading.text, reading.finish_reason) == (None, None)
    for cut in (Stream(chunk(piece("a")), error=early), Stream(error=early)):
        with pytest.raises(RuntimeError, match="before a finish_reason"):
            read(cut)


INVENTED = "chatcmpl-ac2f8ca4-4fd9-478c-a47a-a4d1bfc43177"


def invented(media: str) -> Stream:
    """Return what LiteLLM makes of an empty body of this media type."""
    headers = {"llm_provider-content-type": media}
    hidden = {"received_model_id": INVENTED, "additional_headers": headers}
    return Stream(chunk(piece(None, "stop"), hidden=hidden))


@pytest.mark.parametrize(
    ("media", "reason"),
    [
        ("text/event-stream; charset=utf-8", "connection"),
        ("", "connection"),
        ("text/html", "other"),
    ],
)
def test_what_only_litellm_says_is_no_answer(media: str, reason: str) -> None:
    with pytest.raises(LlmError) as caught:
        read(invented(media))
    assert caught.value.failure.reason == reason


def test_one_piece_in_place_of_a_stream() -> None:
    with pytest.raises(NotStreamed):
        read(invented("application/json; charset=utf-8"))


@pytest.mark.parametrize("proof", [piece("text", "stop"), piece(None, "stop")])
def test_a_provider_without_names_is_known_by_its_text_or_its_count(proof: Part) -> None:
    usage = None if proof.delta.content else Part(prompt_tokens=1, completion_tokens=0)
    assert read(Stream(chunk(proof, hidden={}, usage=usage))).finish_reason == "stop"


def test_an_answer_in_one_piece_names_its_model() -> None:
    choice = Part(index=0, message=Part(content="x", refusal=None), finish_reason="stop")
    usage = Part(prompt_tokens=1, completion_tokens=1, total_tokens=2)
    reading = read_whole(Part(choices=[choice], model="asked", usage=usage))
    assert (reading.text, reading.model, reading.counted) == ("x", "asked", usage)
    told = Part(choices=[choice], model="asked", hidden_params=BEGUN)
    assert (read_whole(told).model, read_whole(told).counted) == ("m", None)
