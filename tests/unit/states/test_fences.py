"""Code comes back out of whatever a model wraps around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.states.fences import fenced_blocks, has_open_fence, python_code

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
words = st.sampled_from(["", "python", "py", " Python", "python3", "c++", "python-3.11"])
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
        ("`code` and ```more```", False),
    ],
)
def test_b8_a_fence_that_nothing_closes_is_seen(text: str, opened: bool) -> None:
    assert has_open_fence(text) is opened
