"""The Python code in a model's text: chosen among its blocks, or put together from several."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from codetape.states.elisions import left_out
from codetape.states.fences import (
    Block,
    blocks,
    lines_ended,
    read_blocks,
    without_label,
)
from codetape.states.joining import imports_any, joined
from codetape.states.python_source import (
    TOO_DEEP,
    TOO_LONG,
    defined_names,
    defined_tests,
    is_broken,
    parsed,
    syntax_error,
)

TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u2032", "'"),
        **dict.fromkeys("\u00a0\u202f", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", ""),
    }
)
"""Characters of word processors, and what they are in code."""

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#0?39|#x27);")
_ENTITIES = frozenset(["lt", "gt", "amp"])
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_MARK = re.compile(r"\s*(?:</?[\w-]+>|[`~]{3})")
_COMMENT = re.compile(r"\s*#[ \t]*([^\n]{0,100})")
_FILE = re.compile(r"([\w-]+)\.py\b")

_EARLIER = re.compile(
    r"\b(?:original(?:ly)?|previous(?:ly)?|old|earlier|wrong|incorrect|buggy|broken|faulty|bad|never|draft"
    r"|before|first (?:wrote|tried|had|thought|version|attempt)"
    r"|(?:don['\u2019]?t|do not) (?:do|use|write|try)|avoid"
    r"|vorher|bisher\w*|alte?|falsch|avant|ancien(?:ne)?|antes|anterior|было|раньше|старый)\b"
    r"|\bwas:?$|^\W*instead of\b|\binstead of:?$|原|旧|之前|以前",
    re.IGNORECASE | re.MULTILINE,
)
"""Words before a block that say that it is not the answer."""

_EXTRA = re.compile(
    rf"{_EARLIER.pattern}|\b(?:attempt|naive|alternativ|option|example|usage|demo|variant|sketch)",
    re.IGNORECASE | re.MULTILINE,
)
"""Words before a block that say that it is no part of the answer, or perhaps none."""

MOST_LATER = 500
"""Blocks that are looked at on the search for a later version that does not parse."""

INTRODUCTION = 200
"""Characters of the line before a block that may say something of it."""

_BEGINNING = re.compile(
    r"^(?:import \w|from [\w.]+ import |(?:async )?def \w|class \w|@\w)", re.MULTILINE
)
"""The first line of code after words."""

_MARKUP = re.compile(r"[<{]|`{3}|~{3}|\"{3}|'{3}")

Fits = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class FoundCode:
    """Code, how its form was repaired, and why it is not to be used although it parses."""

    text: str
    repairs: tuple[str, ...] = ()
    problem: str = ""


_VERSION = re.compile(r"^\s*(?:async def|def|class|import|from)\s+[A-Za-z_]", re.MULTILINE)


def is_broken_code(text: str) -> bool:
    """True for a text that is meant as code and does not parse."""
    code = find_code(text).text
    return is_broken(code) and _VERSION.search(code) is not None


def python_code(text: str, fits: Fits = lambda _: True) -> str:
    """Return the code in `text`: the fenced block that fits and parses, else the text itself."""
    return find_code(text, fits).text


def find_code(text: str, fits: Fits = lambda _: True) -> FoundCode:
    """Return the code in `text`, or the text itself if it holds none.

    A text that parses as it stands is code; fences inside its strings are left alone. A fence closes
    at a line of at least as many marks of its kind, so a block may hold shorter fences; because models
    do nest fences of equal length, later closing lines are tried too. What does not parse for the
    characters of a word processor, or for those of a page or of a string, is read without them.
    """
    stripped = without_label(lines_ended(text).strip("\n"))
    for repaired, said in _forms(stripped):
        if _parses(repaired):
            return FoundCode(repaired, said)
        if found := [block for block, _ in read_blocks(repaired, _parsing)]:
            return _chosen(repaired, found, fits, said)
    return FoundCode(_after_words(stripped) or _unread(stripped))


def _forms(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a text, and then what it may have been before its characters were changed."""
    yield text, ()
    if text.endswith("\n```"):
        yield text[:-4], ()
    if (plain := text.translate(TYPOGRAPHY)) != text:
        yield plain, ("characters of a word processor in the code were read as those of Python",)
    if _ENTITY.search(text):
        yield html.unescape(text), ("the code was escaped for a page, and was read without that",)
    if "\\n" in text and "\n" not in text:
        unescaped = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), text)
        yield unescaped, ("the code was escaped twice, and was read without that",)


def _parses(text: str) -> bool:
    return syntax_error(text) is None and not (_ENTITY.search(text) and _is_escaped(text))


def _is_escaped(code: str) -> bool:
    """True for code with `a &lt; b` outside of its strings: it parses, and means something else."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitAnd)
        and isinstance(node.right, ast.Name)
        and node.right.id in _ENTITIES
        for node in ast.walk(parsed(code))
    )


def _parsing(text: str) -> bool | None:
    return True if _parses(text) else None


def _after_words(text: str) -> str:
    """Return the code that follows on words alone and ends the text, or an empty text."""
    begin = _BEGINNING.search(text)
    if begin is None or _MARKUP.search(text[: begin.start()]):
        return ""
    code = text[begin.start() :]
    if syntax_error(code) is not None or not defined_names(code):
        return ""
    return "" if _is_word(parsed(code).body[-1]) else code


def _is_word(statement: ast.stmt) -> bool:
    """True for a name alone: words of a language may parse."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Name)


