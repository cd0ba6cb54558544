"""The shapes of a model's answers, and reading an answer into its shape.

The schema of a shape is sent where the model takes one and asked for in the prompt where it does not;
an answer is validated here either way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from codetape.states.channels import NoAnswer, readings
from codetape.states.fences import has_open_fence, lines_ended, open_block
from codetape.states.json_text import FoundValue, ends_in_json, is_json, json_values
from codetape.states.values import Answer


def _listed(value: object) -> object:
    """A null list is an empty one; a bare string is refused, it would fall apart into letters."""
    return [] if value is None else value


def _worded(value: object) -> object:
    """No words are no reason to ask again."""
    return "" if value is None else value


def _in_lines(value: object) -> object:
    """A list of lines is their text."""
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(line.removesuffix("\n") for line in value)
    return value


Text = Annotated[str, BeforeValidator(_in_lines)]
Texts = Annotated[list[str], BeforeValidator(_listed)]
Words = Annotated[str, BeforeValidator(_worded)]


class Shape(BaseModel):
    """Base of the shapes; fields that we did not ask for are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _names_in_any_case(cls, value: object) -> object:
        """Take `Code` for `code`, where that is missing."""
        if not isinstance(value, dict):
            return value
        lower = {str(name).lower(): name for name in value if name not in cls.model_fields}
        missing = [name for name in cls.model_fields if name in lower and name not in value]
        return {**value, **{name: value[lower[name]] for name in missing}} if missing else value

    _repairs: tuple[str, ...] = PrivateAttr(default=())
    _end: int = PrivateAttr(default=0)

    @property
    def end(self) -> int:
        """Where its JSON ends in the text of the answer."""
        return self._end

    def note_end(self, end: int) -> None:
        """Keep where it ends; it is no part of the value."""
        self._end = end

    @property
    def repairs(self) -> tuple[str, ...]:
        """What a lenient reader changed in the form of the answer."""
        return self._repairs

    def note_repairs(self, repairs: tuple[str, ...]) -> None:
        """Keep what was repaired; it is no part of the value."""
        self._repairs = repairs


class PlanShape(Shape):
    description: Text
    approach: Text


class CodeShape(Shape):
    language: str = "python"
    code: Text
    packages: Texts = []
    system_packages: Texts = []


class TestsShape(Shape):
    __test__ = False

    test_code: Text


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
    fixed_code: Text


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


KNOWN_ENDS = (None, "stop", "length", "content_filter", "tool_calls", "function_call")
"""Reasons why an answer ended; None was not told."""

CUTS = ("malformed", "empty")
"""How an answer reads that was cut."""

VALUES = 500
"""Values of an answer that are looked at, the last ones."""

WRAPPER = 8
"""Members that a value around an answer has at most."""

NESTED = 5
"""Values around an answer, as the JSON of an API has them."""

_CUT_BY_US = re.compile(r"\n\[… \d+ characters left out …\]\n")
LONG = 1_000_000
"""Characters of a text whose middle may be left out."""


_LATER_CODE = re.compile(
    r'^[ \t]*\{\s*"(?:test_)?code"\s*:\s*"[^{}]{0,400}?\b(?:def|import|class) ', re.MULTILINE
)
"""JSON with code in it: what follows on an answer and cannot be read is a later version of it."""

NOT_CLOSED = "a fenced block is not closed"


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


class LastUnreadable(Unusable):
    """An answer whose last version cannot be read: an earlier one in it is not the answer."""


S = TypeVar("S", bound=Shape)
T = TypeVar("T")


def read(answer: Answer, shape: type[S]) -> S:
    """Return the answer in its shape. Raises Unusable.

    The finish reason is looked at before the text: a cut answer is cut, whatever it looks like.
    """
    return first_readable(answer, lambda text: shaped(text, shape))


def first_readable(answer: Answer, read_text: Callable[[str], T]) -> T:
    """Return what the likeliest part of an answer that can be read says. Raises Unusable.

    The reason is that of the likeliest part, if none can be read. An answer that ended for a reason
    that is unknown, and can't be read, was cut.
    """
    first: Unusable | None = None
    for text in _readings(answer):
        try:
            return read_text(text)
        except Unusable as why:
            first = first or why
    assert first is not None, "an answer has a part, or there is a reason for it"
    if answer.finish_reason not in KNOWN_ENDS and first.reason in CUTS:
        raise Unusable("truncated", f"the answer ended with {answer.finish_reason!r}") from None
    raise first


def whole_text(answer: Answer, fits: Callable[[str], bool] = lambda _: True) -> str:
    """Return the likeliest part of an answer that fits, or else the likeliest. Raises Unusable."""
    texts = _readings(answer)
    return next(filter(fits, texts), texts[0])


