"""How much one assertion holds, by its form."""

from __future__ import annotations

import ast
import builtins

NOTHING = 0.0


class STRONG:
    """Strengths from the truth of anything up to the one right value."""

    TRUTH = 1.0
    BOUND = 2.0
    SELF = 2.5
    LOSSY = 3.0
    EXACT = 4.0
    RAISES = 4.25


TOLERANCE = 1e-3
"""The largest relative or absolute difference that still counts as equal."""

BROAD = frozenset(
    [
        "AssertionError",
        "Exception",
        "BaseException",
        "Failed",
        "ExceptionGroup",
        "BaseExceptionGroup",
    ]
)

_LOSSY = {"sorted": 0.6, "tuple": 0.9, "list": 0.9, "set": 0.4, "frozenset": 0.4, "Counter": 0.5}
_LOSSY |= dict.fromkeys(
    ["len", "str", "repr", "type", "bool", "int", "any", "max", "min", "sum"], 0.0
)
_LOSSY |= dict.fromkeys(["round", "abs", "id", "hash", "callable", "hasattr", "float", "dict"], 0.1)
_LOSSY |= dict.fromkeys(["lower", "upper", "casefold", "strip", "lstrip", "rstrip", "keys"], 0.2)
_LOSSY |= dict.fromkeys(["count", "shape", "size", "__class__", "__name__", "__len__"], 0.2)

_BOUNDS = frozenset(
    [
        *("assertNotEqual", "assertIn", "assertNotIn", "assertGreater", "assertGreaterEqual"),
        *("assertLess", "assertLessEqual", "assertRegex", "assertNotRegex", "assertIsNot"),
        *("assertNotAlmostEqual", "assert_called", "assert_called_once", "assert_any_call"),
        *("assert_has_calls", "assert_array_less"),
    ]
)
_TRUTHS = frozenset(["assertIsInstance", "assertNotIsInstance", "assertIsNotNone", "assert_"])
_CLOSE = frozenset(["isclose", "allclose", "array_equal"])
_SAME = frozenset(["assertIsNone", "assert_not_called", "assert_called_with"])
_SAME |= {"assert_called_once_with", "assert_awaited_once_with"}


