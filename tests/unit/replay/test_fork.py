"""A session that begins with the events of another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetape.adapters.store.memory import MemoryStore
from codetape.engine.ports import StoreError
from codetape.engine.tape import Source
from codetape.replay.export import export_tape, tape_lines
from codetape.replay.fork import CannotFork
from codetape.replay.imports import BadTapeFile, OtherContent, import_tape, read_tape_file
from codetape.replay.reading import open_tape
from codetape.replay.replayer import replay
from codetape.replay.totals import own_totals
from codetape.states.events import AttemptsSpent, CodeWritten, Diagnosed, Forked, TestsPassed
from codetape.states.values import Answer, RunOutcome
from tests.support.forks import forked, resumed
from tests.support.sessions import ID
from tests.unit.replay.sessions import LONG, Script, code, played

FORK = "fork00000001"
FINDINGS = '{"failures": [{"test_name": "test_one", "error_type": "test_error"}]}'


@pytest.fixture
def store() -> MemoryStore:
    """A store with the long session: twenty events."""
    store = MemoryStore()
    played(LONG, store)
    return store


def seq_of(store: Source, name: str) -> int:
    return next(step.seq for step in open_tape(store, ID) if step.event.name == name)


@pytest.mark.parametrize("at", range(1, 20))
def test_a_fork_shares_what_was_and_goes_on_by_itself(store: MemoryStore, at: int) -> None:
    before = list(tape_lines(store, ID))
    session = forked(store, at)
    rows = list(store.read(FORK))
    assert rows[:at] == list(store.read(ID))[:at]
    assert (session.seq, session.id) == (at + 1, FORK)
    event = open_tape(store, FORK)[-1].event
    assert event == Forked(parent=ID, seq=at)
    made = resumed(store, FORK, LONG.answers, LONG.runs)
    assert made.session.done
    assert replay(store, FORK, keep_going=True).differences == ()
    assert list(tape_lines(store, ID)) == before


def test_it_knows_its_parent(store: MemoryStore) -> None:
    forked(store, 12)
    tape = open_tape(store, FORK)
    assert (tape.parent, tape.inherited, tape.simulated) == (ID, 12, False)
    assert [step.inherited for step in tape] == [True] * 12 + [False]
    root = open_tape(store, ID)
    assert (root.parent, root.inherited) == (None, 0)


def test_a_session_that_is_done_has_no_fork(store: MemoryStore) -> None:
    with pytest.raises(CannotFork, match="is done after event 20; fork it before that"):
        forked(store, 20)
    with pytest.raises(IndexError, match="events 1 to 20, not 21"):
        forked(store, 21)
    assert [row.id for row in store.sessions()] == [ID]


def test_an_id_is_used_once(store: MemoryStore) -> None:
    forked(store, 3)
    with pytest.raises(StoreError, match="already"):
        forked(store, 4)
    assert len(list(store.read(FORK))) == 4


def test_another_job_is_what_is_asked_for_from_there_on(store: MemoryStore) -> None:
    job = open_tape(store, ID)[12].session.job
    changed = job.model_copy(update={"model": "another", "max_iterations": 1})
    forked(store, 12, job=changed)
    tape = open_tape(store, FORK)
    assert tape[-1].event == Forked(
        parent=ID, seq=12, job=changed, changed=("model", "max_iterations")
    )
    assert (tape[12].session.job, tape[13].session.job) == (job, changed)
    made = resumed(store, FORK, LONG.answers, LONG.runs)
    assert isinstance(made.records[-1].event, AttemptsSpent)
    assert replay(store, FORK).identical


def test_the_same_job_is_no_change(store: MemoryStore) -> None:
    forked(store, 12, job=open_tape(store, ID)[12].session.job)
    assert open_tape(store, FORK)[-1].event == Forked(parent=ID, seq=12)


# --- another outcome ------------------------------------------------------------------------------


def test_another_outcome_takes_the_place_of_the_one_that_was(store: MemoryStore) -> None:
    seq = seq_of(store, "diagnosed")
    session = forked(store, seq - 1, outcome=Answer(text=FINDINGS))
    one, other = open_tape(store, ID)[seq], open_tape(store, FORK)[seq + 1]
    assert other.record.request_key == one.record.request_key
    assert isinstance(other.event, Diagnosed)
    assert [failure.label for failure in other.event.failures] == ["test_error"]
    assert (session.seq, session.totals.calls) == (seq + 1, one.session.totals.calls)
    assert open_tape(store, FORK).simulated
    assert replay(store, FORK).identical


def test_a_run_that_did_not_happen(store: MemoryStore) -> None:
    seq = seq_of(store, "tests_failed")
    last = open_tape(store, ID)[-1].event.outcome
    assert isinstance(last, RunOutcome)
    assert forked(store, seq - 1, outcome=last).done
    assert isinstance(open_tape(store, FORK)[-1].event, TestsPassed)


@pytest.mark.parametrize(
    ("at", "outcome", "reason"),
    [
        (4, Answer(text="x"), "event 5 of .*, noted, answers no request; an outcome can be repl"),
        (3, RunOutcome(exit_status=0), "event 4 of .* is none of that kind: .* has no outcome Run"),
    ],
)
def test_outcomes_that_do_not_fit(
    store: MemoryStore, at: int, outcome: Answer, reason: str
) -> None:
    with pytest.raises(CannotFork, match=reason):
        forked(store, at, outcome=outcome)
    assert [row.id for row in store.sessions()] == [ID]


def test_no_outcome_for_what_is_not_asked_any_more(store: MemoryStore) -> None:
    seq = seq_of(store, "diagnosed")
    job = open_tape(store, ID)[1].session.job.model_copy(update={"max_iterations": 1})
    with pytest.raises(CannotFork, match="attempts_spent follows by itself"):
        forked(store, seq - 1, job=job, outcome=Answer(text=FINDINGS))


# --- what was paid --------------------------------------------------------------------------------


def test_what_was_inherited_is_not_paid_twice(store: MemoryStore) -> None:
    forked(store, 12)
    made = resumed(store, FORK, LONG.answers, LONG.runs)
    inherited = open_tape(store, ID)[12].session.totals
    assert made.session.inherited == inherited
    assert made.session.own.calls == made.session.totals.calls - inherited.calls
    rows = {row.id: row for row in store.sessions()}
    assert own_totals(store, rows[FORK]) == made.session.own
    assert own_totals(store, rows[ID]) == open_tape(store, ID)[-1].session.totals


# --- files ----------------------------------------------------------------------------------------


def test_the_file_of_a_fork_needs_no_other(store: MemoryStore, tmp_path: Path) -> None:
    forked(store, 12)
    forked(store, 13, id="fork00000002", of=FORK)
    export_tape(store, "fork00000002", tmp_path / "one")
    file = read_tape_file(tmp_path / "one")
    assert list(file.rows) == list(store.read("fork00000002"))
    assert replay(file, "fork00000002").identical
    other = MemoryStore()
    import_tape(tmp_path / "one", other)
    assert [(row.id, row.seq, row.parent) for row in other.sessions()] == [
        (ID, 12, None),
        (FORK, 13, ID),
        ("fork00000002", 14, FORK),
    ]
    export_tape(other, "fork00000002", tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_parent_may_be_there_and_longer_or_come_later(
    store: MemoryStore, tmp_path: Path
) -> None:
    forked(store, 12)
    export_tape(store, FORK, tmp_path / "fork")
    export_tape(store, ID, tmp_path / "parent")
    for first, second in (("fork", "parent"), ("parent", "fork")):
        other = MemoryStore()
        import_tape(tmp_path / first, other)
        import_tape(tmp_path / second, other)
        import_tape(tmp_path / second, other)
        assert list(other.read(ID)) == list(store.read(ID))
        assert list(other.read(FORK)) == list(store.read(FORK))


def test_another_parent_of_that_id_is_left_alone(store: MemoryStore, tmp_path: Path) -> None:
    forked(store, 12)
    export_tape(store, FORK, tmp_path / "fork")
    other = MemoryStore()
    played(Script({"plan": []}), other)
    before = list(other.read(ID))
    with pytest.raises(OtherContent) as caught:
        import_tape(tmp_path / "fork", other)
    assert (caught.value.session, caught.value.seq) == (ID, 3)
    assert list(other.read(ID)) == before
    assert [row.id for row in other.sessions()] == [ID]


def test_an_inherited_event_under_another_name_is_refused(
    store: MemoryStore, tmp_path: Path
) -> None:
    forked(store, 12)
    file = tmp_path / "fork"
    export_tape(store, FORK, file)
    text = file.read_text()
    file.write_text(text.replace(f'"session":"{ID}"', '"session":"somebody"', 1))
    with pytest.raises(BadTapeFile, match="event 1: its hash does not fit"):
        read_tape_file(file)
    file.write_text(text.replace(f',"session":"{ID}"', "", 1))
    with pytest.raises(BadTapeFile, match="event 1: its hash does not fit"):
        read_tape_file(file)


def test_code_comes_from_the_model_again(store: MemoryStore) -> None:
    """A fork asks again for what its parent was told after that."""
    seq = seq_of(store, "code_written")
    forked(store, seq - 1)
    made = resumed(store, FORK, {**LONG.answers, "code": [code("return 1")]}, LONG.runs)
    codes = [r.event.source for r in made.records if isinstance(r.event, CodeWritten)]
    assert codes == ["def add(a, b):\n    return 1\n"]
