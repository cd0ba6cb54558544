"""Texts of models in the styles of many providers, each with what must be read in it."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states import events as e
from codetape.states.fences import CLOSINGS, MARKS, PAIR, WORK, blocks, read_blocks
from tests.support.answer_texts import CODE, DRAFT, MARKED, PARTS, TESTS, corpus, event_of, read_as

FILES = (
    "code_in_json",
    "code_in_fences",
    "thoughts",
    "marks_in_code",
    "turns",
    "versions",
    "forms",
)
READ = list(corpus(*FILES, "tests", "plans"))
REFUSED = list(corpus("refused"))


@pytest.mark.parametrize(
    ("kind", "text", "expected"), [case[1:] for case in READ], ids=[case[0] for case in READ]
)
def test_an_answer_is_found_in_its_wrapping(kind: str, text: str, expected: str) -> None:
    event = event_of(kind, text)
    assert read_as(kind, text) == expected, event
    assert not isinstance(event, e.AnswerRejected)


@pytest.mark.parametrize(
    ("kind", "text", "reason"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_an_answer_that_holds_nothing_is_refused(kind: str, text: str, reason: str) -> None:
    event = event_of(kind, text)
    assert isinstance(event, e.AnswerRejected), event
    assert event.reason == reason


def test_the_corpus_is_large() -> None:
    assert len(READ) + len(REFUSED) >= 400
    assert len({case[0] for case in READ + REFUSED}) == len(READ) + len(REFUSED)


# --- every combination ----------------------------------------------------------------------------

BODIES = {"code": (CODE, MARKED), "tests": (TESTS,)}
FIELDS = {"code": "code", "tests": "test_code"}


def in_json(kind: str, body: str) -> str:
    return json.dumps({FIELDS[kind]: body})


WORDS = st.sampled_from(
    [
        "",
        "Here it is:\n",
        "Voici :\n\n",
        "以下です。\n\n",
        "- one\n- two\n\n",
        "It's <b>bold</b>.\n",
    ]
)
FENCES = st.sampled_from(["```", "````", "~~~", "~~~~~"])
INDENTS = st.sampled_from(["", "  ", "   "])
THOUGHTS = st.sampled_from(
    [
        "",
        "<think>\nHm.\n</think>\n",
        f"<think>\n```python\n{DRAFT}\n```\n</think>\n\n",
        f"<thinking>{PARTS['DRAFTJSON']}</thinking>\n",
        "Hm.\n</think>\n\n",
        "[THINK]Hm.[/THINK]\n",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>\n",
        f"<|channel>thought\n```python\n{DRAFT}\n```\n<channel|>\n",
        f"Sure.\n<think>\n```python\n{DRAFT}\n```\n</think>\n",
    ]
)
TAILS = st.sampled_from(
    [
        "",
        "\n",
        "\n\nGood luck!",
        "<|im_end|>",
        "\n\nUse: `add(1, 2)`.",
        f"\n<reflection>\nFirst:\n```python\n{DRAFT}\n```\n</reflection>",
        f"\n<|im_end|>\n<|im_start|>user\nNo.<|im_end|>\n<|im_start|>assistant\n{PARTS['DRAFTJSON']}",
        f"\n\n### Instruction:\nSubtract.\n\n### Response:\n```python\n{DRAFT}\n```",
    ]
)
AROUND = st.sampled_from(["{}", "<answer>\n{}\n</answer>", "<response>\n\n{}\n\n</response>"])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def wrapped(draw: st.DrawFn, kind: str) -> tuple[str, str]:
    """Draw good text and an answer that holds it."""
    body = draw(st.sampled_from(BODIES[kind]))
    inside = draw(st.sampled_from(["json", "python"]))
    text = in_json(kind, body) if inside == "json" else body
    fence, indent = draw(FENCES), draw(INDENTS)
    if inside == "python" or draw(st.booleans()):
        lines = f"{fence}{draw(st.sampled_from([inside, '']))}\n{text}\n{fence}".split("\n")
        text = "\n".join(indent + line for line in lines)
    around = draw(AROUND) if text.endswith(fence) else "{}"
    text = around.replace("{}", text)
    tail = draw(TAILS)
    if not text.endswith((fence, ">")) or tail != "<|im_end|>":
        text += "\n" if tail and not tail.startswith("\n") else ""
    whole = draw(THOUGHTS) + draw(WORDS) + text + tail
    return body, whole.replace("\n", draw(ENDS))


@pytest.mark.parametrize("kind", ["code", "tests"])
@given(data=st.data())
def test_good_text_is_found_in_any_wrapping(kind: str, data: st.DataObject) -> None:
    body, text = data.draw(wrapped(kind))
    assert read_as(kind, text) == body


FORMS = (
    PARTS["JSON"],
    f"{{'code': {CODE!r}, 'packages': []}}",
    '{"code": ' + json.dumps(CODE) + ', "packages": [],}',
    '{"code": ' + json.dumps(CODE) + ', // done\n "more": {"a": [1, {"b": 2}]}}',
    '{"more": [{"a": {"b": 1}}], "code": ' + json.dumps(CODE) + "}",
)


@pytest.mark.parametrize("text", FORMS)
def test_what_was_cut_anywhere_is_not_completed(text: str) -> None:
    assert read_as("code", text) == CODE
    for end in range(1, len(text)):
        assert read_as("code", text[:end]) is None, text[:end]
        assert read_as("code", f"```json\n{text[:end]}\n```") is None, text[:end]


@given(st.text(alphabet="`~<>/{}[]\"':, \n\\tcodehink|", max_size=200))
def test_no_text_is_tripped_over(text: str) -> None:
    for kind, reason in product(("code", "tests", "plan"), ("stop", "model_length")):
        event_of(kind, text, reason)


# --- time -----------------------------------------------------------------------------------------

LONG = {
    "words": "word and word.\n",
    "fences": "```\nx\n",
    "called fences": "```python\n",
    "blocks": "```python\nx = 1\n```\n",
    "objects": '{"a": 1}\n',
    "objects in words": 'x {"a": 1} ',
    "open objects": '{"a": [\n',
    "tags": "<a>\n",
    "ends of thoughts": "</think>\n",
    "thoughts": "<think>a</think>",
    "blanks": "      ",
    "marks": "<|im_end|>",
}


@pytest.mark.parametrize("piece", LONG.values(), ids=LONG)
def test_the_work_of_an_answer_grows_with_its_length_alone(piece: str) -> None:
    """The characters that blocks have in all are at most a multiple of those of the text."""
    text = piece * (100_000 // len(piece))
    read: list[int] = []
    read_blocks(text, lambda body: read.append(len(body) + PAIR))
    assert sum(read) <= WORK * len(text) + 400_000 + PAIR
    assert len(list(blocks(text))) <= MARKS * CLOSINGS


@pytest.mark.slow
@pytest.mark.parametrize("piece", LONG.values(), ids=LONG)
def test_a_long_answer_has_an_end(piece: str) -> None:
    for kind in ("code", "plan"):
        event_of(kind, piece * (1_000_000 // len(piece)))
