"""Each field of a redacted tape is decided, and one that is not is gone."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.cli import main
from codetape.replay.export import export_tape
from codetape.replay.harmless import GONE, KEPT
from codetape.replay.imports import TapeFile, read_tape_file
from codetape.replay.reading import open_tape
from codetape.replay.redact import NotRedactable, redacted
from codetape.replay.verify import verify
from codetape.states import events as e
from codetape.states import requests as r
from codetape.states import values as v
from codetape.states.failures import Failure
from codetape.states.job import Job, Price
from codetape.states.machine import IllegalTransition
from codetape.states.tools.events import FindingWritten
from codetape.states.values import Value
from codetape.states.workflow import WORKFLOWS, Workflow
from tests.support.canaries import Canaries, tape_of


def _below(home: type[Any]) -> Iterator[type[Any]]:
    for sub in home.__subclasses__():
        yield sub
        yield from _below(sub)


def _ours(home: type[Any]) -> list[type[Any]]:
    """Classes of events or requests that the product has: those that have a name."""
    named = [kind for kind in _below(home) if "name" in vars(kind)]
    return [kind for kind in named if kind.__module__.startswith("codetape.states")]


EVENTS = [kind for kind in _ours(e.Event) if kind is not e.SessionOpened]
REQUESTS = _ours(r.Request)


def _whole(canaries: Canaries, rules: Workflow) -> TapeFile:
    """A tape with each event of a workflow and each request, and a canary in each field."""
    opening = canaries.value(e.SessionOpened, workflow=rules.name, rules=1)
    events = [opening, *(canaries.value(kind) for kind in _events_of(rules))]
    return tape_of(events, [canaries.value(kind) for kind in REQUESTS])


def _events_of(rules: Workflow) -> list[type[e.Event]]:
    known = {row.event for row in rules.machine.table}
    return [kind for kind in EVENTS if kind.name in known]


def _exported(tape: TapeFile, folder: Path) -> str:
    file = folder / "shown.tape.jsonl"
    export_tape(redacted(tape, tape.session), tape.session, file, redacted=True)
    return file.read_text()


@pytest.mark.parametrize("rules", WORKFLOWS, ids=lambda rules: rules.name)
def test_no_text_of_any_field_gets_out(tmp_path: Path, rules: Workflow) -> None:
    canaries = Canaries()
    told = _exported(_whole(canaries, rules), tmp_path)
    assert len(canaries.texts) > 300
    told_numbers = set(re.findall("731[0-9]{4}", told))
    assert [text for text in canaries.texts if text.split()[1] in told_numbers] == []


def test_no_number_of_what_a_caller_gave_gets_out(tmp_path: Path) -> None:
    canaries = Canaries()
    job = canaries.value(Job)
    opened = e.SessionOpened(job=job, workflow="autocoder", rules=1)
    call = canaries.value(v.LlmCall)
    parsed = canaries.value(e.ConstraintParsed)
    tape = tape_of([opened, parsed], [r.WritePlan(call=call)])
    told = _exported(tape, tmp_path)
    given_numbers = re.findall(
        r"731\d{4}", str([job.parameters, call.parameters, parsed.check and parsed.check.arguments])
    )
    assert len(given_numbers) >= 9
    assert [number for number in given_numbers if number in told] == []


@pytest.mark.parametrize("rules", WORKFLOWS, ids=lambda rules: rules.name)
def test_what_is_left_reads_verifies_and_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rules: Workflow
) -> None:
    _exported(_whole(Canaries(), rules), tmp_path)
    file = tmp_path / "shown.tape.jsonl"
    tape = read_tape_file(file)
    assert verify(tape, tape.session).fault is None
    steps = list(open_tape(tape, tape.session))
    assert [step.event.name for step in steps[1:]] == [kind.name for kind in _events_of(rules)]
    asked = [step.request_name for step in steps if step.request_name]
    assert asked == [kind.name for kind in REQUESTS]
    for step in steps:
        assert "canary" not in step._repr_html_()
    for view in ([], ["--events"], ["--prompts"], ["--json"]):
        main(["show", str(file), *view])
        shown = capsys.readouterr()
        assert "[text" in shown.out, view
        assert "canary" not in shown.out + shown.err, view


HOSTILE = (
    "git+https://me:hunter2@corp.example/repo.git",
    "https://me:hunter2@index.corp.example/simple",
    "/home/jane.doe/env/bin/python",
    "vllm//home/jane.doe/model",
    "C:/Users/jane.doe/x",
    "me@example.com",
    "../../jane.doe",
    "the patient is Jane",
    "4929-1234-5678-9012",
    "a" * 300,
)
NAMED = [
    (e.CodeWritten, "packages"),
    (e.PackageReplaced, "replacement"),
    (v.ImageRef, "ref"),
    (v.ImageRef, "python"),
    (v.ImageSpec, "base"),
    (v.ImageSpec, "requirements"),
    (v.Answer, "model"),
    (v.Answer, "finish_reason"),
    (v.Problem, "type"),
    (v.Problem, "module"),
    (Job, "models"),
    (Job, "prices"),
    (Job, "base_image"),
    (Job, "sandbox"),
]


@given(st.sampled_from(NAMED), st.sampled_from(HOSTILE))
def test_only_what_has_the_form_of_a_name_stays(where: tuple[type[Value], str], text: str) -> None:
    """What stands in the place of a name may be an address, a path, or a sentence."""
    kind, field = where
    shape = get_origin(kind.model_fields[field].annotation)
    given_text: Any = text
    if shape is tuple:
        given_text = (text,)
    if shape is dict:
        given_text = {text: Price(input=1.0, output=1.0) if field == "prices" else text}
    value = Canaries().value(kind, **{field: given_text})
    event = value if isinstance(value, e.Event) else _holding(value)
    tape = redacted(tape_of([_opened(), event]), "canaries0001")
    told = str([row.data for row in tape.rows])
    assert text not in told


def _opened() -> e.SessionOpened:
    return e.SessionOpened(job=Job(prompt="p"), workflow="autocoder", rules=1)


def _holding(value: Value) -> e.Event:
    """An event that has a value of that class somewhere."""
    canaries = Canaries()
    if isinstance(value, Job):
        return e.Forked(parent="p", seq=1, job=value)
    if isinstance(value, v.Answer):
        return e.Diagnosed(by="model", failures=(), answer=value)
    if isinstance(value, v.ImageRef):
        return e.ImageBuilt(image=value)
    if isinstance(value, v.Problem):
        return e.TestsNotCollected(
            run=v.RunOutcome(),
            failure=canaries.value(Failure, problem=value),
        )
    assert isinstance(value, v.ImageSpec)
    return SpecTold(spec=value)


class SpecTold(e.Event):
    """An event of a workflow of one's own, with a value of ours."""

    name = "spec_told"
    spec: v.ImageSpec


