"""The parts of a model's text that may be its answer: the final channel, thoughts left out.

Some servers pass on the markers of a chat format, and the thoughts before an answer, as content.
"""

from __future__ import annotations

import html
import re
from itertools import islice

from codetape.states.json_text import ends_in_json
from codetape.states.python_source import syntax_error

_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<\n]*(?:<\|constrain\|>[^<\n]*)?<\|message\|>")
_STRIPPED = re.compile(
    r"(?<=[^\s\w])assistantfinal(?:json|code)?(?=[^a-z])|(?<=[a-z\s])assistantfinal(?=[^a-z])"
)
"""Where the final channel begins after a server took its markers out."""

_MARKED = re.compile(r"\s*(?:<\|(?:start|channel)\|>|analysis(?=\S).*?assistantfinal)", re.DOTALL)
"""The beginning of a text in channels: a name of a channel glued to its text proves it."""

_BARS = "[|\uff5c]"  # DeepSeek writes the wide one
_MARKER = (
    rf"<{_BARS}[\w\u2581]{{2,40}}{_BARS}>|</?s>|<(?:end_of_turn|eos|start_of_turn>model|bos)>"
    r"|\[/?INST\]"
)
_ENDING = re.compile(rf"(?:{_MARKER})\Z")
_OPENINGS = re.compile(
    rf"(?:\s*(?:<{_BARS}(?:im_start|start|start_header_id){_BARS}>[^<\n]*|{_MARKER}))+\s*"
)

