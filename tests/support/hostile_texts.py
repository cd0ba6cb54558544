"""Texts that break a reader: nested too deeply, too long, or made of what no text should have."""

from __future__ import annotations

from collections.abc import Callable

DEEP: dict[str, Callable[[int], str]] = {
    "attributes": lambda n: "a" + ".a" * n,
    "calls": lambda n: "a" + ".f()" * n,
    "subscripts": lambda n: "a" + "[0]" * n,
    "sum": lambda n: "a" + " + a" * n,
    "texts": lambda n: "'a'" + " + 'a'" * n,
    "negations": lambda n: "not " * n + "a",
    "signs": lambda n: "-" * n + "a",
    "lambdas": lambda n: "lambda: " * n + "a",
    "choices": lambda n: "a if b else " * n + "c",
    "brackets": lambda n: "(" * n + "a" + ")" * n,
    "lists": lambda n: "[" * n + "]" * n,
    "sets of calls": lambda n: "f({" * n + "a" + "})" * n,
    "f-strings": lambda n: "f'{" * (n // 2) + "a" + "}'" * (n // 2),
    "awaited": lambda n: "await " * n + "a",
    "comparisons": lambda n: "a" + " < a" * n,
    "generators": lambda n: "all(" * n + "a" + " for a in b)" * n,
}
"""Expressions by what they nest."""

EXPRESSIONS = {
    **{f"{name} {n}": make(n) for name, make in DEEP.items() for n in (70, 600)},
    "decimal number": "9" * 5000,
    "hexadecimal number": "0x" + "f" * 5000,
    "power": "9 ** 9 ** 9",
    "range": "range(" + "9" * 30 + ")",
    "surrogate": "'\ud800'",
    "escaped surrogate": r"'\ud800'",
    "null": "'\x00'",
    "unknown name": r"'\N{NO SUCH NAME}'",
    "invisible": "'\u202e\u2028\x1b[31m'",
    "unclosed": "('" + "(" * 500,
    "long": "a" * 300_000,
}

PLACES = {
    "statement": "{0}\n",
    "function": "def add(a, b):\n    return {0}\n",
    "assertion": "from solution import add\n\n\ndef test_one():\n    assert add(1, 2) == {0}\n",
    "local": "def test_one():\n    x = {0}\n    y = [x, {{1: x}}]\n    assert f(y, x) == y, x\n",
    "decorator": (
        "import pytest\n\n\n@pytest.mark.parametrize('a', {0})\n@mark({0})\n"
        "def test_one(a):\n    assert a\n"
    ),
    "class": "class Test({0}):\n    def test_one(self):\n        assert {0}\n",
    "loop": "def test_one():\n    for a in {0}:\n        assert a == add(a, 0)\n",
    "match": "def test_one():\n    match {0}:\n        case {{'a': b}}:\n            assert b == {0}\n",
}
"""Where an expression may stand in code."""

FILES = {
    "elifs": "if x: pass\n" + "elif x: pass\n" * 2000,
    "elifs with tests": "if x: pass\n" + "elif x:\n    def test_one(): assert f() == 1\n" * 1000,
    "elifs in a test": "def test_one():\n    if x: assert f()\n"
    + "    elif x: assert f()\n" * 1000,
    "assertions": "def test_one():\n" + "    assert f(1) == 1\n" * 300,
    "blocks": "".join(" " * n + "if x:\n" for n in range(99)) + " " * 99 + "pass\n",
    "too many blocks": "".join(" " * n + "if x:\n" for n in range(300)) + " " * 300 + "pass\n",
    "functions": "".join(" " * n + "def test_one():\n" for n in range(99))
    + " " * 99
    + "assert f()\n",
    "classes": "".join(" " * n + "class TestA:\n" for n in range(90))
    + " " * 90
    + "def test_b(s): f\n",
    "decorators": "@f\n" * 5000 + "def test_one():\n    assert f() == 1\n",
    "nested loops": (
        "def test_one():\n"
        + "".join("    " * n + "for a in range(1000):\n" for n in range(1, 9))
        + "    " * 9
        + "assert f(a) == a\n"
    ),
    "doubling values": (
        "def test_one():\n    x0 = f(1)\n"
        + "".join(f"    x{n} = [x{n - 1}, x{n - 1}]\n" for n in range(1, 60))
        + "    assert x59 == f(2)\n"
    ),
    "deepening values": (
        "def test_one():\n    x0 = f(1)\n"
        + "".join(f"    x{n} = {'[' * 60}x{n - 1}{']' * 60}\n" for n in range(1, 60))
        + "    assert x59 == f(2)\n"
    ),
    "fences": "```\n" * 300,
    "open fences": "```python\nx = (\n" * 300,
    "imports": "import " + ".".join(["a"] * 5000) + "\n",
    "docstring": "'''" + "a b " * 10_000 + "'''\n",
    "blank": "\n" * 20_000,
    "nothing": "",
}
"""Whole texts."""


LARGE = {
    **{f"{name} {n}": f"a = {make(n)}\n" for name, make in DEEP.items() for n in (190, 5000)},
    "elifs": "if x: pass\n" + "elif x: pass\n" * 10_000,
    "statements": "a = 1\n" * 100_000,
    "assertions": "def test_one():\n" + "    assert f(1) == 1\n" * 5000,
    "fences": "```\n" * 30_000,
}
"""Texts that take their time."""


def codes() -> dict[str, str]:
    """Each expression in two of the places, in turn, and the whole texts, by name."""
    places = list(PLACES.items())
    placed = {
        f"{name} as {place}": form.format(text)
        for at, (name, text) in enumerate(EXPRESSIONS.items())
        for place, form in (places[at % len(places)], places[(at // 2 + 3) % len(places)])
    }
    return placed | FILES


JSON = {
    "lists 600": "[" * 600 + "]" * 600,
    "lists 100000": "[" * 100_000 + "]" * 100_000,
    "unclosed lists": "[" * 100_000,
    "objects 600": '{"a":' * 600 + "1" + "}" * 600,
    "objects 100000": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "decimal number": "9" * 5000,
    "large number": "1e999",
    "not a number": "NaN",
    "surrogate": r'"\ud800"',
    "null": r'"\u0000"',
    "pattern of groups": '"' + "(" * 3000 + ")" * 3000 + '"',
    "pattern of many": '"a{99999999999999999999}"',
    "pattern of sets": '"' + "(?:" * 900 + "a" + ")*" * 900 + '"',
    "many": "[" + "1," * 100_000 + "1]",
    "long": '"' + "a" * 300_000 + '"',
}
"""JSON values."""