def test_a_command_that_was_refused_is_gone() -> None:
    """Its name stands where otherwise packages do."""
    failure = v.BuildFailure(cause="refused_command", message="", packages=("deploy-acme",))
    tape = redacted(tape_of([_opened(), e.PackageRejected(failure=failure)]), "canaries0001")
    assert "deploy-acme" not in tape.rows[1].data


def test_a_digest_of_what_is_gone_is_gone() -> None:
    """Who guesses a command could see in the digest of an image that it was the right one."""
    image = v.ImageRef(ref="ab" * 32, spec_key="cd" * 32, python="3.11")
    tape = redacted(tape_of([_opened(), e.ImageBuilt(image=image)]), "canaries0001")
    assert "ab" * 6 not in tape.rows[1].data
    assert "cd" * 6 not in tape.rows[1].data


# --- workflows of one's own -----------------------------------------------------------------------


class Patient(Value):
    """Data of a caller's own."""

    name: str
    age: int
    weights: dict[str, tuple[str, ...]]


class Needs(Value):
    """A class of a caller's own that has the name of one of ours."""

    packages: tuple[str, ...] = ()


class PatientSeen(e.Event):
    """An event of a caller's own: what it holds is not known to be harmless."""

    name = "patient_seen"
    patients: dict[str, Patient]
    visits: dict[str, int]
    groups: frozenset[str]
    needs: Needs
    kind: Literal["first", "again"] | None = None
    room: int = 0
    insured: bool = False


