"""Answers of a model, and calls that bring none: good, cut, of another shape, hostile.

Kinds that codetape does not know are answered by their own JSON schema, or by bodies that the caller
gives for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from codetape.states import requests as r
from codetape.states.failures import base_id
from codetape.states.python_source import defined_tests
from codetape.states.values import Answer, CallFailure, Usage
from codetape.testing.chance import Chance
from codetape.testing.pools import (
    CHECKS,
    FIXES,
    HOSTILE,
    KNOWN_BODIES,
    NEEDS,
    NO_ANSWERS,
    PACKAGES,
    PLAIN_TEXTS,
    SOLUTIONS,
    TEST_FILES,
    WRONG_ANSWERS,
)
from codetape.testing.schemas import by_schema

Bodies = Mapping[str, Sequence[Any]]
"""What a model says to the kinds of call of one's own: JSON values or texts, the best first."""


def answer(chance: Chance, request: r.ModelRequest, bodies: Bodies | None = None) -> Answer:
    """Choose an answer to `request`; `bodies` answer the kinds that they name."""
    if chance.trouble():
        return unusable_answer(chance, request)
    return good_answer(chance, request, bodies)


def good_answer(chance: Chance, request: r.ModelRequest, bodies: Bodies | None = None) -> Answer:
    """Choose an answer in the form that was asked for; what it says may be right or wrong."""
    kind = request.call.kind
    own = (bodies or {}).get(kind) or KNOWN_BODIES.get(kind)
    body = chance.one(own) if own else _body(chance, request)
    return _said(chance, body)


def unusable_answer(chance: Chance, request: r.ModelRequest) -> Answer:
    """Choose an answer that the rules cannot use as it is."""
    if chance.number(2) == 0:
        return truncated_answer(chance, request)
    return malformed_answer(chance, request)