def _unread(text: str) -> str:
    """Return the code that is too deep, too long or too new to be read, so that this is said of it."""
    found = read_blocks(text, lambda code: _is_code(code) or None)
    return found[-1][0].text if found else text


def _is_code(text: str) -> bool:
    problem = syntax_error(text)
    return problem in {TOO_DEEP, TOO_LONG} or (problem is not None and not is_broken(text))


# --- the choice -----------------------------------------------------------------------------------


def _chosen(text: str, found: list[Block], fits: Fits, said: tuple[str, ...]) -> FoundCode:
    """Return the last of the blocks that fit best, with the others that it is one file with.

    A block that fits goes before one that does not, one that is called Python before data that parses,
    and a whole before an excerpt of it. Of several that are left the last one is the answer; of those
    that define nothing, the longest.
    """
    files = [_file(text, block) for block in found]
    ranks = [
        (fits(block.text), file in (None, "solution", "test_solution"), block.is_called_python)
        for block, file in zip(found, files, strict=True)
    ]
    best = [block for block, rank in zip(found, ranks, strict=True) if rank == max(ranks)]
    names = [set(defined_names(block.text)) for block in best]
    if not any(names):
        return FoundCode(max(best, key=lambda block: len(block.text)).text, said)
    whole = [n for n, own in enumerate(names) if own and not any(own < other for other in names)]
    chosen = best[whole[-1]]
    problem = _rivals(text, chosen, best) or _of_files(found, files) or _broken(text, chosen, found)
    source, count = joined(found, chosen, fits, lambda block: _is_extra(text, block))
    joining = (f"code of {count} blocks was put together",) if count > 1 else ()
    return FoundCode(source, (*said, *joining), problem)


def _rivals(text: str, chosen: Block, best: list[Block]) -> str:
    """Return why it is not known which version is meant: the last one is called an earlier one."""
    mine = set(defined_names(chosen.text))
    rivals = [b for b in best if b.text != chosen.text and mine & set(defined_names(b.text))]
    if rivals and _EARLIER.search(_introduction(text, chosen)):
        return (
            "there are several versions of it, and the last one is called an earlier or a wrong one"
        )
    return ""


def _is_extra(text: str, block: Block) -> bool:
    return _EXTRA.search(_introduction(text, block)) is not None


def later_version(text: str, code: str, fits: Fits) -> bool:
    """True if a text has code which is another version of the code that came before the text."""
    later = find_code(text, fits).text
    if not fits(later) or left_out(later):
        return False
    lines = {line.strip() for line in code.splitlines()}
    is_excerpt = all(line.strip() in lines for line in later.splitlines())
    return not is_excerpt and not set(defined_names(code)).isdisjoint(defined_names(later))


def _broken(text: str, chosen: Block, found: list[Block]) -> str:
    """Return that a later version of the code does not parse; an earlier one is not the answer."""
    names = "|".join(map(re.escape, defined_names(chosen.text)))
    version = re.compile(rf"^(?:async def|def|class) (?:{names})\b", re.MULTILINE)
    for block in islice(blocks(text), MOST_LATER):
        if block.start < chosen.end or any(one.start <= block.start < one.end for one in found):
            continue
        if block.is_called_python and version.search(block.text):
            problem = syntax_error(block.text)
            return f"its last version does not parse, {problem}" if problem else ""
    return ""


def _introduction(text: str, block: Block) -> str:
    """Return the words that stand over a block: the line before, a tag, a comment in its first line."""
    tag = re.match(r"[ \t]*<([\w-]+)", text[block.start : block.start + 60])
    comment = _COMMENT.match(block.text)
    words = (_line_before(text, block), tag[1] if tag else "", comment[1] if comment else "")
    return re.sub("[_-]", " ", "\n".join(words))


def _line_before(text: str, block: Block) -> str:
    before = text[max(0, block.start - INTRODUCTION) : block.start].rstrip()
    line = before.rpartition("\n")[2]
    return "" if _MARK.match(line) else line


def _file(text: str, block: Block) -> str | None:
    """Return the module that a block is said to be: by its fence, its first line or the one before."""
    comment = _COMMENT.match(block.text)
    for words in (block.info, comment[1] if comment else "", _line_before(text, block)):
        if len(named := set(_FILE.findall(words))) == 1:
            return str(*named)
    return None


def _of_files(found: list[Block], files: list[str | None]) -> str:
    """Return that one of several files imports another; a solution is a single file."""
    modules = {file for file in files if file} - {"solution", "test_solution", "conftest"}
    for block, file in zip(found, files, strict=True):
        others = modules - {file}
        if others and not defined_tests(block.text) and (name := imports_any(block.text, others)):
            return f"it is in several files, and one imports {name}; put all into one file"
    return ""
