"""L. A tape is data and grants no authority: what others made touches nothing here without a yes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from codetape import Authority, NotGranted, Result, open_tape
from codetape.adapters.llm.scripted import ScriptedLlm
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.authority import read_grants
from codetape.cli import main
from codetape.halflive import half_live
from codetape.marks import is_marked
from codetape.needs import needs
from codetape.replay.imports import put_tape, tape_of
from codetape.states.job import Budget, Job
from tests.support.foreign_tapes import CODE, Listener, forged, imported, wide, written
from tests.support.sessions import HAPPY, ID, play
from tests.unit.codetape.test_agent import agent

RUN_GRANTS = ("sandbox=process", "network", "secrets=CANARY_SECRET", "files", "environment")
RUN = (*RUN_GRANTS, "image", "limits", "secrets=CANARY_REGISTRY")
MODEL = ("address", "secrets=CANARY_KEY", "budget")
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(words)
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CANARY_SECRET", "the-secret-of-the-host")
    monkeypatch.setenv("CANARY_KEY", "the-key-of-the-host")
    monkeypatch.setenv("CANARY_REGISTRY", "the-user-of-the-host:its-password")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


COMMANDS = {
    "run": (("run", ID), RUN),
    "live sandbox": (("replay", ID, "--live", "sandbox"), RUN),
    "live model": (("replay", ID, "--live", "model"), MODEL),
    "resume": (("resume", ID), (*RUN, *MODEL)),
    "fork": (("fork", ID, "--at", "1"), (*RUN, *MODEL)),
}
TABLE = [(name, lacking) for name, (_, grants) in COMMANDS.items() for lacking in grants]


@pytest.mark.parametrize(("command", "lacking"), TABLE)
def test_a_foreign_tape_does_nothing_without_each_grant(
    world: Path, listener: Listener, run: Run, command: str, lacking: str
) -> None:
    words, grants = COMMANDS[command]
    imported(world, wide(world, listener.port, budget=Budget(calls=0)))
    before = written(world)
    code, told = run(*words, "--allow", ",".join(g for g in grants if g != lacking))
    assert code == 2, told
    assert f"--allow {lacking}\n" in told
    assert (listener.heard, (world / "seen").exists()) == ([], False)
    assert written(world) == before


@pytest.mark.parametrize("command", ["run", "live sandbox", "live model", "resume"])
def test_a_foreign_tape_is_told_all_that_it_wants(
    world: Path, listener: Listener, run: Run, command: str
) -> None:
    words, grants = COMMANDS[command]
    imported(world, wide(world, listener.port, budget=Budget(calls=0)))
    for given in ((), ("--allow", "polars"), ("--allow", "sandbox=podman,secrets=OTHER,address=x")):
        code, told = run(*words, *given)
        assert code == 2
        assert set(told.split("--allow ")[1].strip().split(",")) == set(grants)
    assert (listener.heard, (world / "seen").exists()) == ([], False)


def test_a_foreign_tape_runs_what_it_was_granted(world: Path, listener: Listener, run: Run) -> None:
    imported(world, forged(world, listener.port))
    _, told = run("run", ID, "--allow", ",".join(RUN_GRANTS))
    assert (world / "seen").read_text() == "the-secret-of-the-host and a private file", told
    assert listener.heard == [b"the-secret-of-the-host"]


@pytest.mark.slow
def test_a_foreign_tape_runs_half_live_what_it_was_granted(
    world: Path, listener: Listener, run: Run
) -> None:
    """Its tests run for real, in the bare process that was granted."""
    job = forged(world, listener.port, skip_tests=False, inputs=(), samples=())
    imported(world, job, CODE.replace("pathlib.Path(sys.argv[2]).read_text()", "''"))
    grants = ",".join(grant for grant in RUN_GRANTS if grant != "files")
    _, told = run("replay", ID, "--live", "sandbox", "--allow", grants)
    assert (world / "seen").read_text() == "the-secret-of-the-host", told
    assert listener.heard == [b"the-secret-of-the-host"]


@pytest.mark.parametrize("command", ["live model", "resume", "fork"])
def test_a_foreign_tape_sends_the_key_that_it_was_granted(
    world: Path, listener: Listener, run: Run, command: str
) -> None:
    calls = Budget() if command == "live model" else Budget(calls=0)
    imported(world, forged(world, listener.port, budget=calls))
    words, _ = COMMANDS[command]
    grants = ",".join([*(RUN_GRANTS if command != "live model" else ()), *MODEL])
    _, told = run(*words, *(("--set", "calls=9") if command == "fork" else ()), "--allow", grants)
    if command == "resume":
        _, told = run(*words, "--budget", "calls=9", "--allow", grants)
    if command == "fork":
        assert listener.heard == [], "it asks nobody"
        _, told = run("resume", "last")
    assert any(b"the-key-of-the-host" in said for said in listener.heard), told


def test_reading_needs_no_grant(world: Path, listener: Listener, run: Run) -> None:
    imported(world, forged(world, listener.port))
    for words in (
        ("show", ID),
        ("show", ID, "--events"),
        ("replay", ID),
        ("verify",),
        ("diff", ID, ID),
        ("export", ID, "two.jsonl"),
        ("sessions",),
        ("run", ID, "--help"),
    ):
        code, told = run(*words)
        assert code == 0, (words, told)
    assert listener.heard == []
    assert not (world / "seen").exists()


def test_a_session_of_this_user_runs_without_a_word(world: Path, listener: Listener) -> None:
    made = agent(
        {**HAPPY, "code": [{"code": CODE}]},
        sandbox=FakeSandbox(),
        store=world / "codetape.db",
        network_access=True,
        env_vars={"A": "b"},
    ).generate("Write add(a, b).")
    code = Result.load(made.session, world / "codetape.db", sandbox=FakeSandbox())
    code.run()
    with closing(SqliteStore(world / "codetape.db")) as store:
        assert is_marked(store, made.session, made.folded.job)
        step = open_tape(store, made.session)
        assert step.id == made.session


def test_a_key_of_another_user_marks_nothing_here(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = agent(sandbox=FakeSandbox(), store=world / "codetape.db", network_access=True)
    session = made.generate("Write add(a, b).").session
    monkeypatch.setenv("CODETAPE_KEY_FILE", str(world / "another"))
    with pytest.raises(NotGranted, match="network"):
        Result.load(session, world / "codetape.db", sandbox=FakeSandbox()).run()
    given = Authority(network=True)
    Result.load(session, world / "codetape.db", sandbox=FakeSandbox(), authority=given).run()


def test_an_import_that_goes_on_takes_the_mark_away(world: Path) -> None:
    """Others wrote what follows: a mark of the beginning says nothing of it."""
    store = MemoryStore()
    made = agent(sandbox=FakeSandbox(), store=store, budget=Budget(calls=1), network_access=True)
    session = made.generate("Write add(a, b).").session
    elsewhere = MemoryStore()
    put_tape(tape_of(store, session), elsewhere)
    assert is_marked(store, session, open_tape(store, session)[1].session.job)
    other = agent(sandbox=FakeSandbox(), store=elsewhere)
    other.resume(session, budget=Budget(), authority=Authority(network=True))
    put_tape(tape_of(elsewhere, session), store)
    assert not is_marked(store, session, open_tape(store, session)[1].session.job)


def test_forks_of_ours_are_ours_and_of_others_are_not(world: Path, run: Run) -> None:
    path = world / "codetape.db"
    made = agent(sandbox=FakeSandbox(), store=path, network_access=True, budget=Budget(calls=1))
    session = made.generate("Write add(a, b).").session
    assert run("fork", session, "--at", "2", "--set", "calls=9", "--set", "timeout=60")[0] == 0
    assert agent(sandbox=FakeSandbox(), store=path).resume("last").success
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM marks")
        db.commit()
    assert run("fork", session, "--at", "2", "--set", "calls=9")[0] == 0
    with pytest.raises(NotGranted, match="network"):
        agent(sandbox=FakeSandbox(), store=path).resume("last")


def test_a_model_of_the_callers_asks_no_address(world: Path) -> None:
    store = MemoryStore()
    asyncio.run(play(HAPPY, job=Job(prompt="x", api_base="http://127.0.0.1:1"), store=store))
    tape = open_tape(store, ID)
    asyncio.run(half_live(tape, "model", llm=ScriptedLlm(HAPPY)))
    with pytest.raises(NotGranted, match="api_base"):
        asyncio.run(half_live(tape, "model"))


def test_the_packages_of_a_foreign_tape_wait_for_a_decision(world: Path) -> None:
    """Its lists, its policy and what it says was allowed are words of others."""
    store = MemoryStore()
    job = Job(prompt="x", commands=("touch /etc/x",), package_policy="known")
    asyncio.run(play(HAPPY, job=job, store=store))
    with pytest.raises(NotGranted, match="touch /etc/x"):
        Result.load(ID, store, sandbox=FakeSandbox()).run()


def test_every_field_of_a_job_is_told_or_harmless() -> None:
    """A field that is added to a job has to be judged here."""
    told = {
        *("sandbox", "network_access", "secrets", "samples", "environment", "base_image"),
        *("registry_secret", "commands", "api_base", "api_key", "parameters", "limits"),
        *("model", "models", "fallback_models", "personas"),  # where a name is an address
        "budget",
    }
    gated = {"base_packages", "system_packages", "package_policy"}
    harmless = {
        *("prompt", "name", "system_prompt", "schema_text"),
        *("constraints", "inputs", "outputs", "python", "max_iterations", "skip_tests"),
        *(
            "script_runs",
            "plan",
            "sandbox_retries",
            "call_retries",
            "call_seconds",
            "build_seconds",
        ),
        *("prices", "context", "today", "guidance", "fix_cycles", "seed", "cache"),
    }
    assert set(Job.model_fields) == told | gated | harmless


def test_what_is_told_is_escaped_and_bounded() -> None:
    store = MemoryStore()
    job = Job(prompt="x", base_image="\x1b[31m\nSession is fine" + "a" * 5000)
    session = asyncio.run(play(HAPPY, job=job, store=store)).session
    (need,) = needs(session, ("run",), job)
    assert "\x1b" not in str(need)
    assert "\n" not in str(need)
    assert len(str(need)) < 300


def test_words_of_allow_are_grants_or_packages() -> None:
    given = read_grants(["network,secrets=A,files", "polars", "secrets=B", "numpy==1.2,<3"])
    assert (given.network, given.files, given.address) == (True, True, False)
    assert given.secrets == ("A", "B")
    assert given.packages == ("polars", "numpy==1.2,<3")
    assert read_grants(["sandbox=process"]).sandbox == "process"
    assert read_grants(["sandbox==2"]).packages == ("sandbox==2",)
