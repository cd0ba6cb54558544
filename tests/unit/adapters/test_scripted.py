"""A scripted model: what it sends, when it runs dry, how it goes on after a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.llm.scripted import Item, ScriptedLlm
from codetape.engine.ports import LlmError
from codetape.states.values import Answer, CallFailure, LlmCall, Message, Usage


def call(kind: str, *parts: str) -> LlmCall:
    return LlmCall(kind=kind, model="any", messages=(Message(role="user", parts=parts),))


def ask(llm: ScriptedLlm, kind: str) -> Answer:
    return asyncio.run(llm.complete(call(kind)))


def failure_of(llm: ScriptedLlm, kind: str) -> CallFailure:
    with pytest.raises(LlmError) as caught:
        ask(llm, kind)
    return caught.value.failure


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("as it is", "as it is"),
        ({"code": "é\n"}, '{"code": "é\\n"}'),
        ([1, None], "[1, null]"),
        (3, "3"),
        (None, "null"),
        (True, "true"),
        ("", ""),
    ],
)
def test_json_values_are_sent_as_json_text_and_texts_as_they_are(item: Item, text: str) -> None:
    assert ask(ScriptedLlm({"code": [item]}), "code").text == text


def test_an_answer_is_sent_whole() -> None:
    answer = Answer(text=None, finish_reason="length", model="other", notes=("a note",))
    assert ask(ScriptedLlm({"code": [answer]}, cost=1.0), "code") is answer


def test_exceptions_are_raised_as_they_are() -> None:
    failure = CallFailure(reason="rate_limited", message="slow", retryable=True, retry_after=2.0)
    error, bug = LlmError(failure), RuntimeError("a bug")
    llm = ScriptedLlm({"code": [error, failure, bug, "last"]})
    with pytest.raises(LlmError) as caught:
        ask(llm, "code")
    assert caught.value is error
    assert failure_of(llm, "code") is failure
    with pytest.raises(RuntimeError, match="a bug"):
        ask(llm, "code")
    assert ask(llm, "code").text == "last"


def test_each_kind_has_its_own_order() -> None:
    llm = ScriptedLlm({"code": ["c1", "c2"], "tests": ["t1", "t2"]})
    asked = ("tests", "code", "code", "tests")
    assert [ask(llm, kind).text for kind in asked] == ["t1", "c1", "c2", "t2"]
    assert tuple(made.kind for made in llm.calls) == asked


def test_a_dry_script_names_the_kind_and_what_was_used() -> None:
    llm = ScriptedLlm({"code": ["only"], "tests": ["one", "two"]})
    ask(llm, "code")
    dry = failure_of(llm, "code")
    assert (dry.reason, dry.retryable) == ("script_dry", False)
    assert dry.message == "the script has 1 answer of kind 'code', and all of them are used"
    assert failure_of(llm, "plan").message == "the script has no answer of kind 'plan'"
    assert len(llm.calls) == 3  # a question without an answer was a question


def test_what_is_left_over() -> None:
    llm = ScriptedLlm({"code": ["1", "2"], "tests": ["1"], "plan": []})
    assert llm.left_over() == {"code": 2, "tests": 1}
    ask(llm, "code")
    ask(llm, "tests")
    assert llm.left_over() == {"code": 1}


def test_a_resumed_script_goes_on_where_it_was() -> None:
    used = {"code": 2, "tests": 5, "plan": 1}
    llm = ScriptedLlm({"code": ["1", "2", "3"], "tests": ["1"]}, used=used)
    assert llm.left_over() == {"code": 1}
    assert ask(llm, "code").text == "3"
    assert "1 answer of kind 'tests'" in failure_of(llm, "tests").message
    assert used == {"code": 2, "tests": 5, "plan": 1}


def test_the_script_of_the_caller_is_not_touched() -> None:
    script: dict[str, list[Item]] = {"code": ["1", "2"]}
    llm = ScriptedLlm(script)
    script["code"].clear()
    ask(llm, "code")
    assert (ask(llm, "code").text, script) == ("2", {"code": []})


def test_answers_carry_a_model_a_reason_and_tokens() -> None:
    llm = ScriptedLlm({"code": ["12345678901"]}, model="demo")
    answer = asyncio.run(llm.complete(call("code", "x" * 38)))
    assert answer == Answer(
        text="12345678901",
        finish_reason="stop",
        usage=Usage(input_tokens=9, output_tokens=2),
        cost=None,
        model="demo",
    )


def test_cost_and_tokens_can_be_given() -> None:
    unknown = Usage()
    llm = ScriptedLlm({"code": ["x"]}, cost=0.25, usage=lambda *_: unknown)
    answer = ask(llm, "code")
    assert (answer.cost, answer.usage) == (0.25, unknown)


def test_an_answer_takes_no_turn_of_the_event_loop() -> None:
    work = ScriptedLlm({"code": ["now"]}).complete(call("code"))
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    assert ended.value.value.text == "now"


KINDS = st.sampled_from(["plan", "code", "tests"])
SCRIPTS = st.dictionaries(KINDS, st.lists(st.text(max_size=3), max_size=4))


@given(SCRIPTS, st.lists(KINDS, max_size=12), st.integers(0, 12))
def test_a_crash_anywhere_changes_no_answer(
    script: Mapping[str, Sequence[str]], asked: Sequence[str], crash: int
) -> None:
    def heard(llm: ScriptedLlm, kinds: Sequence[str]) -> list[str | None]:
        answers = []
        for kind in kinds:
            try:
                answers.append(ask(llm, kind).text)
            except LlmError:
                answers.append(None)
        return answers

    before, after = asked[:crash], asked[crash:]
    whole, crashed = ScriptedLlm(script), ScriptedLlm(script)
    expected = heard(whole, asked)
    first = heard(crashed, before)
    answered = [kind for kind, text in zip(before, first, strict=True) if text is not None]
    resumed = ScriptedLlm(script, used=Counter(answered))
    assert first + heard(resumed, after) == expected
    assert resumed.left_over() == whole.left_over()
