"""Code that a model has left out of a file: a remark or an ellipsis stands in its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codetape.states.python_source import parsed, syntax_error

_DOTS = r"(?:\.{3}|\u2026)"
_PART = (
    r"(?:code|file|functions?|methods?|class(?:es)?|imports?|script|implementations?|module|tests?"
    r"|helpers?|logic|solution)"
)
_REMARK = re.compile(
    rf"(?i)^(?:\W*(?:(?:the )?rest|remainder) of (?:the |your |this |my )?(?:\w+ )?{_PART}"
    rf"(?=\W*$|.*\b(?:here|unchanged|same|as (?:before|above|is|it was)|omitted|remains?|stays?)\b)"
    rf"|\W*(?:the )?rest (?:is |remains |stays |of it )*(?:unchanged|(?:the )?same|as before)\b"
    rf"|\W*{_DOTS}\W*(?:(?:your|the|all|other|rest of (?:the )?|my)\s+)*"
    rf"(?:existing|previous|remaining|other|same|unchanged|omitted|original)\b"
    rf"|\W*(?:your |all (?:of )?)?(?:the )?(?:existing|previous|remaining|original|other) {_PART}"
    rf"(?: \w+)?\W*(?:here|unchanged|(?:the )?same|omitted|remains?|stays?|goes here|{_DOTS})"
    rf"|\W*(?:{_PART}|everything)(?: else| above| below)? (?:remains?|stays?|is|are|omitted)\b"
    rf"(?=.*\b(?:unchanged|(?:the )?same|omitted|as before|for brevity)\b)"
    rf"|\W*unchanged\W*$"
    rf"|\W*(?:same|unchanged|as) (?:as )?(?:before|above|in the (?:original|previous))\W*$"
    r")"
)
"""A comment that stands for code; one that only speaks of other code does not match."""


_TO_DO = re.compile(r"(?i)#\W*(?:todo|fixme|(?:add |put |write )?your \w+|implement)")


def left_out(source: str) -> str:
    """Return where code that parses leaves out a part of itself, or an empty text."""
    if syntax_error(source) is not None:
        return ""
    texts = set(_lines_of_texts(source))
    for number, line in enumerate(source.split("\n"), 1):
        remark = line.strip()
        if remark.startswith("#") and number not in texts and _REMARK.match(remark.lstrip("# \t")):
            return (
                f"line {number} stands for code that is left out ({remark[:80]}); write all of it"
            )
    if name := next(_empty(parsed(source).body, source.split("\n")), ""):
        return f"{name} has no body; write all of it"
    return ""


def _lines_of_texts(source: str) -> Iterator[int]:
    """Yield the lines that a text of several lines has in code."""
    if '"""' not in source and "'''" not in source:
        return
    for node in ast.walk(parsed(source)):
        is_text = isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        if is_text and isinstance(node, ast.expr):
            yield from range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)


def _empty(body: list[ast.stmt], lines: list[str]) -> Iterator[str]:
    """Yield the functions of a module that are still to be written; overloads have decorators."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.decorator_list:
            continue
        idle = [s for s in node.body if isinstance(s, ast.Pass) or _constant(s) is not None]
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        is_to_do = isinstance(node.body[-1], ast.Pass) and _TO_DO.search(text)
        if len(idle) == len(node.body) and (_constant(node.body[-1]) is ... or is_to_do):
            yield node.name


def _constant(statement: ast.stmt) -> object:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) else None