def of_test(test: ast.expr) -> float:
    """Return the strength of an asserted expression in which local values are in place."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return min(map(of_test, values))
        case ast.BoolOp(values=values):
            return _weaker(min(map(of_test, values)))
        case ast.IfExp(body=body, orelse=orelse):
            return _weaker(min(of_test(body), of_test(orelse)))
        case ast.NamedExpr(value=value) | ast.Await(value=value):
            return of_test(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            strength = of_test(operand)
            return min(strength, STRONG.BOUND) if isinstance(operand, ast.Compare) else strength
        case ast.Compare():
            return _of_comparison(test)
        case ast.Call(func=ast.Name(id="bool"), args=[value]):
            return of_test(value)
        case ast.Call(args=[left, right, *rest]) if _name(test) in _CLOSE:
            usual = tolerance_is_usual(test.keywords, rest)
            return of_equal(left, right) if usual else STRONG.TRUTH * is_subject(test)
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith")):
            return STRONG.BOUND if is_subject(test) else NOTHING
    empty = ast.Tuple | ast.List | ast.Set | ast.Dict | ast.JoinedStr | ast.Lambda
    if isinstance(test, empty | ast.ListComp | ast.GeneratorExp | ast.Constant):
        return NOTHING
    return STRONG.TRUTH if is_subject(test) else NOTHING


def _weaker(strength: float) -> float:
    return max(strength - 1, NOTHING) if strength > STRONG.TRUTH else strength / 2


def _of_comparison(test: ast.Compare) -> float:
    sides = [test.left, *test.comparators]
    pairs = zip(sides, test.ops, sides[1:], strict=False)
    return min(_of_pair(left, op, right) for left, op, right in pairs)


def _of_pair(left: ast.expr, op: ast.cmpop, right: ast.expr) -> float:
    if ast.dump(left) == ast.dump(right) or not (is_subject(left) or is_subject(right)):
        return NOTHING
    if isinstance(op, ast.IsNot) and any(map(_is_none, (left, right))):
        return STRONG.TRUTH
    match left, op, right:
        case (
            ast.Call(
                func=ast.Name(id="abs"),
                args=[ast.BinOp(left=one, op=ast.Sub(), right=other)],
            ),
            ast.Lt() | ast.LtE(),
            ast.Constant(value=most),
        ) if _small(most):
            return of_equal(one, other)
    if not isinstance(op, ast.Eq | ast.Is):
        return STRONG.BOUND
    return of_equal(left, right)


def of_equal(left: ast.expr, right: ast.expr) -> float:
    """Return the strength of `left == right`."""
    if ast.dump(left) == ast.dump(right) or not (is_subject(left) or is_subject(right)):
        return NOTHING
    if any(isinstance(s, ast.Name | ast.Attribute) and _name(s) == "ANY" for s in (left, right)):
        return NOTHING
    if functions_of(left) & functions_of(right):
        return STRONG.SELF
    return min(_of_side(left), _of_side(right))


def _of_side(side: ast.expr) -> float:
    name = _name(side)
    if isinstance(side, ast.Call) and name == "approx":
        return STRONG.EXACT if tolerance_is_usual(side.keywords, side.args[1:]) else STRONG.TRUTH
    if isinstance(side, ast.Call) and name == "round" and len(side.args) == 2:
        return STRONG.EXACT if _many(side.args[1]) else STRONG.LOSSY
    if _chooses(side):
        return STRONG.LOSSY
    if name in _LOSSY and isinstance(side, ast.Call | ast.Attribute) and is_subject(side):
        return STRONG.LOSSY + _LOSSY[name]
    if isinstance(side, ast.Compare | ast.BoolOp):
        return min(of_test(side), STRONG.EXACT)
    return STRONG.EXACT


def _chooses(side: ast.expr) -> bool:
    """True if a side may leave its value out: a slice, a choice, a local function, times nothing."""
    match side:
        case ast.Subscript(slice=ast.Slice()) | ast.IfExp() | ast.Call(func=ast.Lambda()):
            return True
        case ast.Subscript(value=ast.Tuple() | ast.List() | ast.Dict()):
            return is_subject(side)
        case ast.BoolOp():
            return any(isinstance(v, ast.Constant) for v in side.values)
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(isinstance(v, ast.Constant) and not v.value for v in (left, right))
        case ast.BinOp(op=ast.Sub(), left=left, right=right) if ast.dump(left) == ast.dump(right):
            return is_subject(left)
        case ast.BinOp(op=ast.Mod() | ast.FloorDiv() | ast.Pow() | ast.LShift() | ast.RShift()):
            return is_subject(side)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor()):
            return is_subject(side)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return is_subject(side) and any(
                g.ifs or not loop_length(g.iter) for g in side.generators
            )
        case (
            ast.Call(func=ast.Name(id="next"), args=[_, _])
            | ast.Call(func=ast.Attribute(attr="get" | "pop" | "setdefault"), args=[_, _])
        ):
            return is_subject(side)
        case ast.Dict(keys=keys):
            given = [ast.dump(key) for key in keys if key]
            return is_subject(side) and len(set(given)) < len(given)
    return False


def tolerance_is_usual(keywords: list[ast.keyword], rest: list[ast.expr]) -> bool:
    """True if no tolerance is larger than TOLERANCE; what is computed is not understood."""
    names = {"rel", "abs", "rtol", "atol", "delta", "rel_tol", "abs_tol"}
    given = [k.value for k in keywords if k.arg in names or k.arg is None] + rest
    return all(isinstance(v, ast.Constant) and (v.value is None or _small(v.value)) for v in given)


def _small(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= TOLERANCE


def of_call(name: str, arguments: list[ast.expr], keywords: list[ast.keyword]) -> float:
    """Return the strength of a call such as `self.assertEqual(a, b)`."""
    if not name.startswith("assert"):
        return NOTHING
    if name in {"assertTrue", "assertFalse", "assert_true"}:
        return of_test(arguments[0]) if arguments else NOTHING
    if name in _SAME:
        return STRONG.EXACT
    if name in {"assert_called", "assert_called_once"}:
        return STRONG.BOUND
    if not any(map(is_subject, arguments)):
        return NOTHING
    if name in _BOUNDS | _TRUTHS:
        return STRONG.BOUND if name in _BOUNDS else STRONG.TRUTH
    return _of_equal_call(name, arguments, keywords)


def _of_equal_call(name: str, arguments: list[ast.expr], keywords: list[ast.keyword]) -> float:
    if not tolerance_is_usual(keywords, []):
        return STRONG.TRUTH
    places = [k.value for k in keywords if k.arg in {"places", "decimal"}] or arguments[2:3]
    if name.endswith(("AlmostEqual", "almost_equal")) and places and not _many(places[0]):
        return STRONG.TRUTH
    exact = of_equal(*arguments[:2]) if len(arguments) > 1 else STRONG.LOSSY
    loose = any(str(k.arg).startswith("check_") for k in keywords) or name == "assertCountEqual"
    return min(exact, STRONG.LOSSY + 0.6) if loose else exact


def _many(places: ast.expr) -> bool:
    return isinstance(places, ast.Constant) and isinstance(places.value, int) and places.value >= 3


def of_raises(call: ast.Call, local: set[str]) -> float:
    """Return the strength of an expected exception: one specific type, several, or anything."""
    kinds = call.args[:1] or [k.value for k in call.keywords if k.arg == "expected_exception"]
    if not kinds:
        return NOTHING
    several = kinds[0].elts if isinstance(kinds[0], ast.Tuple | ast.List) else kinds
    names = [_name(kind) for kind in several]
    if not names or any(not n or n in BROAD or n in local for n in names):
        return STRONG.TRUTH
    return STRONG.RAISES if len(names) == 1 else STRONG.LOSSY


def is_subject(node: ast.expr) -> bool:
    """True if an expression has a name that is none of Python's own: a value that may be wrong."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    return any(name == "open" or not hasattr(builtins, name) for name in names)


