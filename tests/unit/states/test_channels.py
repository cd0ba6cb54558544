"""The answer of a model among its thoughts, its channels and its drafts."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product

import pytest

from codetape.states import events as e
from codetape.states import requests as r
from codetape.states.channels import NoAnswer, readings
from codetape.states.reading import interpret
from codetape.states.values import Answer, LlmCall

CODE = "def add(a, b):\n    return a + b\n"
DRAFT = "def add(a, b):\n    return a - b  # a draft that is longer than the answer, and wrong\n"
TESTS = "from solution import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n" * 1 + (
    "\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
)
MARKED = 'TAG = "</think>"\n\n\ndef add(a, b):\n    return a + b\n'


def call(kind: str) -> LlmCall:
    return LlmCall(kind=kind, model="m", messages=())


def code_of(text: str, finish: str | None = "stop") -> str | None:
    """Return the code that an answer is read as, or None if it is refused."""
    event = interpret(r.WriteCode(call=call("code")), Answer(text=text, finish_reason=finish))
    return event.source if isinstance(event, e.CodeWritten) else None


def as_json(code: str) -> str:
    return json.dumps({"code": code, "packages": []})


def fenced(body: str, info: str = "") -> str:
    return f"```{info}\n{body.rstrip()}\n```"


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "bare JSON": as_json,
    "fenced JSON": lambda code: fenced(as_json(code), "json"),
    "fence that is not closed": lambda code: f"```json\n{as_json(code)}",
    "JSON after a sentence": lambda code: f"Here it is:\n{as_json(code)}",
    "fenced Python": lambda code: fenced(code, "python"),
    "fenced Python after words": lambda code: f"It adds:\n\n{fenced(code, 'python')}\nDone.",
    "Python beside an example": lambda code: (
        f"{fenced(code, 'python')}\nCall it with:\n{fenced(json.dumps({'threshold': 3}), 'json')}"
    ),
    "code beside tests": lambda code: f"{fenced(code, 'python')}\n\n{fenced(TESTS, 'python')}",
    "old and fixed": lambda code: (
        f"Old:\n{fenced(DRAFT, 'python')}\nFixed:\n{fenced(code, 'python')}"
    ),
    "two drafts in JSON": lambda code: f"{as_json(DRAFT)}\n\nBetter:\n{as_json(code)}",
    "trailing comma": lambda code: as_json(code)[:-1] + ",}",
    "comment": lambda code: '{"packages": [], // none\n "code": ' + json.dumps(code) + "}",
}
THOUGHTS: dict[str, Callable[[str], str]] = {
    "none": lambda text: text,
    "think": lambda text: f"<think>\nLet me see.\n</think>\n{text}",
    "think with a draft": lambda text: f"<think>\n{fenced(DRAFT, 'python')}\n</think>\n{text}",
    "opened by the template": lambda text: f"Let me see.\n</think>\n\n{text}",
    "thinking": lambda text: f"<thinking>Hm.</thinking>\n{text}",
    "marks of Mistral": lambda text: f"[THINK]Hm.[/THINK]{text}",
    "channels": lambda text: (
        f"<|channel|>analysis<|message|>{as_json(DRAFT)}<|end|><|start|>assistant"
        f"<|channel|>final <|constrain|>json<|message|>{text}<|return|>"
    ),
    "channels whose marks were taken out": lambda text: (
        f"analysisA draft: {DRAFT}assistantfinal{text}"
    ),
    "end of a turn": lambda text: f"{text}<|im_end|>",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("thought", THOUGHTS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["unix", "dos"])
def test_code_comes_back_from_any_wrapping(wrapping: str, thought: str, ends: str) -> None:
    for code in (CODE, MARKED):
        text = THOUGHTS[thought](WRAPPINGS[wrapping](code)).replace("\n", ends)
        assert (code_of(text) or "").strip() == code.strip(), text


@pytest.mark.parametrize(("wrapping", "thought"), list(product(WRAPPINGS, THOUGHTS))[:40])
def test_a_cut_answer_stays_cut(wrapping: str, thought: str) -> None:
    text = THOUGHTS[thought](WRAPPINGS[wrapping](CODE))
    assert code_of(text, "length") is None


@pytest.mark.parametrize("end", range(1, 12))
def test_json_that_was_cut_is_not_completed(end: int) -> None:
    assert code_of(as_json(CODE)[:-end]) is None
    assert code_of(fenced(as_json(CODE)[:-end], "json")) is None


@pytest.mark.parametrize("text", ["<think>Hm", "<thinking>Hm", "<|channel|>analysis<|message|>Hm"])
def test_thoughts_alone_are_no_answer(text: str) -> None:
    with pytest.raises(NoAnswer):
        readings(text)


def test_a_repair_of_the_form_is_told() -> None:
    event = interpret(
        r.WriteCode(call=call("code")), Answer(text=as_json(CODE)[:-1] + ",}", finish_reason="stop")
    )
    assert isinstance(event, e.CodeWritten)
    assert event.repairs
    strict = interpret(
        r.WriteCode(call=call("code")), Answer(text=as_json(CODE), finish_reason="stop")
    )
    assert isinstance(strict, e.CodeWritten)
    assert not strict.repairs


def test_an_excerpt_does_not_stand_for_the_whole() -> None:
    whole = "def one():\n    return 1\n\n\ndef two():\n    return one() + 1\n"
    excerpt = "def one():\n    return 1"
    text = f"{fenced(whole, 'python')}\nThe point is:\n{fenced(excerpt, 'python')}"
    assert (code_of(text) or "").strip() == whole.strip()
