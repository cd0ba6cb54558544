"""A repair of a test is refused if it checks less, and taken if it checks no less."""

from __future__ import annotations

import textwrap
import tomllib
from pathlib import Path

import pytest

from codetape.states.patching import Patched, apply_patches

TABLE = tomllib.loads(
    (Path(__file__).parents[2] / "data" / "weakenings.toml").read_text(encoding="utf-8")
)["of"]
HEAD = """\
import unittest
import pytest
from solution import add


def quiet(f):
    return None


"""


def repairs(verdict: str) -> list[object]:
    return [pytest.param(old["old"], body, id=name) for old in TABLE for name, body in old[verdict]]


def repaired(old: str, body: str) -> Patched:
    whole = body.startswith(("@", "def test_", "async def test_", "def test_a"))
    head = "def test_a(self):\n" if "(self)" in old else "def test_a():\n"
    code = body if whole else head + textwrap.indent(body, "    ")
    name = "TestAdd::test_a" if "class TestAdd" in old else "test_a"
    return apply_patches(HEAD + old.strip() + "\n", [("test_a", code)], [name])


@pytest.mark.parametrize(("old", "body"), repairs("weaker"))
def test_a_weaker_repair_is_refused(old: str, body: str) -> None:
    result = repaired(old, body)
    assert (result.patched, result.source) == ((), HEAD + old.strip() + "\n")
    assert "does not parse" not in result.refused[0]


@pytest.mark.parametrize(("old", "body"), repairs("honest"))
def test_an_honest_repair_is_taken(old: str, body: str) -> None:
    result = repaired(old, body)
    assert len(result.patched) == 1, result.refused
