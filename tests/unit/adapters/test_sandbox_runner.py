"""The archive that goes into every sandbox: whole, alone, and the same every time."""

from __future__ import annotations

import ast
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codetape import states
from codetape.adapters.sandbox import runner

FOLDER = Path(runner.__file__).parent
OLDEST = (3, 9)


def test_every_module_is_handed_over_and_nothing_else_has_content() -> None:
    assert {*runner.MODULES} == {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    with zipfile.ZipFile(io.BytesIO(runner.archive())) as archive:
        bodies = {name: archive.read(name) for name in archive.namelist()}
    full = {Path(name).stem for name, body in bodies.items() if body}
    assert full == {*runner.MODULES, *runner.RULES}


def test_equal_bytes_every_time() -> None:
    first = runner.archive()
    runner.archive.cache_clear()
    assert runner.archive() == first


@pytest.mark.parametrize("name", [*runner.MODULES, *runner.RULES])
def test_a_module_needs_nothing_that_an_image_may_lack(name: str) -> None:
    folder = FOLDER if name in runner.MODULES else Path(states.__file__).parent
    text = (folder / f"{name}.py").read_text()
    for module in imported(ast.parse(text, feature_version=OLDEST)):
        root = module.partition(".")[0]
        own = module.rpartition(".")[0] == runner.__name__ or module == runner.__name__
        own |= module in {f"codetape.states.{rule}" for rule in runner.RULES}
        assert own or root == "pytest" or root in sys.stdlib_module_names, module


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("nonce", ["0123456789abcdef", "n", ""])
def test_the_process_of_the_tests_never_has_the_whole_nonce(nonce: str) -> None:
    assert len(runner.token(nonce)) <= len(nonce) // 2
    assert nonce.startswith(runner.token(nonce))