_NAME = (
    r"(?:\w{1,20}[:_-])?"
    r"(?:think\w{0,20}|thoughts?|reasoning\w{0,20}|scratch_?pad|reflections?|(?:inner_)?monologue)"
)
_OPENED = (
    rf"(?:<{_NAME}(?:\s[^<>\n]*)?>|\[THINK\]|◁{_NAME}▷|<\|channel>thought\b|<unused94>thought\b"
    rf"|<{_BARS}(?:START_THINKING|begin_of_thought|think){_BARS}>)"
)
_THOUGHTS = re.compile(rf"\s*{_OPENED}", re.IGNORECASE)
_THOUGHTS_END = re.compile(
    rf"</{_NAME}>|\[/THINK\]|◁/{_NAME}▷|<channel\|>|<unused95>"
    rf"|<{_BARS}(?:END_THINKING|end_of_thought|/think){_BARS}>",
    re.IGNORECASE,
)
_LATER = re.compile(rf"^[ \t]*{_OPENED}(?P<alone>[ \t]*$)?", re.IGNORECASE | re.MULTILINE)
"""Thoughts that begin a line, after words or after an answer."""
_OWN_LINE = re.compile(rf"^[ \t]*(?:{_THOUGHTS_END.pattern})[ \t]*$", re.IGNORECASE | re.MULTILINE)
_CONTENT = re.compile(r"^[ \t]*(?:`{3,}|~{3,}|\{)", re.MULTILINE)
"""The first fence or object of a text: what stands in it is content and no marker."""

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^`\n]*)$", re.MULTILINE)

_TAGGED = re.compile(r"\s*<([A-Za-z][\w.:-]*)(?:[ =][^<>\n]*)?>(?P<inside>.*)</\1>\s*", re.DOTALL)
"""A text inside of one tag."""


_USER = (
    r"(?:<\|im_start\|>\s*(?:user|system|tool)\b|<\|start_header_id\|>\s*user\b|<start_of_turn>\s*user\b"
    rf"|<\|start\|>\s*user\b|<{_BARS}(?:user|User|USER){_BARS}>|<\|USER_TOKEN\|>|(?:<s>\s*)?\[INST\]"
    r"|<(?:tool_response|tool_result|function_results?)>)"
)
_NEXT_TURN = re.compile(rf"(?:{_MARKER})\s*{_USER}|^[ \t]*{_USER}", re.MULTILINE)
"""Where a server has let a model go on, into a next turn of its user."""

_TURN_IN_WORDS = re.compile(
    r"^(?:#{2,4} ?(?:Instruction|Human|User)s?:?[ \t]*$|(?:User|USER|Human|HUMAN):[ \t])",
    re.MULTILINE,
)
_ANSWER_IN_WORDS = re.compile(
    r"^(?:#{2,4} ?(?:Response|Assistant|AI):?[ \t]*$|(?:Assistant|ASSISTANT|AI):(?:[ \t]|$))",
    re.MULTILINE,
)

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#0?39|#x27);")

MARKERS = 4
"""Final markers that are tried, the last ones."""


class NoAnswer(ValueError):
    """A text that ends among the thoughts of the model."""


def readings(text: str) -> tuple[str, ...]:
    """Return the parts of `text` that may be the answer, the likeliest one first.

    The text after the last final marker is the answer. Thoughts are left out where they stand at the
    beginning, or before the first fence or object; a template may have opened them outside of the
    text. A mark of thoughts after it may be part of code, so the whole text comes too. The first turn
    of a text that goes on with another one of the user comes first. A text that was escaped for a page
    comes unescaped, the last one. Raises NoAnswer.
    """
    own = _own_turn(text)
    found = (*_parts(own), *(_parts(text) if own != text else ()))
    pages = (html.unescape(one) for one in found if _ENTITY.search(one))
    return tuple(dict.fromkeys((*found, *pages)))


def _own_turn(text: str) -> str:
    """Return the text before the next turn of a user, or all of it."""
    at = len(text)
    if (marked := _NEXT_TURN.search(text)) and text[: marked.start()].strip():
        at = marked.start()
    said = _TURN_IN_WORDS.search(text)
    if said and text[: said.start()].strip() and _ANSWER_IN_WORDS.search(text, said.end()):
        at = min(at, said.start())
    return text[:at]


def _parts(text: str) -> tuple[str, ...]:
    if _MARKED.match(text):
        return _with_inside(_final_channels(text))
    channels = [found for found in _CHANNEL.finditer(text) if _begins_final(text, found)]
    final = (_without_markers(text[channels[-1].end() :]),) if channels else ()
    return _with_inside((*final, *_thoughtful(_without_markers(text))))


def _begins_final(text: str, channel: re.Match[str]) -> bool:
    """True for a final channel that follows the end of another; in code it stands in quotes."""
    return channel[1] == "final" and _follows_a_channel(text, channel)


def _follows_a_channel(text: str, channel: re.Match[str]) -> bool:
    before = text[max(0, channel.start() - 60) : channel.start()].rstrip()
    return before.endswith(("|>", "assistant"))


def _thoughtful(text: str) -> tuple[str, ...]:
    opened = False
    while start := _THOUGHTS.match(text):
        if (end := _THOUGHTS_END.search(text, start.end())) is None:
            raise NoAnswer("the answer ends among the thoughts of the model")
        opened, text = True, _without_markers(text[end.end() :])
    if syntax_error(text) is None:  # code: marks stand in its texts
        return (text,)
    text = _without_later_thoughts(text)
    own = list(_OWN_LINE.finditer(text))
    if own:
        return (_without_markers(text[own[-1].end() :]), text)
    end, content = _THOUGHTS_END.search(text), _CONTENT.search(text)
    if opened or end is None or (content and content.start() < end.start()):
        return (text,)
    after = _without_markers(text[end.end() :])
    return (after, text) if text[end.end() :].startswith("\n") else (text, after)


def _without_later_thoughts(text: str) -> str:
    """Return a text without the thoughts after words or after the answer. Raises NoAnswer."""
    kept, at = [], 0
    for later in islice(_LATER.finditer(text), MARKERS * 4):
        if later.start() < at or _is_content(text[at : later.start()]):
            continue
        end = _THOUGHTS_END.search(text, later.end())
        if end is None and later["alone"] is not None:
            raise NoAnswer("the answer ends among the thoughts of the model")
        if end is not None:
            kept.append(text[at : later.start()])
            at = end.end()
    return "".join((*kept, text[at:]))


def _is_content(before: str) -> bool:
    """True if a text ends in the middle of a fence, of a tag of code, or of JSON."""
    tag = before.rpartition("<code>")
    if tag[1] and "</code>" not in tag[2]:
        return True
    open_fences: list[str] = []
    for fence in _FENCE.finditer(before):
        if open_fences and not fence[2] and fence[1].startswith(open_fences[-1]):
            open_fences.pop()
        else:
            open_fences.append(fence[1])
    return bool(open_fences) or ends_in_json(before)


def _with_inside(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts, each after the text inside of the tags that hold all of it."""
    found: list[str] = []
    for text in texts:
        inner = [text]
        while len(inner) < 4 and (tagged := _TAGGED.fullmatch(inner[0])):
            inner.insert(0, _plain(tagged["inside"]))
        found += inner
    return tuple(dict.fromkeys(found))


def _plain(inside: str) -> str:
    """Return the text inside of a tag, without what XML puts around it."""
    text = inside.strip()
    if text.startswith("<![CDATA[") and text.endswith("]]>"):
        text = text[9:-3]
    return text.strip("\n")


def _final_channels(text: str) -> tuple[str, ...]:
    """Return the text after the last final marker, or after the last of one that is no analysis.

    A marker may be part of code; so the texts after the ones before it come too.
    """
    channels = [found for found in _CHANNEL.finditer(text) if found[1] != "analysis"]
    named = [found for found in channels if found[1] == "final"] or channels
    named = [found for found in named if _follows_a_channel(text, found)] or named
    found = named or list(_STRIPPED.finditer(text))
    if not found:
        raise NoAnswer("the answer ends before its final channel")
    after = (_without_markers(text[one.end() :]) for one in reversed(found[-MARKERS:]))
    return tuple(map(_without_later_thoughts, after))


def _without_markers(text: str) -> str:
    """Return a text without the marks of a chat format around it."""
    if opening := _OPENINGS.match(text):
        text = text[opening.end() :]
    while ending := _ENDING.search(text.rstrip()[-60:]):
        text = text.rstrip()[: -len(ending[0])]
    return text