class BirthdaySeen(e.Event):
    """An event with something that no text or number can stand for."""

    name = "birthday_seen"
    day: dt.date
    version: ClassVar[int] = 1


def test_a_field_that_is_not_declared_is_gone() -> None:
    patient = Patient(name="Jane", age=4711, weights={"Kilo": ("Seventy",)})
    seen = PatientSeen(
        patients={"Doe": patient},
        visits={"May": 4712},
        groups=frozenset({"Zero"}),
        needs=Needs(packages=("jane-doe",)),
        kind="again",
        room=4713,
        insured=True,
    )
    tape = redacted(tape_of([_opened(), seen]), "canaries0001")
    told = tape.rows[1].data
    words = (
        "Jane",
        "4711",
        "Kilo",
        "Seventy",
        "Doe",
        "May",
        "4712",
        "Zero",
        "jane",
        "4713",
        "true",
    )
    assert [word for word in words if word in told] == []
    assert '"again"' in told  # one of the words of the program
    assert open_tape(tape, tape.session)[2].event.name == "patient_seen"


def test_what_cannot_be_redacted_is_refused() -> None:
    seen = BirthdaySeen(day=dt.date(1970, 1, 2))
    with pytest.raises(NotRedactable, match="date cannot be redacted"):
        redacted(tape_of([_opened(), seen]), "canaries0001")


# --- the declaration ------------------------------------------------------------------------------


def _reached(kinds: list[type[Value]]) -> set[type[Value]]:
    """All classes of values that these are made of, their bases included."""
    found: set[type[Value]] = set()
    open_kinds = list(kinds)
    while open_kinds:
        kind = open_kinds.pop()
        if kind not in found:
            found.add(kind)
            open_kinds += [k for k in kind.__mro__ if issubclass(k, Value) and k is not Value]
            for info in kind.model_fields.values():
                open_kinds += _values_in(info.annotation)
    return found


def _values_in(annotation: Any) -> list[type[Value]]:
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return [annotation]
    return [kind for part in get_args(annotation) for kind in _values_in(part)]


def _needs_no_line(annotation: Any) -> bool:
    """True for values in values and for closed sets of words."""
    if annotation in {type(None), Ellipsis} or get_origin(annotation) is Literal:
        return True
    if isinstance(annotation, type):
        if issubclass(annotation, Value | Enum):
            return True
        if not get_args(annotation):
            return False
    parts = get_args(annotation)
    return bool(parts) and all(map(_needs_no_line, parts))


def test_each_field_is_decided_once() -> None:
    """A new field of an event, a request or a value has to be kept or gone, in words."""
    reached = _reached([e.SessionOpened, *EVENTS, *REQUESTS])
    for kind in reached:
        own = set(vars(kind).get("__annotations__", ())) & set(kind.model_fields)
        leaves = {name for name in own if not _needs_no_line(kind.model_fields[name].annotation)}
        kept, gone = set(KEPT.get(kind, ())), set(GONE.get(kind, ()))
        assert kept | gone == leaves, kind.__name__
        assert not kept & gone, kind.__name__
    assert {*KEPT, *GONE} <= reached


@pytest.mark.parametrize("is_redacted", [False, True])
def test_an_event_of_another_workflow_is_refused(is_redacted: bool) -> None:
    """There is no fold of it: a tape that has one is refused like any that goes another way."""
    written = Canaries().value(FindingWritten)
    tape = replace(tape_of([_opened(), written]), redacted=is_redacted)
    with pytest.raises(IllegalTransition, match="finding_written"):
        open_tape(tape, tape.session).session_at(2)
