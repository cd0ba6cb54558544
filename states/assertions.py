"""The skeleton of a test: its assertions, each with its strength and the conditions it stands under."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from codetape.states.local_values import LocalValues
from codetape.states.strength import (
    BROAD,
    NOTHING,
    STRONG,
    loop_length,
    of_call,
    of_raises,
    of_test,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef

LONGEST_LOOP = 1000

MOST_CHECKS = 4000
"""Assertions of one test that are told apart; loops in loops make millions of them."""

_TRANSPARENT = frozenset(
    [
        *("open", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile", "catch_warnings"),
        *("subTest", "patch", "object", "dict", "multiple", "context", "localcontext", "ZipFile"),
        *("closing", "redirect_stdout", "redirect_stderr", "chdir", "connect", "nullcontext"),
    ]
)
"""Context managers that let an AssertionError pass."""

_EXPECTING = frozenset(
    ["raises", "warns", "assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex"]
)

_ACTING = (
    *(ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Attribute, ast.Await, ast.Compare),
)
"""Expressions that may raise."""


@dataclass(frozen=True, slots=True)
class Check:
    """One assertion: how much it holds, below which conditions; `match` for the text of an error."""

    strength: float
    path: tuple[str, ...] = ()
    match: bool = False

    def covers(self, old: Check) -> bool:
        """True if this check holds no less than `old`, below no other conditions."""
        lost_match = old.match and self.strength == STRONG.RAISES and not self.match
        left = iter(old.path)
        enough = self.strength >= min(old.strength, STRONG.EXACT)
        return enough and not lost_match and all(p in left for p in self.path)


def checks(
    function: Function, helpers: frozenset[str] = frozenset(), pure: frozenset[str] = frozenset()
) -> list[Check]:
    """Return the assertions of a test that can be reached.

    `helpers` are functions that assert, `pure` names of the module that do not lead to the solution.
    """
    skeleton = _Skeleton(function, helpers, LocalValues(function, pure))
    found = skeleton.block(function.body, ())
    return list(islice((check for check in found if check.strength > 0), MOST_CHECKS))


def last_name(node: ast.AST) -> str:
    """Return the last part of a dotted name; of a call, that of its function."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Walk trees, but not into functions and classes inside them."""
    left = list(nodes)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def swallows(handler: ast.ExceptHandler) -> bool:
    """True for a handler that does not end by raising or failing."""
    last = handler.body[-1]
    fails = isinstance(last, ast.Expr) and last_name(last.value) == "fail"
    left = any(isinstance(n, ast.Return | ast.Break | ast.Continue) for n in ast.walk(handler))
    return left or not (fails or isinstance(last, ast.Raise))


