"""In a notebook a tape shows its texts as texts, whatever they say."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.store.memory import MemoryStore
from codetape.engine.tape import Recorded
from codetape.replay.reading import Tape
from codetape.states.events import Forked, Noted
from codetape.states.workflow import AUTOCODER

HOSTILE = (
    "<script>alert(1)</script>",
    "</td></tr></table><img src=x onerror=alert(1)>",
    "\"><svg/onload=alert(1)>'",
    "</script><!--",
    "<" * 3000 + "b>",
    "\x1b[31m\u202e\u200b\U000e0041\ud800",
)


class Tags(HTMLParser):
    """Collects what is markup."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag with its attributes."""
        self.found.add(" ".join([tag, *(f"{name}={value}" for name, value in attrs)]))

    def handle_comment(self, data: str) -> None:
        """A comment is none of ours either."""
        self.found.add(f"<!--{data}")


def tags(html: str) -> set[str]:
    """Return the tags of a page."""
    parser = Tags()
    parser.feed(html)
    parser.close()
    return parser.found


OURS = {"p", "table", "tr", "td style=text-align:left"}


def tape(text: str) -> Tape:
    """A tape that has a text in every field that takes one."""
    noted = Recorded(
        session=text, seq=1, at=text, event=Noted(text=text), source=text, dest=text,
        request_key=None, hash=text,
    )  # fmt: skip
    fork = replace(noted, seq=2, event=Forked(parent=text, seq=1))
    return Tape(text, replace(AUTOCODER, name=text), (noted, fork), MemoryStore())


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_fields_of_tapes_stay_text(text: str) -> None:
    """State, session, time and workflow are as hostile as what a model wrote."""
    shown = tape(text)
    for html in (shown._repr_html_(), *(step._repr_html_() for step in shown)):
        assert tags(html) <= OURS
        assert not {"\x1b", "\u202e", "\u200b", "\U000e0041", "\ud800"} & set(html)


@given(st.text(alphabet=st.sampled_from("<>&\"'/=!-abst \n\x1b\u202e"), max_size=60))
def test_no_field_of_tapes_is_markup(text: str) -> None:
    """Escaping holds for any text."""
    shown = tape(text)
    for html in (shown._repr_html_(), *(step._repr_html_() for step in shown)):
        assert tags(html) <= OURS
