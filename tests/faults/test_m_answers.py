"""M. Answers of models: what is read in them, and what is refused."""

from __future__ import annotations

import json

import pytest

from codetape.states import events as e
from tests.support.answer_texts import (
    CODE,
    MARKED,
    PARTS,
    TESTS,
    event_of,
    filled,
    read_as,
)
from tests.support.chat_calls import PLAIN, ask, failure_of, make
from tests.support.chat_replies import Json, Reply
from tests.support.chat_server import ChatServer, refusal
from tests.support.chat_sessions import answers, check_tape, converse, generate, rejections
from tests.support.sessions import PLAN, RIGHT

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize(
    "text",
    [
        "```json\r\n«JSON»\r\n```",
        "Here:\r\n\r\n~~~json\r\n«JSON»\r\n~~~\r\n",
        "```python\r\n«DOSCODE»\r\n```",
        "```json\n«JSON»",
        "Here:\n```\n«JSON»\n",
    ],
)
def test_m1_line_ends_and_a_missing_last_fence_are_no_cut(text: str) -> None:
    assert read_as("code", filled(text)) == CODE


@pytest.mark.parametrize(
    "text",
    [
        "It strips thoughts:\n\n```python\n«MARKED»\n```",
        "Here it is:\n«MARKEDJSON»",
        "<think>\nHm.\n</think>\n```python\n«MARKED»\n```",
        "«MARKED»",
        "```json\n«MARKEDJSON»\n```\nIt finds </think>.",
    ],
)
def test_m2_a_mark_of_thoughts_in_code_is_code(text: str) -> None:
    assert read_as("code", filled(text)) == MARKED


def test_m2_a_mark_of_thoughts_in_tests_is_of_the_tests() -> None:
    tests = TESTS.replace("assert add(0, 0) == 0", "assert add('</think>', '') == '</think>'")
    assert read_as("tests", f"The tests:\n\n```python\n{tests}\n```") == tests
    assert read_as("tests", f"The tests:\n{json.dumps({'test_code': tests})}") == tests
    assert read_as("plan", "Strip the </think> tags of each line.") is not None


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>analysis<|message|>«DRAFTJSON»<|end|><|channel|>final <|message|>«JSON»",
        "analysis«DRAFTJSON»assistantfinal«JSON»",
        "<think>«DRAFTJSON»</think>\n```python\n«CODE»\n```",
        "Perhaps:\n```json\n«DRAFTJSON»\n```\nNo.\n</think>\n```python\n«CODE»\n```",
    ],
)
def test_m3_a_draft_in_the_thoughts_is_no_answer(text: str) -> None:
    assert read_as("code", filled(text)) == CODE


@pytest.mark.parametrize("text", ["<|channel|>analysis<|message|>«JSON»", "<think>«JSON»"])
def test_m3_thoughts_that_end_nowhere_are_cut(text: str) -> None:
    event = event_of("code", filled(text))
    assert isinstance(event, e.AnswerRejected)
    assert event.reason == "truncated"


@pytest.mark.parametrize(
    "text",
    [
        "```python\n«CODE»\n```\n```python\n«TESTS»\n```",
        "```python\n«TESTS»\n```\n```python\n«CODE»\n```",
        "Old:\n```python\n«DRAFT»\n```\nFixed:\n```python\n«CODE»\n```",
        "«DRAFTJSON»\n\n«JSON»",
        '```python\n«CODE»\n```\n```json\n{"threshold": 3}\n```',
        '```python\n«CODE»\n```\n```json\n{"code": "E1"}\n```',
    ],
)
def test_m4_the_block_that_fits_goes_before_the_longest(text: str) -> None:
    assert read_as("code", filled(text)) == CODE


def test_m4_of_a_code_and_its_tests_each_is_found() -> None:
    text = filled("```python\n«TESTS»\n```\n```python\n«CODE»\n```")
    assert (read_as("code", text), read_as("tests", text)) == (CODE, TESTS)


@pytest.mark.parametrize("whole", [False, True])
def test_m5_an_answer_of_typed_parts_is_used(monkeypatch: Patch, *, whole: bool) -> None:
    text = Reply(RIGHT).text or ""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": text[:20]},
        {"type": "text", "text": text[20:]},
    ]
    reply = Reply(parts=parts, refuse=("stream",) * whole)
    result, server, _ = generate(monkeypatch, [reply])
    assert result.success
    assert rejections(result) == []
    assert "thinking" in " ".join(answers(result)[1].notes)
    check_tape(result, server, answered=3)


