"""Faults of models and providers: whole sessions against a real server that misbehaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.sqlite import SqliteStore
from codetape.result import Result
from codetape.states.values import FailureClass
from tests.support.chat_replies import Json, Reply
from tests.support.chat_server import ChatServer, refusal
from tests.support.chat_sessions import answers, check_tape, converse, generate, rejections
from tests.support.sessions import PLAN, RIGHT, TESTS

CUT = Reply('{"code": "def add(a, b):\\n    ret', finish_reason="length")
Patch = pytest.MonkeyPatch


def asked(server: ChatServer, turn: int) -> str:
    """The last message of a request."""
    return str(server.requests[turn].body["messages"][-1]["content"])


def check_is_the_models_fault(result: Result) -> None:
    assert result.folded.ending is not None
    assert result.folded.ending.failure is FailureClass.MODEL


def test_b2_hidden_thoughts_that_used_up_the_limit_are_a_cut_answer(monkeypatch: Patch) -> None:
    thoughts = Reply(None, finish_reason="length")
    result, server, _ = generate(monkeypatch, [thoughts, Reply(RIGHT)])
    assert rejections(result) == ["truncated"]
    assert "cut at the limit of its length" in asked(server, 2)
    assert result.success
    check_tape(result, server, answered=4)


def test_b3_cut_answers_end_the_attempts_and_each_second_one_is_asked_to_be_shorter(
    monkeypatch: Patch,
) -> None:
    result, server, _ = generate(monkeypatch, [CUT] * 30)
    attempts = result.folded.job.attempts
    assert rejections(result) == ["truncated", "truncated"] * attempts
    assert "Be shorter" not in asked(server, 1)
    assert "Be shorter" in asked(server, 2)
    assert "Be shorter" not in asked(server, 3)
    check_is_the_models_fault(result)


def test_b4_half_a_plan_is_no_plan(monkeypatch: Patch) -> None:
    half = Reply('{"description": "Add two numbers.", "appr')
    result, server, _ = converse(monkeypatch, [half, half, Reply(RIGHT), Reply(TESTS)])
    assert rejections(result) == ["malformed", "malformed"]
    assert result.plan is None
    assert len(server.requests) == 4
    assert result.success


def test_b4_half_a_plan_is_asked_for_once_more(monkeypatch: Patch) -> None:
    half = Reply('{"description": "Add two numbers.", "appr')
    result, _, _ = converse(monkeypatch, [half, Reply(PLAN), Reply(RIGHT), Reply(TESTS)])
    assert result.plan is not None
    assert result.plan.approach == PLAN["approach"]


FORTY = [f"package-{n}" for n in range(40)]


def test_b5_forty_packages_are_forty_packages(monkeypatch: Patch) -> None:
    sandbox = FakeSandbox()
    result, _, _ = generate(monkeypatch, [Reply({**RIGHT, "packages": FORTY})], sandbox=sandbox)
    assert result.success
    assert set(sandbox.specs[-1].requirements) == {*FORTY, "pytest"}


@pytest.mark.parametrize("finish_reason", ["length", "stop"])
def test_b5_a_list_of_packages_that_was_cut_is_not_an_empty_one(
    monkeypatch: Patch, finish_reason: str
) -> None:
    whole = Reply({**RIGHT, "packages": FORTY})
    cut = Reply((whole.text or "")[:-150], finish_reason=finish_reason)
    sandbox = FakeSandbox()
    result, _, _ = generate(monkeypatch, [cut, whole], sandbox=sandbox)
    assert len(rejections(result)) == 1
    assert {len(spec.requirements) for spec in sandbox.specs if spec.requirements} == {41}


def test_b8_a_fence_that_nothing_closes_is_a_cut_answer(monkeypatch: Patch) -> None:
    result, _, _ = generate(monkeypatch, [Reply(f"```python\n{RIGHT['code']}"), Reply(RIGHT)])
    assert rejections(result) == ["truncated"]
    assert result.success


@pytest.mark.parametrize("choices", ["none", "null_message"])
@pytest.mark.parametrize("whole", [False, True])
def test_b9_an_answer_without_a_choice_or_a_message_has_a_type(
    monkeypatch: Patch, choices: str, *, whole: bool
) -> None:
    refuse = ("stream",) if whole else ()
    filtered = Reply(choices=choices, finish_reason="content_filter", refuse=refuse)  # type: ignore[arg-type]
    result, _, _ = generate(monkeypatch, [filtered, Reply(RIGHT)])
    assert rejections(result)[0] in ("refused", "empty")
    assert result.success


REFUSING = refusal(400, "Invalid schema for response_format 'code': no", param="response_format")
TYPED = refusal(400, "response_format: Input should be a valid dictionary", param=None)
IGNORING = Reply(f"Sure!\n```json\n{Reply(RIGHT).text}\n```")


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param([REFUSING, Reply(RIGHT)], id="refuses"),
        pytest.param([TYPED, Reply(RIGHT)], id="has a type error"),
        pytest.param([IGNORING], id="ignores"),
        pytest.param([Reply("Sure!"), Reply(RIGHT)], id="answers in words"),
    ],
)
def test_b10_a_schema_is_plain_json_and_answers_are_checked_here(
    monkeypatch: Patch, behaviour: list[Reply]
) -> None:
    result, server, _ = generate(monkeypatch, behaviour)
    assert result.success
    assert result.solution is not None
    assert result.solution.code.strip() == RIGHT["code"].strip()
    sent: Json = server.requests[1].body["response_format"]
    assert sent["type"] == "json_schema"
    assert "code" in sent["json_schema"]["schema"]["properties"]
    if behaviour[0].status == 400:
        fallback = server.requests[2].body
        assert "response_format" not in fallback
        assert '"properties"' in fallback["messages"][0]["content"]
    assert server.left_over() == {}


def test_b11_what_a_model_refuses_and_who_answered_is_on_the_tape(monkeypatch: Patch) -> None:
    other = Reply(RIGHT, model="gpt-4.1-elsewhere")
    replies = [Reply(PLAN, refuse=("temperature",)), other, Reply(TESTS)]
    result, server, _ = converse(monkeypatch, replies, litellm_params={"temperature": 0.2})
    assert ["temperature" in request.body for request in server.requests] == [True, *[False] * 3]
    plan, code, _ = answers(result)
    assert "temperature was left out: the model refuses it" in plan.notes
    assert "temperature was left out: the model refuses it" in code.notes
    assert (plan.model, code.model) == ("gpt-4.1", "gpt-4.1-elsewhere")


LONE = '{"code": "def add(a, b):\\n    # \\ud83c\\n    return a + b\\n"}'
LONE_PLAN = '{"description": "\\ud83c", "approach": "NUL: \\u0000"}'


def test_b17_half_an_emoji_is_stored_and_kept_as_it_came(
    monkeypatch: Patch, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "tapes.db")
    replies = [Reply(LONE_PLAN), Reply(LONE), Reply(TESTS)]
    result, server, _ = converse(monkeypatch, replies, store=store)
    assert result.success
    assert result.plan is not None
    assert (result.plan.description, result.plan.approach) == ("\ufffd", "NUL: \u2400")
    assert result.solution is not None
    assert "# \ufffd\n" in result.solution.code
    assert [answer.text for answer in answers(result)][:2] == [LONE_PLAN, LONE]
    check_tape(result, server, answered=3)
    store.close()
