"""L. From Python a tape of others grants as little as from the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codetape import Authority, NotGranted, Result
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.replay.imports import put_tape, tape_of
from codetape.states.job import Job
from tests.support.sessions import HAPPY, ID, play
from tests.unit.codetape.test_agent import agent
from tests.unit.codetape.test_toolmaker import maker

GRANTED = Authority(network=True, secrets="CANARY")


@pytest.fixture
def store() -> MemoryStore:
    """A store with a session of others, which wants a network and a secret."""
    made = MemoryStore()
    job = Job(prompt="x", network_access=True, secrets=("CANARY",))
    asyncio.run(play(HAPPY, job=job, store=made))
    return made


def loaded(store: MemoryStore, sandbox: FakeSandbox, given: Authority | None = None) -> Result:
    return agent(store=store, sandbox=sandbox).load(ID, authority=given)


def test_a_loaded_session_runs_what_it_was_granted(store: MemoryStore) -> None:
    sandbox = FakeSandbox()
    loaded(store, sandbox, GRANTED).run()
    assert [(run.network, run.secrets) for run in sandbox.runs] == [(True, ("CANARY",))]


@pytest.mark.parametrize("given", [None, Authority(network=True), Authority(secrets="CANARY")])
def test_a_loaded_session_is_refused_what_it_was_not_granted(
    store: MemoryStore, given: Authority | None
) -> None:
    sandbox = FakeSandbox()
    result = loaded(store, sandbox, given)
    for run in (
        result.run,
        result.run_outcome,
        result.as_task(),
        result.as_task(secrets=(), retries=3),
        result.as_task(env_vars={"A": "b"}, cache="disable").call,
    ):
        with pytest.raises(NotGranted):
            run()
    assert sandbox.specs == []
    assert sandbox.runs == []


def test_a_task_of_a_loaded_session_keeps_its_grants(store: MemoryStore) -> None:
    sandbox = FakeSandbox()
    task = loaded(store, sandbox, GRANTED).as_task(env_vars={"A": "b"})
    task()
    assert sandbox.runs[0].environment == {"A": "b"}


def test_a_loaded_session_may_be_read_without_a_grant(store: MemoryStore, tmp_path: Path) -> None:
    result = loaded(store, FakeSandbox())
    assert result.success
    assert result.solution
    assert result.conversation_history
    assert result.save(tmp_path / "out")


def test_the_files_of_a_foreign_tool_are_looked_for_where_that_is_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is a word of its tape: a file there need not be its own."""
    monkeypatch.chdir(tmp_path)
    ours, elsewhere = MemoryStore(), SqliteStore(tmp_path / "elsewhere.db")
    made = maker(tmp_path, store=ours, project="log-tools").make("Count words.")
    assert made.path
    assert made.path.is_file()
    assert maker(tmp_path, store=ours).load(made.session).path == made.path
    put_tape(tape_of(ours, made.session), elsewhere)
    other = maker(tmp_path, store=elsewhere)
    told = other.load(made.session)
    assert (told.code, told.path, told.report_path) == (made.code, None, None)
    assert other.load(made.session, authority=Authority(network=True)).path is None
    granted = other.load(made.session, authority=Authority(files="log-tools"))
    assert (granted.path, granted.report_path) == (made.path, made.report_path)