def truncated_answer(chance: Chance, request: r.ModelRequest) -> Answer:
    """Choose an answer that was cut off, or of which nothing came."""
    whole = json.dumps(_body(Chance(()), request))
    reason = chance.one(["length", "content_filter"])
    text = chance.one([whole[: len(whole) // 2], whole[:1], "```json\n" + whole[:-2], None])
    return _paid(chance, Answer(text=text, finish_reason="length" if text else reason))


def malformed_answer(chance: Chance, request: r.ModelRequest) -> Answer:
    """Choose an answer that is no JSON, of another shape, or wrong in what it says."""
    if chance.number(2) == 0:
        return _paid(chance, Answer(text=chance.one(NO_ANSWERS), finish_reason="stop"))
    return _said(chance, chance.one(WRONG_ANSWERS.get(request.call.kind, ({"other": 1},))))


def hostile_answer(chance: Chance, request: r.ModelRequest) -> Answer:
    """Choose an answer that attacks whoever reads it: the whole text, or each of its texts."""
    text = chance.one(HOSTILE)
    if chance.number(2):
        text = json.dumps(_with_texts(_body(chance, request), text))
    return _paid(chance, Answer(text=text, finish_reason="stop"))


def _with_texts(body: Any, text: str) -> Any:
    if isinstance(body, dict):
        return {key: _with_texts(value, text) for key, value in body.items()}
    if isinstance(body, list):
        return [_with_texts(value, text) for value in body]
    return text if isinstance(body, str) else body


def _said(chance: Chance, body: object) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    shapes = (text, f"```json\n{text}\n```", f"Here it is:\n\n```\n{text}\n```\nDone.")
    return _paid(chance, Answer(text=chance.detail(shapes), finish_reason="stop"))


def _paid(chance: Chance, said: Answer) -> Answer:
    tokens = chance.detail([(100, 10), (4000, 700), (None, 5), (None, None)])
    usage = Usage(input_tokens=tokens[0], output_tokens=tokens[1])
    cost = chance.detail([0.25, 0.0, 0.5, None])
    return said.model_copy(update={"usage": usage, "cost": cost, "seconds": 1.5})


def _body(chance: Chance, request: r.ModelRequest) -> Any:
    match request:
        case r.ParseConstraint():
            return chance.one(CHECKS)
        case r.WritePlan():
            return {"description": "Add numbers.", "approach": "One function."}
        case r.WriteCode():
            return _code(chance)
        case r.WriteTests():
            return {"test_code": chance.one(TEST_FILES)}
        case r.VerifyCode(fixes=fixes) | r.VerifyTests(fixes=fixes):
            done = chance.one([True, False])
            missing = chance.one([[], list(fixes[:1])])
            return {"all_fixes_applied": done, "missing_fixes": [] if done else missing}
        case r.PatchTests():
            return _patches(chance, request)
        case r.ReplacePackage():
            return {
                "replacement": chance.one(
                    [None, "numpy", _next(request.rejected), "no name at all"]
                )
            }
        case r.Diagnose():
            return _diagnosis(chance, request)
    if request.call.answer_schema is None:
        return chance.one(PLAIN_TEXTS)
    return by_schema(chance, request.call.answer_schema)


def _code(chance: Chance) -> dict[str, Any]:
    source = chance.one(SOLUTIONS)
    return {
        "code": chance.detail([source, f"````python\n{source}\n````"]),
        "packages": chance.rare([], PACKAGES),
        "system_packages": chance.rare([], [["nolib"], ["libxml2"], ["libxml2", "nolib"]]),
    }


def _next(rejected: str) -> str:
    """Another name that nothing has, for one that was rejected."""
    number = re.match(r"nosuch(\d+)", rejected)
    return f"nosuch{int(number[1]) + 1 if number else 1}"


def _patches(chance: Chance, request: r.PatchTests) -> dict[str, Any]:
    names = sorted({base_id(test) for test in request.failing})
    named = [name for name in names if not chance.trouble()]
    named += ["test_nobody"] if chance.trouble() else []
    return {"patches": [_patch(chance, request.source, name) for name in named]}


def _patch(chance: Chance, source: str, name: str) -> dict[str, str]:
    own, number = own_text(source, name), chance.number(4)
    bodies = (
        f"{own}    assert {number} + len('') == len('x' * {number})\n",
        own.replace("==", "<=" if number % 2 else ">="),
        f"def {name.rpartition('::')[2]}():\n    assert True\n",
        own.replace(":", ""),
        own,
        f"@pytest.mark.skip\n{own}",
        f"{own}    import yaml\n    assert yaml\n",
    )
    return {"test_name": name, "fixed_code": bodies[chance.one([0, 0, 0, 1, 1, 2, 3, 4, 5, 6])]}


def own_text(source: str, name: str) -> str:
    """The text of a test of the pool, moved to the left margin."""
    for test in defined_tests(source):
        if test.id == name:
            lines = source.split("\n")[test.first_line - 1 : test.last_line]
            margin = len(lines[0]) - len(lines[0].lstrip())
            return "".join(f"{line[margin:]}\n" for line in lines)
    return f"def {name}():\n    assert 1 == 1\n"


def _diagnosis(chance: Chance, request: r.Diagnose) -> dict[str, Any]:
    named = [failure.test_id for failure in request.failures if not chance.trouble()]
    named += ["test_nobody"] if chance.trouble() else []
    needs: dict[str, list[str]] = {"packages": [], "commands": []}
    if chance.trouble():
        needs = chance.one(NEEDS)
    return {
        "failures": [_finding(chance, name) for name in named],
        "needs_language_packages": needs["packages"],
        "needs_additional_commands": needs["commands"],
    }


def _finding(chance: Chance, name: str) -> dict[str, Any]:
    return {
        "test_name": name,
        "error_type": chance.one(["logic", "test_error", "logic", "test_error", "environment"]),
        "suggested_fix": chance.one(FIXES),
    }


def call_failure(chance: Chance) -> CallFailure:
    """Choose why a call brought no answer; most calls may be made again."""
    if chance.number(10) == 9:
        return CallFailure(reason="auth", message="the key is refused")
    return chance.one(
        [
            CallFailure(reason="rate_limited", message="429", retryable=True, retry_after=3.0),
            CallFailure(reason="server_error", message="503", retryable=True),
            CallFailure(reason="timeout", message="no answer", retryable=True, seconds=600.0),
        ]
    )
