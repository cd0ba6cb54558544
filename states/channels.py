"""The parts of a model's text that may be its answer: the final channel, thoughts left out.

Some servers pass on the markers of a chat format, and the thoughts before an answer, as content.
"""

from __future__ import annotations

import re

_FINAL = re.compile(
    r"<\|channel\|>\s*final\b[^<\n]*(?:<\|constrain\|>[^<\n]*)?<\|message\|>"  # as it is sent
    r"|(?<=[^\s\w])assistantfinal(?:json|code)?(?=[^a-z])|(?<=[a-z\s])assistantfinal(?=[^a-z])"
)
"""Where the final channel begins: with its markers, or where a server took them out."""

_MARKED = re.compile(r"\s*(?:<\|(?:start|channel)\|>|analysis(?=\S).*?assistantfinal)", re.DOTALL)
"""The beginning of a text in channels: a name of a channel glued to its text proves it."""

_MARKER = r"<\|[a-z_]{2,20}\|>|</s>|<\|?(?:end_of_turn|eot_id|im_end)\|?>"
_ENDINGS = re.compile(rf"(?:\s*(?:{_MARKER}))+\s*$")
_OPENINGS = re.compile(r"\s*<\|(?:im_start|start|start_header_id)\|>[^<\n]*(?:<\|[a-z_]+\|>)?\s*")

_THOUGHTS = re.compile(
    r"\s*(?:<(?:think|thinking|thought|thoughts|reasoning|seed:think)>|\[THINK\]|◁think▷)",
    re.IGNORECASE,
)
_THOUGHTS_END = re.compile(
    r"</(?:think|thinking|thought|thoughts|reasoning|seed:think)>|\[/THINK\]|◁/think▷",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"^[ \t]*(?:`{3,}|~{3,}|\{)", re.MULTILINE)
"""The first fence or object of a text: what stands in it is content and no marker."""


class NoAnswer(ValueError):
    """A text that ends among the thoughts of the model."""


def readings(text: str) -> tuple[str, ...]:
    """Return the parts of `text` that may be the answer, the likeliest one first.

    The text after the last final marker is the answer. Thoughts are left out where they stand before
    the first fence or object; a template may have opened them outside of the text. The whole text
    comes last, for a mark of thoughts may be part of code. Raises NoAnswer.
    """
    if _MARKED.match(text):
        return (_final_channel(text),)
    text = _without_markers(text)
    end = _THOUGHTS_END.search(text)
    opened = _THOUGHTS.match(text)
    if opened and not end:
        raise NoAnswer("the answer ends among the thoughts of the model")
    content = _CONTENT.search(text)
    if end is None or not (opened or content is None or end.start() < content.start()):
        return (text,)
    answer = _without_markers(text[end.end() :])
    return (answer, text) if content else (answer,)


def _final_channel(text: str) -> str:
    found = list(_FINAL.finditer(text))
    if not found:
        raise NoAnswer("the answer ends before its final channel")
    return _without_markers(text[found[-1].end() :])


def _without_markers(text: str) -> str:
    """Return a text without the marks of a chat format around it."""
    return _ENDINGS.sub("", _OPENINGS.sub("", text, count=1) if _OPENINGS.match(text) else text)
