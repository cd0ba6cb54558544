"""A model and a sandbox that answer as a reference case scripts it."""

from __future__ import annotations

import ast
import json
from collections import Counter
from typing import Any

from codetape.engine.ports import LlmError
from codetape.states.failures import base_id
from codetape.states.values import (
    Answer,
    BuildFailure,
    CallFailure,
    ImageRef,
    ImageSpec,
    LlmCall,
    RunOutcome,
    RunSpec,
    Usage,
)
from tests.reference.outcomes import build_outcome, is_of_another_build, run_outcome

CODE = "def add(a, b):\n    return a + b"
TESTS = """import pytest
from solution import add


def test_a():
    assert add(1, 2) == 3


def test_b():
    assert add(0, 0) == 0


@pytest.mark.parametrize("x", [1, 2])
def test_c(x):
    assert add(x, 1) == x + 1"""

DEFAULTS: dict[str, Any] = {
    "plan": {"reply": {"description": "default plan", "approach": "default approach"}},
    "code": {"reply": {"language": "python", "code": CODE, "system_packages": []}},
    "detect_packages": {"reply": {"packages": []}},
    "tests": {"text": TESTS},
    "tests_structured": {"reply": {"test_code": TESTS}},
    "diagnosis": {"reply": {"failures": []}},
    "verify_logic": {"reply": {"all_fixes_applied": True, "explanation": ""}},
    "verify_tests": {"reply": {"all_fixes_applied": True, "explanation": ""}},
    "fix_tests": {"auto_patch": True},
    "replace_package": {"reply": {"replacement": None}},
    "constraint_parse": {
        "reply": {"column_name": "", "check_type": "none", "parameters": {}, "explanation": ""}
    },
    "build_image": {"ok": "auto"},
    "run_tests": {"exit_code": "0", "output": "3 passed in 0.01s"},
}
"""What a kind answers whose script is used up."""

THEIR_KIND = {
    "verify_code": "verify_logic",
    "patch_tests": "fix_tests",
    "parse_constraint": "constraint_parse",
}
"""Our kinds of calls to theirs, where the names differ."""

PASSING = ("Timeout", "RateLimit", "APIError", "ServiceUnavailable", "InternalServer", "Connection")
"""Words in the name of an exception whose call may succeed later."""


class Script:
    """The queues of one case."""

    def __init__(self, script: dict[str, list[Any]]) -> None:
        self._script = script
        self._used: Counter[str] = Counter()

    def next(self, kind: str) -> Any:
        """Take the next item of a kind, or its default."""
        items, used = self._script.get(kind, []), self._used[kind]
        self._used[kind] += 1
        return items[used] if used < len(items) else DEFAULTS[kind]


class CaseLlm:
    """Answers from a script; implements `Llm`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._patches = 0
        self.kinds: list[str] = []

    async def complete(self, call: LlmCall) -> Answer:
        self.kinds.append(call.kind)
        kind = THEIR_KIND.get(call.kind, call.kind)
        if kind == "tests" and any(message.role == "assistant" for message in call.messages):
            kind = "tests_structured"
        item = self._script.next(kind)
        if kind == "code":
            item = _with_packages(item, self._script.next("detect_packages"))
        if "raise" in item:
            raise LlmError(_failure(item))
        if item.get("auto_patch"):
            self._patches += 1
            item = {"reply": _auto_patch(call, self._patches)}
        return Answer(text=_text(item), finish_reason="stop", usage=_usage(item), model="case")


def _text(item: dict[str, Any]) -> str | None:
    return json.dumps(item["reply"]) if "reply" in item else item["text"]


def _usage(item: dict[str, Any]) -> Usage:
    tokens = item.get("usage", [10, 1])
    return Usage() if tokens is None else Usage(input_tokens=tokens[0], output_tokens=tokens[1])


def _failure(item: dict[str, Any]) -> CallFailure:
    passing = any(word in item["raise"] for word in PASSING)
    reason = "server_error" if passing else "bad_request"
    message = f"{item['raise']}: {item.get('message', '')}"
    return CallFailure.model_validate({"reason": reason, "message": message, "retryable": passing})


def _with_packages(item: dict[str, Any], detected: dict[str, Any]) -> dict[str, Any]:
    """Put the packages that a call of its own detected into the code answer."""
    reply, found = item.get("reply"), detected.get("reply")
    if not isinstance(reply, dict) or not isinstance(found, dict):
        return item
    packages = found.get("packages")
    if not isinstance(packages, list) or not all(isinstance(name, str) for name in packages):
        return item
    return {**item, "reply": {**reply, "packages": packages}}


def _auto_patch(call: LlmCall, number: int) -> dict[str, Any]:
    """Patch each test that the prompt calls failing: its own source and one more line."""
    parts = [part for message in call.messages for part in message.parts]
    tests = next(part for part in parts if part.startswith("## test_solution.py"))
    source = tests.split("\n", 2)[2].rpartition("```")[0].rstrip("`")
    asked = next(part for part in parts if part.startswith("## Repair these tests"))
    lines = asked.split("\n")
    names = sorted({base_id(line[4:]) for line in lines if line.startswith("### ")})
    patches = [{"test_name": n, "fixed_code": _extended(source, n, number)} for n in names]
    return {"patches": patches}


def _extended(source: str, name: str, number: int) -> str:
    short = name.rsplit("::", maxsplit=1)[-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == short:
            return f'{ast.unparse(node)}\n    assert "fix_tests call {number}"'
    return f"def {short}():\n    assert True"


class CaseSandbox:
    """Builds and runs from a script; implements `Sandbox`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._checked = False
        self._built = 0
        self.builds: list[ImageSpec] = []
        self.runs: list[RunSpec] = []

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        if not self._checked:  # is there a sandbox? Theirs never asked
            self._checked = True
            return ImageRef(ref="base", spec_key=spec.key, python="3.11")
        self.builds.append(spec)
        item = self._script.next("build_image")
        while is_of_another_build(item, spec):
            item = self._script.next("build_image")
        outcome = build_outcome(item, spec, self._built + 1)
        self._built += isinstance(outcome, ImageRef)
        return outcome

    async def run(self, spec: RunSpec) -> RunOutcome:
        self.runs.append(spec)
        return run_outcome(self._script.next("run_tests"), spec)

    async def close(self) -> None:
        """Nothing to free."""
