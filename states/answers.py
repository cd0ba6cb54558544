"""The shapes of a model's answers, and reading an answer into its shape.

The schema of a shape is sent where the model takes one and asked for in the prompt where it does not;
an answer is validated here either way.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from codetape.states.fences import fenced_blocks, has_open_fence
from codetape.states.texts import storable
from codetape.states.values import Answer


def _listed(value: object) -> object:
    """A null list is an empty one; a bare string is refused, it would fall apart into letters."""
    return [] if value is None else value


def _worded(value: object) -> object:
    """No words are no reason to ask again."""
    return "" if value is None else value


Texts = Annotated[list[str], BeforeValidator(_listed)]
Words = Annotated[str, BeforeValidator(_worded)]


class Shape(BaseModel):
    """Base of the shapes; fields that we did not ask for are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class PlanShape(Shape):
    description: str
    approach: str


class CodeShape(Shape):
    language: str = "python"
    code: str
    packages: Texts = []
    system_packages: Texts = []


class TestsShape(Shape):
    __test__ = False

    test_code: str


class FailureShape(Shape):
    test_name: str
    error_message: Words = ""
    expected_behavior: Words = ""
    actual_behavior: Words = ""
    root_cause: Words = ""
    suggested_fix: Words = ""
    error_type: Literal["environment", "logic", "test_error"]


class DiagnosisShape(Shape):
    failures: list[FailureShape]
    needs_system_packages: Texts = []
    needs_language_packages: Texts = []
    needs_additional_commands: Texts = []


class VerificationShape(Shape):
    all_fixes_applied: bool
    applied_fixes: Texts = []
    missing_fixes: Texts = []
    explanation: Words = ""


class PatchShape(Shape):
    test_name: str
    fixed_code: str


class PatchesShape(Shape):
    patches: list[PatchShape]


class ReplacementShape(Shape):
    replacement: str | None = None


class ConstraintShape(Shape):
    column_name: str
    check_type: Literal["greater_than", "less_than", "between", "regex", "isin", "not_null", "none"]
    parameters: dict[str, Any] = Field(default_factory=dict)
    explanation: Words = ""


SHAPES: dict[str, type[Shape]] = {
    "plan": PlanShape,
    "code": CodeShape,
    "tests": TestsShape,
    "diagnosis": DiagnosisShape,
    "verify_code": VerificationShape,
    "verify_tests": VerificationShape,
    "patch_tests": PatchesShape,
    "replace_package": ReplacementShape,
    "parse_constraint": ConstraintShape,
}
"""Kind of call to shape of answer."""


REFUSAL = "the model refused: "
"""How an adapter's note begins that says in which words a model refused."""

_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)


class Unusable(Exception):
    """An answer that cannot be read: `reason` as in AnswerRejected, `detail` for people and models."""

    def __init__(
        self,
        reason: Literal["truncated", "refused", "empty", "malformed", "invalid"],
        detail: str,
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@lru_cache(maxsize=32)
def schema_text(kind: str) -> str:
    """Return the JSON schema of a kind's answer as text, always the same to the byte."""
    return json.dumps(SHAPES[kind].model_json_schema(), sort_keys=True)


S = TypeVar("S", bound=Shape)


def read(answer: Answer, shape: type[S]) -> S:
    """Return the answer in its shape. Raises Unusable.

    The finish reason is looked at before the text: a cut answer is cut, whatever it looks like.
    """
    text = whole_text(answer)
    try:
        return shape.model_validate(json_object(text))
    except ValidationError as error:
        raise Unusable("invalid", _in_words(error)) from error


def whole_text(answer: Answer) -> str:
    """Return the text of an answer that is neither cut nor refused nor empty. Raises Unusable.

    What a model thinks aloud before it answers, as some servers pass it on, is no part of it.
    """
    if answer.finish_reason == "length":
        raise Unusable("truncated", "the answer was cut at the limit of its length")
    if answer.finish_reason == "content_filter":
        raise Unusable("refused", "the provider's filter withheld the answer")
    text = _without_thoughts(answer.text or "")
    if text.strip():
        return text
    if refusal := next((note for note in answer.notes if note.startswith(REFUSAL)), None):
        raise Unusable("refused", refusal)
    raise Unusable("empty", "the answer has no text")


def _without_thoughts(text: str) -> str:
    """Templates of some models open the thoughts themselves, so that only their end is in the text."""
    thoughts, end, rest = text.partition("</think>")
    if end and not thoughts.lstrip().startswith(("{", "`", "~")):
        return rest
    if text.lstrip().startswith("<think>"):
        raise Unusable("truncated", "the answer ends among the thoughts of the model")
    return text


def json_object(text: str) -> object:
    """Return the JSON in `text`: the text itself, the longest fenced block that is JSON, or an object
    that stands on lines of its own between words."""
    for candidate in sorted({text.strip(), *fenced_blocks(text)}, key=lambda t: (-len(t), t)):
        try:
            return storable(json.loads(candidate, strict=False))
        except (ValueError, RecursionError):
            continue
    if has_open_fence(text):
        raise Unusable("truncated", "a fenced block is not closed")
    return _between_words(text)


def _between_words(text: str) -> object:
    """The first object of the text, if its lines hold nothing else. Raises Unusable."""
    opening = _OBJECT.search(text)
    try:
        found, end = _DECODER.raw_decode(text, opening.end() - 1 if opening else len(text))
        value = storable(found)
    except (ValueError, RecursionError):
        value, end = None, 0
    if not value or text[end:].partition("\n")[0].strip():
        raise Unusable("malformed", "the answer is not JSON")
    return value


def _in_words(error: ValidationError) -> str:
    facts = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, fact['loc'])) or 'answer'}: {_reason(fact)}" for fact in facts
    )


def _reason(fact: ErrorDetails) -> str:
    """What is wrong, without the names that our classes have."""
    return "it is no JSON object" if fact["type"] == "model_type" else fact["msg"]