class _Skeleton:
    """Reads one function; local names that are assigned once stand for their values."""

    def __init__(self, function: Function, helpers: frozenset[str], values: LocalValues) -> None:
        self.helpers, self.values, self.local = helpers, values, values.names
        nodes = ast.walk(function)
        self.loads = Counter(
            n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        )

    def block(self, body: Iterable[ast.stmt], path: tuple[str, ...]) -> Iterator[Check]:
        """Yield the checks of statements, up to the first that always leaves."""
        for statement in body:
            yield from self.statement(statement, path)
            self.follow(statement)
            if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
                return
            if _may_leave(statement):
                path = (*path, "after a way out")

    def statement(self, node: ast.stmt, path: tuple[str, ...]) -> Iterator[Check]:
        match node:
            case ast.Assert(test=test):
                yield from self.asserted(test, path)
            case (
                ast.Expr(value=ast.Await(value=ast.Call() as call))
                | ast.Expr(value=ast.Call() as call)
            ):
                yield self.called(call, path)
            case ast.Assign(value=ast.Call() as call) if last_name(call) in _EXPECTING:
                yield self.called(call, path)
            case ast.Raise(exc=ast.expr() as error) if last_name(error) == "AssertionError":
                yield Check(STRONG.EXACT, path)
            case ast.If() | ast.While():
                yield from self.branches(node, path)
            case ast.For() | ast.AsyncFor():
                yield from self.loop([node.target], node.iter, node.body, path)
                yield from self.block(node.orelse, (*path, "for else"))
            case ast.With() | ast.AsyncWith():
                yield from self.context(node, path)
            case ast.Try():
                yield from self.tried(node, path)
            case ast.Match():
                for case in node.cases:
                    where = f"match {self.shape(node.subject)} {ast.dump(case.pattern)}"
                    yield from self.block(case.body, (*path, where))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                called = "called" if self.loads[node.name] else "never called"
                yield from self.block(node.body, (*path, f"function {called}"))

    def follow(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self.values.settle(targets, value)
            case ast.AugAssign(target=target, value=value) if self.values.is_subject(value):
                self.values.settle([target], value)

    def asserted(self, test: ast.expr, path: tuple[str, ...]) -> Iterator[Check]:
        match self.values.told(test):
            case ast.BoolOp(op=ast.And(), values=values):
                for value in values:
                    yield from self.asserted(value, path)
            case ast.Compare(
                left=ast.Tuple(elts=left) | ast.List(elts=left),
                ops=[ast.Eq()],
                comparators=[ast.Tuple(elts=right) | ast.List(elts=right)],
            ) if len(left) == len(right) > 0:
                for one, other in zip(left, right, strict=True):
                    pair = ast.Compare(left=one, ops=[ast.Eq()], comparators=[other])
                    yield from self.asserted(pair, path)
            case ast.Call(
                func=ast.Name(id="all"), args=[ast.GeneratorExp() | ast.ListComp() as each]
            ) if len(each.generators) == 1:
                loop = each.generators[0]
                inner = ast.Assert(test=each.elt)
                where = (*path, *(f"if {self.shape(test)}" for test in loop.ifs))
                yield from self.loop([loop.target], loop.iter, [inner], where)
            case found:
                yield Check(of_test(found), path)

    def called(self, call: ast.Call, path: tuple[str, ...]) -> Check:
        name = last_name(call)
        if name in _EXPECTING:
            strength = of_raises(call, self.local)
            return Check(strength if len(call.args) > 1 else NOTHING, path, _matches(call))
        if isinstance(call.func, ast.Name) and name in self.local:
            return Check(NOTHING, path)
        if name in self.helpers or name == "fail":
            return Check(STRONG.EXACT, path)
        if name.startswith("assert_") and isinstance(call.func, ast.Attribute):
            of_mock = name.startswith(
                ("assert_called", "assert_any", "assert_not", "assert_awaited")
            )
            if of_mock and not self.values.is_subject(call.func.value):
                return Check(NOTHING, path)
        return Check(of_call(name, [*map(self.values.told, call.args)], call.keywords), path)

    def branches(self, node: ast.If | ast.While, path: tuple[str, ...]) -> Iterator[Check]:
        test = self.resolved(node.test)
        if not node.orelse and _fails(node.body):
            yield from self.asserted(_opposite(node.test), path)
            return
        if isinstance(test, ast.Constant):
            yield from self.block(node.body if test.value else node.orelse, path)
            return
        word = type(node).__name__.lower()
        yield from self.block(node.body, (*path, f"{word} {self.shape(test)}"))
        yield from self.block(node.orelse, (*path, f"{word} not {self.shape(test)}"))

    def loop(
        self,
        targets: list[ast.expr],
        over: ast.expr,
        body: list[ast.stmt],
        path: tuple[str, ...],
    ) -> Iterator[Check]:
        """A loop over literal values counts as often as it runs."""
        values = self.resolved(over)
        self.values.settle(targets, over)
        times = loop_length(values)
        if times is None:
            yield from self.block(body, (*path, f"for {self.shape(values, erased=True)}"))
        elif times:
            inner = list(islice(self.block(body, path), MOST_CHECKS))
            for _ in range(min(times, LONGEST_LOOP) if inner else 0):
                yield from inner

    def context(self, node: ast.With | ast.AsyncWith, path: tuple[str, ...]) -> Iterator[Check]:
        inner = path
        for item in node.items:
            name = last_name(item.context_expr)
            if name in _EXPECTING and isinstance(item.context_expr, ast.Call):
                strength = of_raises(item.context_expr, self.local)
                strength = (
                    NOTHING if _raises_itself(node.body, self.values.is_subject) else strength
                )
                yield Check(strength, path, _matches(item.context_expr))
                inner = (*inner, f"raises {strength == STRONG.RAISES}")
            elif name not in _TRANSPARENT:
                inner = (*inner, f"with {name}")
        yield from self.block(node.body, inner)

    def tried(self, node: ast.Try, path: tuple[str, ...]) -> Iterator[Check]:
        hiding = [h for h in node.handlers if swallows(h)]
        kinds = sorted({self.caught(h) for h in hiding})
        inner = (*path, f"try {kinds}") if kinds else path
        if any(
            isinstance(n, ast.Return | ast.Break | ast.Continue) for n in own_nodes(node.finalbody)
        ):
            inner = (*inner, "left in finally")
        yield from self.block([*node.body, *node.orelse], inner)
        for handler in node.handlers:
            yield from self.block(handler.body, (*path, f"except {self.caught(handler)}"))
        yield from self.block(node.finalbody, path)

    def caught(self, handler: ast.ExceptHandler) -> str:
        """Say which exceptions a handler takes: one kind of error, or what may be an assertion's."""
        name = last_name(handler.type) if handler.type else ""
        specific = name and name not in BROAD | self.local and name.endswith(("Error", "Exit"))
        return "an error" if specific else ast.dump(handler)

    def resolved(self, node: ast.expr) -> ast.expr:
        """Return an expression with local values in the place of their names."""
        return self.values.whole(node)

    def shape(self, node: ast.expr, *, erased: bool = False) -> str:
        """Return an expression as text in which local names, and constants if erased, are alike."""
        return ast.dump(_Alike(self.local, erased).visit(copy.deepcopy(self.resolved(node))))


class _Alike(ast.NodeTransformer):
    def __init__(self, local: set[str], erased: bool) -> None:
        self.local, self.erased = local, erased

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(id="_") if node.id in self.local else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(value=0) if self.erased else node


def _fails(body: list[ast.stmt]) -> bool:
    """True if a block does nothing but fail the test."""
    match body:
        case [ast.Raise(exc=ast.expr() as error)]:
            return last_name(error) == "AssertionError"
        case [ast.Expr(value=ast.Call() as call)]:
            return last_name(call) == "fail"
    return False


def _opposite(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]):
            return ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])
    return ast.UnaryOp(op=ast.Not(), operand=test)


