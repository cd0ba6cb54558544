"""In a notebook one sees what matters, and nothing that a model wrote is markup."""

from __future__ import annotations

from codetape.adapters.sandbox.fake import FakeSandbox, broke
from codetape.tapes import open_tape
from tests.support.sessions import HAPPY, RIGHT
from tests.unit.codetape.test_agent import agent


def test_a_result_shows_how_it_ended_and_its_code() -> None:
    html = agent().generate("Add.")._repr_html_()
    assert "<td" in html
    assert "passed" in html
    assert "def add(a, b):" in html
    assert "unknown" in html


def test_a_failed_result_says_why() -> None:
    made = agent(sandbox=FakeSandbox(builds=[broke("no <podman>", missing=True)]))
    assert "no &lt;podman&gt;" in made.generate("Add.")._repr_html_()


def test_a_prompt_of_python_shows_a_line_and_not_the_session() -> None:
    made = agent().generate("Add.")
    assert repr(made) == f"<result of {made.session}: passed>"
    made = agent(sandbox=FakeSandbox(builds=[broke("no podman", missing=True)])).generate("Add.")
    assert "no podman" in repr(made)


def test_what_was_not_tested_is_not_said_to_have_passed() -> None:
    made = agent(skip_tests=True).generate("Add.")
    assert made.success
    assert repr(made) == f"<result of {made.session}: built, no tests were asked for>"
    assert "passed" not in made._repr_html_()


def test_markup_in_code_is_text() -> None:
    evil = RIGHT["code"] + "# <img src=x onerror=alert(1)>\n"
    script = {**HAPPY, "code": [{"code": evil}]}
    html = agent(script, name="<b>bold</b>").generate("Add.")._repr_html_()
    assert "<img" not in html
    assert "<b>bold" not in html
    assert "&lt;img" in html


def test_marks_that_hide_or_reorder_are_shown() -> None:
    evil = RIGHT["code"] + "# \x1b[31m\u202egnp.exe\u200b\n"
    script = {**HAPPY, "code": [{"code": evil}]}
    made = agent(script).generate("Add.")
    html = made._repr_html_()
    assert "\\x1b[31m\\u202egnp.exe\\u200b" in html
    tape = open_tape(made.store, made.session)
    for shown in (html, *(step._repr_html_() for step in tape)):
        assert not {"\x1b", "\u202e", "\u200b"} & set(shown)


def test_an_agent_shows_what_it_would_use() -> None:
    html = agent(model="openai/gpt-4.1", sandbox="auto")._repr_html_()
    assert "openai/gpt-4.1" in html
    assert "auto" in html