@pytest.mark.parametrize(
    "text",
    [
        '{"code": «BODY»,}',
        '{"code": «BODY», // done\n "packages": []}',
        "{'code': «SINGLE», 'packages': []}",
        "{“code”: «SMART», “packages”: []}",
        '```json\n{"threshold": 3}\n```\n```json\n{"code": «BODY»,}\n```',
    ],
)
def test_m6_a_fault_of_form_is_read_and_told(text: str) -> None:
    event = event_of("code", filled(text))
    assert isinstance(event, e.CodeWritten)
    assert event.source.rstrip("\n") == CODE
    assert event.repairs


def test_m6_a_lone_backslash_is_one() -> None:
    event = event_of("code", '{"code": "import re\\nA = re.compile(r\'\\d+\')"}')
    assert isinstance(event, e.CodeWritten)
    assert event.source == "import re\nA = re.compile(r'\\d+')\n"


@pytest.mark.parametrize("end", ["", "}", ', "packages": ['])
def test_m6_what_was_cut_is_not_repaired(end: str) -> None:
    text = filled('{"meta": {"a": 1}, "code": «BODY»')
    cut = f'{text}, "more": {{"b": 2}}' if end == "}" else text + end
    event = event_of("code", cut)
    assert isinstance(event, e.AnswerRejected)
    assert event.reason == "malformed"


def test_m7_a_plan_in_words_costs_no_call(monkeypatch: Patch) -> None:
    words = Reply('Add two numbers, as {"a": 1, "b": 2} says.')
    result, server, _ = converse(monkeypatch, [words, Reply(RIGHT), Reply(json.loads(TESTS_JSON))])
    assert result.success
    assert rejections(result) == []
    assert result.plan is not None
    assert result.plan.description == words.text
    check_tape(result, server, answered=3)


TESTS_JSON = PARTS["TESTSJSON"]


@pytest.mark.parametrize("text", ["- Read.\n- Add.", "**Plan**\n\n1. Add.", "Füge zwei Zahlen an."])
def test_m7_words_of_any_form_are_a_plan(text: str) -> None:
    assert read_as("plan", text) == text


@pytest.mark.parametrize(
    "reply",
    [
        refusal(404, "Not Found"),
        Reply(status=404, error={}),
        Reply(status=404, page="<html><body>Not Found</body></html>"),
    ],
    ids=["with a body", "without words", "a page"],
)
def test_m8_an_address_that_is_not_found_is_asked_about(reply: Reply) -> None:
    with ChatServer([reply]) as server:
        failure = failure_of(make(server))
    assert "address" in failure.message


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("told", ["model_length", "network_error", "error_length"])
def test_m9_an_unknown_end_of_half_an_answer_is_a_cut(
    monkeypatch: Patch, told: str, *, whole: bool
) -> None:
    half = Reply('{"code": "def add(', finish_reason=told, refuse=("stream",) * whole)
    result, server, _ = generate(monkeypatch, [half, Reply(RIGHT)])
    assert result.success
    assert rejections(result) == ["truncated"]
    assert "Be shorter" in str(server.requests[-2].body["messages"][-1]["content"])


def test_m9_an_unknown_end_of_a_whole_answer_is_no_cut(monkeypatch: Patch) -> None:
    result, server, _ = generate(monkeypatch, [Reply(RIGHT, finish_reason="model_length")])
    assert result.success
    assert rejections(result) == []
    assert answers(result)[1].finish_reason == "model_length"
    check_tape(result, server, answered=3)


def test_m9_a_known_end_in_other_words_is_known() -> None:
    with ChatServer([Reply("{}", finish_reason="end_turn")]) as server:
        assert ask(server, PLAIN).finish_reason == "stop"


@pytest.mark.parametrize(
    "code",
    ["pass", "unchanged", "...", "None", "# as before", "'''Adds.'''", "solution.py", "a < b"],
)
def test_m10_code_that_does_nothing_is_refused(code: str) -> None:
    said: Json = {"code": code}
    for text in (json.dumps(said), f"```python\n{code}\n```", code):
        assert read_as("code", text) is None, text


@pytest.mark.parametrize("code", ["print('x')", "x = 1", "from math import sqrt", CODE])
def test_m10_code_that_does_little_is_code(code: str) -> None:
    assert read_as("code", json.dumps({"code": code})) == code