def functions_of(node: ast.expr) -> set[str]:
    """Return the functions, none of Python's own, that an expression calls by their names."""
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    names = {f.id for f in calls if isinstance(f, ast.Name)}
    names |= {
        f.attr for f in calls if isinstance(f, ast.Attribute) and _name(f.value) == "solution"
    }
    return {n for n in names if not hasattr(builtins, n)}


def loop_length(values: ast.expr) -> int | None:
    """Return how many different values a literal iterable has; None if it is computed."""
    match values:
        case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
            starred = any(isinstance(e, ast.Starred) for e in elts)
            return None if starred else len({ast.dump(e) for e in elts})
        case ast.Dict(keys=keys):
            return len(keys) if all(keys) else None
        case ast.Constant(value=str(text) | bytes(text)):
            return len(text)
        case ast.Call(func=ast.Name(id="list" | "tuple" | "set" | "dict"), args=[], keywords=[]):
            return 0
        case ast.Call(func=ast.Name(id="enumerate" | "iter" | "reversed"), args=[one, *_]):
            return loop_length(one)
        case ast.Call(
            func=ast.Attribute(value=ast.Dict() as one, attr="items" | "values"), args=[]
        ):
            return loop_length(one)
        case ast.Call(func=ast.Name(id="zip"), args=[_, *_] as many):
            lengths = [loop_length(one) for one in many]
            return min(n for n in lengths if n is not None) if None not in lengths else None
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            return _range_length(arguments)
    return None


def _range_length(arguments: list[ast.expr]) -> int | None:
    try:
        numbers = [ast.literal_eval(one) for one in arguments]
        return len(range(*numbers))
    except (ValueError, TypeError, OverflowError):
        return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
