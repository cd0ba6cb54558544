"""Other prompts and parameters: what differs is shown line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codetape.replay.imports import TapeFile
from codetape.replay.replayer import replay
from codetape.states import prompts
from codetape.states.requests import Request, WriteCode
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER
from tests.support.sessions import ID
from tests.unit.replay.sessions import changed


def seq_of(tape: TapeFile, name: str) -> int:
    return next(row.seq for row in tape.rows if row.name == name)


@pytest.fixture
def other_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    text = prompts.DIAGNOSIS_ROLE.replace("who is at fault", "whose fault it is")
    monkeypatch.setattr(prompts, "DIAGNOSIS_ROLE", text.replace("by hand", "with care"))


@pytest.mark.usefixtures("other_prompt")
def test_another_prompt_is_shown_line_by_line(tape: TapeFile) -> None:
    report = replay(tape, ID)
    (found,) = report.differences
    seq = seq_of(tape, "diagnosed")
    assert str(found) == f"event {seq}: the diagnosis prompt differs in 2 lines"
    assert (found.kind, found.event) == ("request", "diagnosed")
    assert found.expected == tape.rows[seq - 1].request_key
    assert len(found.found) == 64
    assert "-  Tests of a Python program failed. For each failing test decide who is" in found.diff
    assert "+  Tests of a Python program failed. For each failing test decide whose" in found.diff
    assert len(found.diff.splitlines()) < 20
    assert report.events == seq
    assert report.ending is None


@pytest.mark.usefixtures("other_prompt")
def test_going_on_after_another_prompt(tape: TapeFile) -> None:
    report = replay(tape, ID, keep_going=True)
    assert [found.seq for found in report.differences] == [12, 16, 17]
    assert report.ending
    assert report.events == 20


@pytest.mark.usefixtures("other_prompt")
def test_prompts_may_be_left_out_of_the_comparison(tape: TapeFile) -> None:
    assert replay(tape, ID, ignore_prompts=True).identical
    swapped = changed(tape, 12, request_key=tape.rows[3].request_key)
    (found,) = replay(swapped, ID, ignore_prompts=True).differences
    assert (found.seq, found.expected, found.found) == (12, "write_plan", "diagnose")


def test_another_parameter_is_no_other_prompt(tape: TapeFile) -> None:
    def wanted(s: Session) -> tuple[Request, ...]:
        def warmer(request: Request) -> Request:
            if not isinstance(request, WriteCode):
                return request
            call = request.call.model_copy(update={"parameters": {"temperature": 1}})
            return request.model_copy(update={"call": call})

        return tuple(map(warmer, AUTOCODER.wanted(s)))

    (found,) = replay(tape, ID, [replace(AUTOCODER, wanted=wanted)]).differences
    assert found.reason == "the code call differs in 1 line"
    assert "+call.parameters.temperature: 1" in found.diff


def test_a_request_whose_content_is_gone_is_named_by_its_key(tape: TapeFile) -> None:
    (found,) = replay(changed(tape, 4, request_key="ab" * 32), ID).differences
    assert found.expected == "a request whose content is not kept (abababababab)"
    assert found.found == "write_plan"
