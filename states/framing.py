"""The frame of a prompt: who is asked, in which form, and what was wrong with the last answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pydantic import JsonValue

from codetape.states.answers import SHAPES, schema_text
from codetape.states.session import Session
from codetape.states.values import LlmCall, Message

NONE: Mapping[str, JsonValue] = MappingProxyType({})

LONGEST_TEXT = 6000
"""Characters of an error, a log or a captured output in a prompt."""


def call(
    s: Session,
    kind: str,
    role: str,
    parts: list[str],
    *,
    model: str = "",
    parameters: Mapping[str, JsonValue] = NONE,
) -> LlmCall:
    """Return a call of `kind`. One that has a shape is asked for JSON, others for plain text.

    `model` and `parameters` go before what the job says of the kind and of all calls.
    """
    shaped = kind in SHAPES
    system = [s.job.system_prompt, role, _answer_shape(kind) if shaped else ""]
    return LlmCall(
        kind=kind,
        model=s.job.model_for(kind, s.given_up, model),
        messages=(
            Message(role="system", parts=tuple(part for part in system if part)),
            Message(role="user", parts=tuple(parts)),
            *_answer_repair(s, kind),
        ),
        answer_schema=schema_text(kind) if shaped else None,
        parameters={**s.job.parameters, **parameters},
        seconds=min(s.job.call_seconds, s.job.budget.seconds or s.job.call_seconds),
    )


def _answer_shape(kind: str) -> str:
    fields = ", ".join(SHAPES[kind].model_fields)
    return f"Answer with one JSON object and nothing else. Its fields: {fields}."


def _answer_repair(s: Session, kind: str) -> tuple[Message, ...]:
    """The unusable answer and why it is, so that the next one can be better."""
    if s.rejected_kind != kind:
        return ()
    said = Message(role="assistant", parts=(cut(s.rejected_text) or "(no text)",))
    why = f"This answer cannot be used ({s.rejection}). Answer again, whole, in the form asked for."
    if s.rejection.startswith("truncated"):
        why += " Be shorter: no comments that repeat the code, no text around the JSON."
    return (said, Message(role="user", parts=(why,)))


# --- parts -----------------------------------------------------------------------------------------


def titled(title: str, text: str) -> str:
    """Return a part with its title."""
    return f"## {title}\n{text}"


def bullets(lines: Iterable[str]) -> str:
    """Return a list, one line each."""
    return "\n".join(f"- {line}" for line in lines)


def fenced(source: str) -> str:
    """Fence code with more marks than it holds in a row."""
    marks = "```"
    while marks in source:
        marks += "`"
    return f"{marks}python\n{source}{marks}"


def cut(text: str) -> str:
    """Cut a long text in the middle, at line ends where there are some."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    head, tail = text[:half], text[-half:]
    head = head.rpartition("\n")[0] or head
    tail = tail.partition("\n")[2] or tail
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def rejected_packages(s: Session) -> list[str]:
    """Say which packages cannot be had, and what to use instead."""
    if not s.rejected:
        return []
    lines = (f"{r.name}: use {r.replacement}" if r.replacement else r.name for r in s.rejected)
    return [titled("These cannot be installed; do without them", bullets(lines))]
