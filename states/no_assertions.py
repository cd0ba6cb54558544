"""Whether a test file obviously checks nothing: then it is refused before anything is built for it.

Only the plainest case is told from the text. Whatever could check something in a way that is not seen
here (another library, a helper whose name says so, an exception that is raised) counts as checking;
null solutions find the rest.
"""

from __future__ import annotations

import ast
import re

from codetape.states.python_source import imported_names, parsed, syntax_error
from codetape.states.stdlib import STDLIB

_CHECKING = re.compile(
    r"assert|raise|fail|warn|check|verif|expect|should|ensure|compar|match|equal|approx|exit|given"
    r"|valid|must|same|require|diff|snapshot|golden|regress",
    re.IGNORECASE,
)
"""Parts of names that say that something is checked."""

_KNOWN = frozenset({"solution", "pytest", "conftest"})
"""Modules beside the standard library that check nothing by themselves."""


def asserts_nothing(source: str) -> bool:
    """True if no statement of a test file can fail it but an exception of the solution itself."""
    if syntax_error(source) is not None or not _is_plain(source):
        return False
    nodes = list(ast.walk(parsed(source)))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    return not any(_checks(node, own) for node in nodes)


def _is_plain(source: str) -> bool:
    modules = {name.partition(".")[0] for name in imported_names(source)}
    return all(module in _KNOWN or module in STDLIB for module in modules)


def _checks(node: ast.AST, own: set[str]) -> bool:
    """Whether a statement may check; a function of the file's `own` is judged by its body."""
    match node:
        case ast.Assert() | ast.Raise():
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name not in own and bool(_CHECKING.search(name))
        case ast.keyword(arg=str(name)):
            return bool(_CHECKING.search(name))
    return False
