"""The code of a tool in the answer of a persona, among thoughts and drafts."""

from __future__ import annotations

import pytest

from codetape.states import events as e
from codetape.states.tools import requests as q
from codetape.states.tools.reading import interpret
from codetape.states.values import Answer, LlmCall
from tests.support.answer_texts import CODE, DRAFT, MARKED

LINES = 'TAGS = """\n</think>\n"""\n\n\ndef add(a, b):\n    return a + b'
FIX = q.FixCode(call=LlmCall(kind="fix", model="m", messages=()))


def fixed(text: str) -> str | None:
    event = interpret(FIX, Answer(text=text, finish_reason="stop"))
    return event.source.rstrip("\n") if isinstance(event, e.CodeWritten) else None


@pytest.mark.parametrize("code", [CODE, MARKED, LINES])
def test_code_of_a_tool_may_hold_the_marks_of_thoughts(code: str) -> None:
    fence = f"```python\n{code}\n```"
    for text in (code, fence, f"It adds:\n\n{fence}\nDone.", f"<think>Hm.</think>\n{fence}"):
        assert fixed(text) == code


def test_a_draft_of_a_tool_is_not_its_code() -> None:
    draft, code = f"```python\n{DRAFT}\n```", f"```python\n{CODE}\n```"
    assert fixed(f"Old:\n{draft}\nFixed:\n{code}") == CODE
    assert fixed(f"<think>\n{draft}\n</think>\n{code}") == CODE
    assert fixed(f"{draft}\nNo.\n</think>\n\n{code}") == CODE
