"""Diffs of requests and events that a person can read."""

from __future__ import annotations

from difflib import unified_diff
from itertools import groupby
from typing import Any

from codetape.states.values import canonical


def difference_of(
    expected: Any, found: Any, names: tuple[str, str] = ("tape", "today")
) -> tuple[str, int]:
    """Return a unified diff of two JSON values, and in how many lines they differ."""
    lines = list(unified_diff(_lines(expected), _lines(found), *names, lineterm="", n=2))
    return "\n".join(lines), _changed(lines[2:])


def _changed(lines: list[str]) -> int:
    """Count changed lines; one that stands in the place of another counts once."""
    total = 0
    for changed, run in groupby(lines, key=lambda line: line[0] in "+-"):
        signs = [line[0] for line in run] if changed else []
        total += max(signs.count("+"), signs.count("-"))
    return total


def _lines(value: Any, path: str = "") -> list[str]:
    """Write a JSON value as one line for each fact, and a long text as its own lines.

    Items of a list bear no numbers, or one more of them would change every line after it.
    """
    if isinstance(value, dict) and value:
        dot = f"{path}." if path else ""
        return [line for key in sorted(value) for line in _lines(value[key], f"{dot}{key}")]
    if isinstance(value, list) and value:
        return [line for item in value for line in _lines(item, f"{path}[]")]
    if isinstance(value, str) and "\n" in value:
        return [f"{path}:", *(f"  {line}" for line in value.split("\n"))]
    return [f"{path}: {canonical(value)}"]


def readable_request(body: Any) -> Any:
    """Return the stored body of a request with each message of a prompt as one text."""
    match body:
        case {"call": {"messages": [*messages], **call}, **rest}:
            return {**rest, "call": {**call, "messages": [_as_sent(m) for m in messages]}}
    return body


def _as_sent(message: Any) -> Any:
    match message:
        case {"role": str(role), "parts": [*parts]}:
            return {role: "\n\n".join(map(str, parts))}
    return message


def in_words(expected: Any, found: Any, lines: int) -> str:
    """Say where two requests of one name differ; both as `readable_request` makes them."""
    where = f"the {expected['request']} request"
    match expected, found:
        case {"call": {"messages": _, **one}}, {"call": {"messages": _, **other}}:
            where = f"the {one.get('kind')} {'prompt' if one == other else 'call'}"
    return f"{where} differs in {counted(lines)}"


def counted(lines: int) -> str:
    """Return "1 line", "2 lines"."""
    return "1 line" if lines == 1 else f"{lines} lines"
