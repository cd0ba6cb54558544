"""Which packages may be installed: asked, answered and remembered, from the front door."""

from __future__ import annotations

import json

import pytest

import codetape
from codetape import AutoCoderAgent, Package
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.states.events import PackagesHeld, Resumed
from tests.support.sessions import HAPPY
from tests.unit.codetape.test_agent import agent

NUMPY = {**HAPPY, "code": [{"code": "import numpy\n\n\ndef add(a, b):\n    return a + b\n"}]}


def decide(package: Package) -> str:
    return {"numpy": "ask", "pandas": "deny"}.get(package.name, "allow")


def test_a_session_asks_pauses_and_goes_on_when_it_was_allowed() -> None:
    store, sandbox = MemoryStore(), FakeSandbox()
    made = agent(NUMPY, store=store, sandbox=sandbox, package_policy=decide)
    paused = made.generate("Write add(a, b).")
    assert not paused.success
    assert "may numpy be installed?" in (paused.error or "")
    assert all("numpy" not in spec.requirements for spec in sandbox.specs)
    done = made.resume("last", allow=["numpy"])
    assert done.success
    assert "numpy" in done.detected_packages
    events = [record.event for record in done.records]
    assert any(isinstance(event, PackagesHeld) for event in events)
    (resumed,) = [event for event in events if isinstance(event, Resumed)]
    assert resumed.allow == ("numpy",)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [("zope-interface", "Zope.Interface"), ("numpy>=1", "NumPy"), ("numpy>=1", "numpy >= 1")],
)
def test_an_answer_may_spell_a_name_as_people_do(asked: str, answer: str) -> None:
    script = {**HAPPY, "code": [{**HAPPY["code"][0], "packages": [asked]}]}
    made = agent(script, package_policy="ask")
    paused = made.generate("Write add(a, b).")
    done = made.resume(paused.session, allow=[answer])
    assert done.success
    assert done.detected_packages == (asked,)


def test_a_package_that_was_denied_is_in_no_image() -> None:
    script = {**NUMPY, "replace_package": [{"replacement": None}]}
    sandbox = FakeSandbox()
    made = agent(script, sandbox=sandbox, package_policy="ask")
    paused = made.generate("Write add(a, b).")
    assert made.resume(paused.session, deny=["numpy"]).success
    assert all("numpy" not in spec.requirements for spec in sandbox.specs)


def test_what_the_caller_lists_is_asked_of_nobody() -> None:
    made = agent(NUMPY, package_policy="ask", base_packages=["numpy>=1"])
    assert made.generate("Write add(a, b).").success


def test_a_session_whose_policy_was_a_function_asks_where_there_is_none() -> None:
    """Whoever resumes it elsewhere has not that function, and must not be laxer than it."""
    store = MemoryStore()
    session = agent(NUMPY, store=store, package_policy=decide).generate("x").session
    other = agent(NUMPY, store=store).resume(session)
    assert "may numpy be installed?" in (other.error or "")


def test_a_policy_that_has_no_such_name_is_an_error_before_anything_happens() -> None:
    made = agent(package_policy="lax")
    with pytest.raises(ValueError, match="package_policy: 'lax' is none of known, cautious, ask"):
        made.generate("x")


def test_the_names_are_exported() -> None:
    listed = codetape.allow_only("numpy")
    assert listed(codetape.Package("pandas", "pandas")).verdict == "deny"
    assert codetape.Decision("allow").reason == ""


def test_load_finds_a_session_by_its_prefix_and_the_last_one() -> None:
    store = MemoryStore()
    made = agent(store=store)
    session = made.generate("x").session
    for name in (session, session[:9], "last"):
        assert made.load(name).success
    with pytest.raises(codetape.UnknownSession):
        made.load("nothing")


def test_a_policy_is_no_part_of_a_prompt() -> None:
    result = agent(NUMPY, package_policy="known").generate("x")
    assert "package_policy" not in json.dumps(result.conversation_history)
    assert isinstance(AutoCoderAgent(model="m", package_policy=decide), AutoCoderAgent)
