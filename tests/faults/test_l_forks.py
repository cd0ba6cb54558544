"""L. A fork of what others wrote is not this user's until all that it wants is granted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codetape import Authority, Budget, NotGranted, fork, open_tape
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.authority import permit, read_grants
from codetape.cli import main
from codetape.marks import is_marked
from codetape.replay.imports import put_tape, tape_of
from codetape.replay.reading import Tape
from codetape.states import events as e
from codetape.states.job import Job
from codetape.states.values import ImageRef
from tests.faults.test_l_events import AFTER_PLAN, append
from tests.support.sessions import HAPPY, ID, play
from tests.unit.codetape.test_agent import agent
from tests.unit.codetape.test_toolmaker import maker

WORDS = ("network", "secrets=CANARY", "budget", "left-pad")
Run = Callable[..., tuple[int, str]]


def foreign(**fields: Any) -> MemoryStore:
    """A session of others that waits for its code, and wants a network, a secret and a package."""
    store = MemoryStore()
    wants = {"network_access": True, "secrets": ("CANARY",), "base_packages": ("left-pad",)}
    job = Job(prompt="x", **{**wants, "budget": Budget(calls=1), **fields})
    asyncio.run(play(HAPPY, job=job, store=store))
    return store


def tape(store: MemoryStore) -> Tape:
    return open_tape(store, ID)


def is_ours(of: Tape) -> bool:
    session = of[-1].session
    return is_marked(of.source, session.id, session.job, session.allowed)


@pytest.mark.parametrize("changes", [{}, {"timeout": 60.0}, {"calls": 9}, {"network_access": True}])
def test_a_fork_without_a_grant_is_of_others_too(changes: dict[str, Any]) -> None:
    store = foreign()
    made = fork(tape(store), at=2, **changes)
    assert not is_ours(made)
    with pytest.raises(NotGranted, match="CANARY"):
        agent(AFTER_PLAN, store=store).resume(made.id, budget=Budget())
    again = fork(made, at=len(made), max_iterations=2)
    assert not is_ours(again)


@pytest.mark.parametrize("lacking", WORDS)
def test_a_fork_with_grants_tells_each_one_that_lacks(lacking: str) -> None:
    store = foreign()
    given = read_grants([word for word in WORDS if word != lacking])
    with pytest.raises(NotGranted) as caught:
        fork(tape(store), at=2, authority=given)
    assert [need.grant for need in caught.value.needs] == [lacking]
    assert f"--allow {lacking}" in str(caught.value)
    assert len(store.sessions()) == 1, "nothing was written"


def test_a_fork_with_all_grants_goes_on_without_a_word() -> None:
    store, sandbox = foreign(), FakeSandbox()
    made = fork(tape(store), at=2, calls=9, authority=read_grants(WORDS))
    assert is_ours(made)
    assert not is_ours(tape(store)), "its parent stays what it was"
    assert agent(store=store, sandbox=sandbox).resume(made.id).success
    assert {run.network for run in sandbox.runs} == {True}


def test_a_grant_covers_no_package_that_events_ask_for() -> None:
    """A fork takes the code of its parent, and with it the packages of the code."""
    store = foreign()
    listing = {"code": "x = 1\n", "packages": ["evil"]}
    other = MemoryStore()
    job = tape(store)[1].session.job.model_copy(update={"budget": Budget()})
    asyncio.run(play({**HAPPY, "code": [listing]}, job=job, store=other))
    at = next(s.seq for s in tape(other) if isinstance(s.event, e.CodeWritten))
    with pytest.raises(NotGranted) as caught:
        fork(tape(other), at=at, authority=read_grants(WORDS))
    assert [need.grant for need in caught.value.needs] == ["evil"]


def test_a_changed_field_needs_the_grant_of_its_new_value() -> None:
    store = foreign(secrets=(), base_packages=())
    with pytest.raises(NotGranted, match="limits"):
        fork(tape(store), at=2, memory="64Gi", authority=read_grants(["network", "budget"]))
    made = fork(tape(store), at=2, network_access=False, calls=3, authority=Authority())
    assert is_ours(made)


def test_a_fork_does_not_make_an_edited_tape_right() -> None:
    """The job that an event of others brings is not the one that this user opened."""
    store = MemoryStore()
    session = agent(store=store, budget=Budget(calls=1)).generate("Write add(a, b).").session
    evil = open_tape(store, session)[1].session.job.model_copy(update={"secrets": ("CANARY",)})
    append(store, session, e.Forked(parent="p", seq=1, job=evil))
    edited = open_tape(store, session)
    assert not is_ours(fork(edited, at=len(edited)))
    assert not is_ours(fork(edited, at=len(edited), timeout=60.0))
    assert is_ours(fork(edited, at=2))


def test_a_permission_of_an_event_is_not_inherited_by_a_fork() -> None:
    store = MemoryStore()
    sandbox = FakeSandbox()
    job = {"package_policy": "ask", "base_packages": ()}
    listing = {"code": "x = 1\n", "packages": ["left-pad"]}
    made = agent({**HAPPY, "code": [listing]}, store=store, sandbox=sandbox, **job)
    session = made.generate("Write add(a, b).").session
    append(store, session, e.Resumed(allow=("left-pad",)))
    edited = open_tape(store, session)
    assert edited[-1].session.allowed
    assert not is_ours(fork(edited, at=len(edited)))


def test_a_tool_of_others_is_forked_with_the_grant_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for project, given, error in (
        ("log-tools", Authority(budget=True), NotGranted),
        ("log-tools", Authority(files="elsewhere", budget=True), NotGranted),
        ("../log-tools", Authority(sandbox="FakeSandbox", files=True, budget=True), ValueError),
    ):
        ours, other = MemoryStore(), MemoryStore()
        tool = maker(tmp_path, project=project, budget=Budget(calls=1), store=ours)
        session = tool.make("Count words.").session
        put_tape(tape_of(ours, session), other)
        with pytest.raises(error, match=r"folder of the tool|no plain path"):
            fork(open_tape(other, session), at=2, authority=given)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    with closing(SqliteStore(tmp_path / "codetape.db")) as store:
        put_tape(tape_of(foreign(), ID), store)

    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(words)
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def test_the_command_tells_what_its_fork_will_want(run: Run) -> None:
    code, told = run("fork", ID, "--at", "2", "--set", "calls=9")
    assert code == 0
    assert "secret: CANARY" in told
    assert "--allow network,secrets=CANARY" in told
    code, told = run("resume", "last")
    assert code == 2
    assert "CANARY" in told
    assert "budget" not in told, "it was given here"


def test_the_command_refuses_a_fork_that_lacks_a_grant(run: Run) -> None:
    code, told = run("fork", ID, "--at", "2", "--allow", "network,budget", "--allow", "left-pad")
    assert code == 2
    assert "--allow secrets=CANARY" in told
    assert run("sessions", "--json")[1].count('"session"') == 1


def test_a_fork_that_the_command_granted_all_asks_for_nothing(run: Run) -> None:
    words = ("--allow", "network,secrets=CANARY,budget", "--allow", "left-pad")
    code, told = run("fork", ID, "--at", "2", *words)
    assert code == 0
    assert "--allow" not in told
    assert "not as you opened it" not in run("resume", "last")[1]


def test_the_image_of_a_parent_is_no_package_that_was_granted() -> None:
    store = foreign(budget=Budget(), base_packages=(), secrets=())
    of = tape(store)
    at = next(s.seq for s in of if isinstance(s.event, e.ImageBuilt))
    image = of[at].session.image
    assert isinstance(image, ImageRef)
    made = fork(of, at=at, authority=read_grants(["network", "budget"]))
    sandbox = FakeSandbox()
    agent(HAPPY, store=store, sandbox=sandbox).resume(made.id)
    assert permit(store, made[-1].session, None, ("sandbox", "model"))
    assert sandbox.specs