def _may_leave(node: ast.stmt) -> bool:
    """True if a statement may end its block: by a return, or a break of the loop it stands in."""
    nodes = list(own_nodes([node]))
    loops = [n for n in nodes if isinstance(n, ast.For | ast.AsyncFor | ast.While)]
    inside = {id(n) for loop in loops for n in own_nodes(loop.body)}
    return any(
        isinstance(n, ast.Return)
        or (isinstance(n, ast.Break | ast.Continue) and id(n) not in inside)
        for n in nodes
    )


def _raises_itself(body: list[ast.stmt], is_subject: Callable[[ast.expr], bool]) -> bool:
    """True if something else than a value that may be wrong can raise first."""
    for statement in body:
        nodes = list(own_nodes([statement]))
        if any(isinstance(n, ast.Raise | ast.Assert) for n in nodes):
            return True
        values = [n for n in nodes if isinstance(n, ast.expr)]
        if any(map(is_subject, (v for v in values if isinstance(v, _ACTING)))):
            return False
        if any(isinstance(v, _ACTING) for v in values):
            return True
    return True


def _matches(call: ast.Call) -> bool:
    """True if the text of an error is asked for."""
    texts = [k.value for k in call.keywords if k.arg == "match"]
    if last_name(call).endswith("Regex"):
        texts += call.args[1:2]
    return any(
        not isinstance(t, ast.Constant) or any(map(str.isalnum, str(t.value))) for t in texts
    )