def test_m10_a_first_answer_of_nothing_is_asked_again(monkeypatch: Patch) -> None:
    result, _, _ = generate(monkeypatch, [Reply({"code": "unchanged"}), Reply(RIGHT)])
    assert rejections(result) == ["invalid"]
    assert result.success
    assert result.plan is not None
    assert result.plan.approach == PLAN["approach"]


# --- fresh texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("```python\nNAME = “add”\n«CODE»\n```", "word processor"),
        ("```python\nNAME = &quot;add&quot;\n«CODE»\n```", "page"),
        (
            "«CODE»\n\nand:\n```python\nimport math\n```\n```python\nA = math.pi\n\n\n«CODE»\n```",
            "2 blocks",
        ),
        ('{"code": "def add(a, b):\\\\n    return a + b"}', "twice"),
        ('{"solution": «BODY»}', "another name"),
        ("{code: «BODY»}", "without quotes"),
    ],
)
def test_m11_what_was_mended_in_code_is_told(text: str, words: str) -> None:
    event = event_of("code", filled(text))
    assert isinstance(event, e.CodeWritten), event
    assert any(words in repair for repair in event.repairs), event.repairs


def test_m11_tests_tell_what_was_mended_in_them() -> None:
    event = event_of("tests", filled("```python\nNAME = “add”\n«TESTS»\n```"))
    assert isinstance(event, e.TestsWritten)
    assert event.repairs


def test_m12_an_answer_whose_middle_was_left_out_is_cut() -> None:
    """The text parses: the remark on what was left out stands in a text of the code."""
    half = "x" * 600_000
    text = f"D = '''{half}\n[… 12345 characters left out …]\n{half}'''\n{CODE}"
    event = event_of("code", f"```python\n{text}\n```")
    assert isinstance(event, e.AnswerRejected)
    assert event.reason == "truncated"
    assert read_as("code", f"```python\n{text.replace('x' * 1000, '')}\n```") is not None


OLDTESTS = json.dumps({"test_code": TESTS.replace("== 3", "== 4")})


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("code", "«DRAFTJSON»\nNo. Corrected:\n```python\n«CODE»\n```", "invalid"),
        ("code", "```python\n«CODE»\n```\nIt was:\n```python\n«DRAFT»\n```", "invalid"),
        ("code", '«DRAFTJSON»\nBetter:\n{"code": "def add(a, b):\\n    ret', "truncated"),
        ("code", "```python\n«DRAFT»\n```\nSo:\n```python\ndef add(a, b:\n    0\n```", "invalid"),
        ("code", '«DRAFTJSON»\nSo:\n{"code": "def add(a, b:"}', "invalid"),
        ("tests", f"{OLDTESTS}\nCorrected:\n```python\n«TESTS»\n```", "invalid"),
        ("tests", f"{OLDTESTS}\nBetter:\n```python\ndef test_add():\n    asse", "truncated"),
    ],
)
def test_m13_an_earlier_version_is_never_taken(kind: str, text: str, reason: str) -> None:
    event = event_of(kind, filled(text))
    assert isinstance(event, e.AnswerRejected), event
    assert event.reason == reason


@pytest.mark.parametrize(
    "remark",
    ["# ... existing code ...", "# rest of the file unchanged", "# (same as before)"],
)
def test_m14_a_part_of_the_code_is_not_taken_for_all_of_it(remark: str) -> None:
    for text in (f"```python\n{remark}\n{CODE}\n```", json.dumps({"code": f"{CODE}\n{remark}"})):
        event = event_of("code", text)
        assert isinstance(event, e.AnswerRejected), event
        assert "line" in event.detail
    assert read_as("code", f'```python\nA = """\n{remark}\n"""\n{CODE}\n```') is not None
    assert read_as("code", f"{CODE}  # not the rest of the file") is not None
    assert read_as("tests", f"```python\n{remark}\n{TESTS}\n```") is None


@pytest.mark.parametrize("text", ["\n", "</think>\n", "<think>\nx\n</think>\n", "User: a\n", '{" '])
def test_m15_the_turns_of_a_long_text_are_found_at_once(text: str) -> None:
    """A pattern that goes over the rest of the text from each place of it would never end."""
    assert read_as("code", text * (400_000 // len(text))) is None
