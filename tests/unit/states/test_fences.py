"""Code comes back out of whatever a model wraps around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states.code_text import python_code
from codetape.states.fences import (
    CLOSINGS,
    fenced_blocks,
    has_open_fence,
    is_called_python,
)

PLAIN = "def add(a, b):\n    return a + b"
DOCSTRING = """\
def add(a, b):
    \'\'\'Add.

    ```python
    add(1, 2)
    ```
    \'\'\'
    return a + b"""
AT_MARGIN = 'TEXT = """\n```\nadd(1, 2)\n```\n"""\n\n\ndef add(a, b):\n    return a + b'
TILDES = 'TEXT = """\n~~~ sh\nls\n~~~\n"""\nx = 1'

codes = st.sampled_from([PLAIN, DOCSTRING, AT_MARGIN, TILDES])
fences = st.sampled_from(["```", "````", "``````", "~~~", "~~~~"])
words = st.sampled_from(
    "|python|py| Python|python3|c++|python-3.11|python:tool.py|{.python .numberLines}|Python 3".split(
        "|"
    )
)
prose = st.sampled_from(
    [
        "",
        "Here is the code:\n\n",
        "The function `add` adds:\n",
        "1. First item, it's simple.\n\n",
        "```\nnot python here\n```\nBetter:\n\n",
    ]
)


@given(codes, fences, words, prose, prose, st.integers(0, 3))
def test_b6_b7_code_comes_back_out_of_any_fence(
    code: str, fence: str, word: str, before: str, after: str, indent: int
) -> None:
    inside = f"{fence}{word}\n{code}\n{fence}"
    margin = " " * indent
    wrapped = "\n".join(f"{margin}{line}" if line else line for line in inside.split("\n"))
    assert python_code(f"{before}{wrapped}\n\n{after}") == code


@given(codes)
def test_b7_code_without_a_fence_is_left_alone(code: str) -> None:
    assert python_code(f"\n{code}\n\n") == code


@given(codes)
def test_line_ends_of_other_systems_are_read(code: str) -> None:
    assert python_code(f"```python\n{code}\n```".replace("\n", "\r\n")) == code


@given(st.text(alphabet="`~ \nx#", max_size=60))
def test_any_text_at_all_has_an_answer(text: str) -> None:
    assert isinstance(python_code(text), str)
    assert all(block in text or " " in text for block in fenced_blocks(text))


def test_of_several_blocks_the_longest_that_parses_is_taken() -> None:
    command = "$ python solution.py --a 1 --b 2 --long-option 3"
    text = f"```\nx = 1\n```\nand\n```python\n{PLAIN}\n```\nrun it:\n```sh\n{command}\n```"
    assert python_code(text) == PLAIN


def test_data_that_parses_is_no_code_where_something_is_called_python() -> None:
    data = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]"
    assert len(data) > len(PLAIN)
    for name in ("json", ""):
        text = f"```{name}\n{data}\n```\n```python\n{PLAIN}\n```\n```{name}\n{data}\n```"
        assert python_code(text) == PLAIN
    inner = f'TEXT = """\n```python\n{PLAIN}\n```\n"""'
    assert python_code(f"````\n{inner}\n````") == inner, "what is inside of code is not the code"


def test_the_fence_says_what_is_called_python() -> None:
    assert is_called_python("```python\nx = 1\n```", "x = 1")
    assert is_called_python("~~~ Py\r\nx = 1\r\n~~~", "x = 1")
    assert not is_called_python("```\nx = 1\n```", "x = 1")
    assert not is_called_python("```pycon\nx = 1\n```", "x = 1")


def test_an_answer_of_many_fences_has_few_blocks() -> None:
    assert len(fenced_blocks("```\n" * 500)) <= 500 * CLOSINGS


def test_what_holds_no_code_comes_back_as_it_is() -> None:
    assert python_code("I cannot do that.") == "I cannot do that."


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("```python\ndef add(", True),
        ("text\n~~~\nx", True),
        ("````\nx\n```", True),  # closed by fewer marks than it was opened with
        ("```\nx\n```", False),
        ("```\nx\n`````", False),
        ("no fence", False),
        ("```sh\nls\n```\n```python\ndef add(", True),
        ("````\n```python\nx\n```\n````", False),
        ("`code` and ```more```", False),
    ],
)
def test_b8_a_fence_that_nothing_closes_is_seen(text: str, opened: bool) -> None:
    assert has_open_fence(text) is opened
