"""Texts of model answers for tests: the corpus in tests/data/answers and the parts of it."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codetape.states import requests as r
from codetape.states.events import Event
from codetape.states.reading import interpret
from codetape.states.values import Answer, LlmCall

FOLDER = Path(__file__).parents[1] / "data" / "answers"
CODE = "def add(a, b):\n    return a + b"
DRAFT = "def add(a, b):\n    return a - b  # a draft that is longer than the answer, and wrong"
TESTS = (
    "from solution import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
    "def test_zero():\n    assert add(0, 0) == 0"
)
MARKED = (
    'TAG = "</think>"\nFINAL = "<|channel|>final<|message|>"\n\n\ndef add(a, b):\n'
    "    '''Add.\n\n    ```python\n    add(1, 2)\n    ```\n    '''\n"
    '    return {"code": a + b}["code"]'
)
PLAN = {"description": "Add two numbers.", "approach": "One function."}
REQUESTS = {
    "code": r.WriteCode(call=LlmCall(kind="code", model="m", messages=())),
    "tests": r.WriteTests(call=LlmCall(kind="tests", model="m", messages=())),
    "plan": r.WritePlan(call=LlmCall(kind="plan", model="m", messages=())),
}
_CODE_JSON = json.dumps({"code": CODE, "packages": []})
PARTS = {
    "CODE": CODE,
    "DOSCODE": CODE.replace("\n", "\r\n"),
    "NBSP": CODE.replace("    ", "\u00a0" * 4),
    "INDENTED": textwrap.indent(CODE, "   ").strip(),
    "JSON": _CODE_JSON,
    "JSONTEXT": json.dumps(_CODE_JSON),
    "RAWJSON": f'{{"code": "{CODE}"}}',
    "BODY": json.dumps(CODE),
    "SINGLE": repr(CODE),
    "SMART": f"\u201c{json.dumps(CODE)[1:-1]}\u201d",
    "DRAFT": DRAFT,
    "DRAFTJSON": json.dumps({"code": DRAFT}),
    "MARKED": MARKED,
    "MARKEDINDENTED": textwrap.indent(MARKED, "   "),
    "MARKEDJSON": json.dumps({"code": MARKED}),
    "MARKEDBODY": json.dumps(MARKED),
    "TESTS": TESTS,
    "TESTSJSON": json.dumps({"test_code": TESTS}),
    "TESTSBODY": json.dumps(TESTS),
    "TESTSFENCED": json.dumps(f"```python\n{TESTS}\n```"),
    "PLANJSON": json.dumps(PLAN),
    "PLAN": PLAN["description"],
}


def filled(text: str) -> str:
    """Return a text of the corpus with its parts in place."""
    return re.sub("«([A-Z]+)»", lambda found: PARTS[found[1]], text)


def corpus(*files: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, the kind, the text and the expectation of each answer in files of the corpus."""
    for file in files:
        table: dict[str, Any] = tomllib.loads((FOLDER / f"{file}.toml").read_text(encoding="utf-8"))
        for name, text, *reason in table["answers"]:
            expected = filled(reason[0]) if reason else PARTS[table["reads"]]
            yield f"{file}: {name}", table["kind"], filled(text), expected


def event_of(kind: str, text: str | None, finish_reason: str | None = "stop") -> Event:
    """Return the event that an answer is read as."""
    return interpret(REQUESTS[kind], Answer(text=text, finish_reason=finish_reason))


def read_as(kind: str, text: str | None, finish_reason: str | None = "stop") -> str | None:
    """Return the code, the tests or the plan that an answer is read as; None if it is refused."""
    event: Any = event_of(kind, text, finish_reason)
    read = getattr(event, "source", None) or getattr(event, "description", None)
    return None if read is None else read.rstrip("\n")