def _readings(answer: Answer) -> tuple[str, ...]:
    if answer.finish_reason == "length":
        raise Unusable("truncated", "the answer was cut at the limit of its length")
    if answer.finish_reason == "content_filter":
        raise Unusable("refused", "the provider's filter withheld the answer")
    text = answer.text or ""
    if len(text) >= LONG and _CUT_BY_US.search(text):
        raise Unusable("truncated", f"the answer is longer than {LONG:,} characters")
    try:
        texts = tuple(filter(str.strip, readings(lines_ended(text))))
    except NoAnswer as why:
        raise Unusable("truncated", str(why)) from None
    if texts:
        return texts
    if refusal := next((note for note in answer.notes if note.startswith(REFUSAL)), None):
        raise Unusable("refused", refusal)
    if answer.finish_reason not in KNOWN_ENDS:
        raise Unusable("truncated", f"the answer ended with {answer.finish_reason!r}")
    raise Unusable("empty", "the answer has no text")


def shaped(text: str, shape: type[S], fits: Callable[[S], bool] = lambda _: True) -> S:
    """Return the value in `text` that fits best; of several, the last. Raises Unusable."""
    reason, second = "", None
    for found in json_values(text):
        made = [one for value in found[-VALUES:] for one in _made(value, shape)]
        ranks = [(fits(one), bool(one.model_fields_set)) for one in made]
        best = [one for one, rank in zip(made, ranks, strict=True) if rank == max(ranks)]
        if best and max(ranks) == (True, True):
            return _if_whole(text, best[-1])
        second = second or (best[-1] if best else None)
        stated = [one.value for one in found if not one.is_among_words]
        reason = reason or (_reason_of(stated[-1], shape) if stated else "")
    if second is not None:
        return _if_whole(text, second)
    if reason:
        raise Unusable("invalid", reason)
    if has_open_fence(text):
        raise Unusable("truncated", NOT_CLOSED)
    raise Unusable("malformed", "the answer is not JSON")


def _if_whole(text: str, made: S) -> S:
    """Return a value unless another one begins after it and is cut: that one was the answer."""
    end = made.end
    last = open_block(text) if text[end:].strip() else None
    if last and last.start >= end:
        raise Unusable("truncated", NOT_CLOSED)
    if ends_in_json(text[end:]):
        raise Unusable("truncated", "the last JSON of the answer is not closed")
    if any(not is_json(text, later.start()) for later in _LATER_CODE.finditer(text, end)):
        raise LastUnreadable("malformed", "the last JSON of the answer cannot be read")
    return made


def _made(found: FoundValue, shape: type[S]) -> Iterator[S]:
    """Yield a value in its shape, or those inside of it that have a field of the shape."""
    values = list(islice(_unwrapped(found.value), VALUES))
    made = [(value, one) for value in values for one in _validated(value, shape)]
    named = [(value, one) for value, one in made if one.model_fields_set]
    outer = [one for value, one in made if value is found.value]
    best = [one for value, one in named if value is found.value] or [one for _, one in named]
    for one in best or outer:
        one.note_repairs(found.repairs)
        one.note_end(found.end)
        yield one


def strings_in(text: str, field: str) -> list[str]:
    """Return the texts that stand in the JSON of a text, unless a value of it has the field."""
    values = next(filter(None, json_values(text)), [])
    every = (value for found in values[-VALUES:] for value in _unwrapped(found.value))
    inner = list(islice(every, VALUES))
    if any(isinstance(value, dict) and field in value for value in inner):
        return []
    return [value for value in inner if isinstance(value, str)]


def _validated(value: object, shape: type[S]) -> Iterator[S]:
    with suppress(ValidationError):
        yield shape.model_validate(value)


def _unwrapped(value: object, depth: int = NESTED) -> Iterator[object]:
    """Yield a value, then those inside of it, as calls of tools and lists of one have them."""
    if isinstance(value, str) and value.lstrip().startswith(("{", '"')):
        value = next((one.value for found in json_values(value) for one in found), value)
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if depth and len(inner) <= WRAPPER:
        for one in inner:
            yield from _unwrapped(one, depth - 1)


def _reason_of(value: object, shape: type[Shape]) -> str:
    try:
        shape.model_validate(value)
    except ValidationError as error:
        return _in_words(error)
    return ""


def _in_words(error: ValidationError) -> str:
    facts = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, fact['loc'])) or 'answer'}: {_reason(fact)}" for fact in facts
    )


def _reason(fact: ErrorDetails) -> str:
    """What is wrong, without the names that our classes have."""
    return "it is no JSON object" if fact["type"] == "model_type" else fact["msg"]
