"""Many processes and threads on one store: nothing is lost, nobody is robbed, the dead are known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from codetape.adapters.owner import current_owner
from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.ports import LeaseLost, SessionOwned, StoredEvent
from codetape.testing.stores import write

HEAD = """
import os, sys, time
from codetape.adapters.owner import current_owner
from codetape.adapters.store.sqlite import SqliteStore
from codetape.testing.stores import write
path, name = sys.argv[1:]
"""
ONE_SESSION = """
store = SqliteStore(path)
lease = store.create(name, "autocoder", "", current_owner())
"""


def start(script: str, path: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + script, str(path), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(children: list[subprocess.Popen[str]]) -> list[str]:
    """Let each go on, and return what it has printed when it has ended."""
    try:
        results = [child.communicate("go\n", timeout=60) for child in children]
    finally:
        for child in children:
            child.kill()
    for child, (_, errors) in zip(children, results, strict=True):
        assert child.returncode == 0, errors
    return [output for output, _ in results]


def heard(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a store: it is there, so that no child has to load what makes one."""
    path = tmp_path / "tape.db"
    SqliteStore(path).close()
    return path


EIGHT = """
import sqlite_utils  # before the fork, for all of them: it takes long
gate, opened = os.pipe()
for number in range(8):
    if os.fork() == 0:
        os.close(opened)
        os.read(gate, 1)  # returns when the parent opens the gate, to all at once
        store = SqliteStore(path)
        write(store, store.create(f"s{number}", "autocoder", "", current_owner()), 2)
        os._exit(0)
os.close(opened)
print([os.wait()[1] for _ in range(8)])
"""


def test_f2_eight_processes_open_an_absent_file(tmp_path: Path) -> None:
    path = tmp_path / "tape.db"
    (output,) = finish([start(EIGHT, path, "")])
    assert output.strip() == str([0] * 8)
    with closing(SqliteStore(path)) as store:
        assert {row.id for row in store.sessions()} == {f"s{number}" for number in range(8)}
        assert [len(list(store.read(row.id))) for row in store.sessions()] == [2] * 8


def test_two_processes_write_two_sessions(path: Path) -> None:
    script = ONE_SESSION + "print('ready', flush=True); input(); write(store, lease, 200)"
    children = [start(script, path, name) for name in ("a", "b")]
    assert [heard(child) for child in children] == ["ready"] * 2
    with closing(SqliteStore(path)) as store:
        for child in children:
            print("go", file=child.stdin, flush=True)
        while any(child.poll() is None for child in children):
            for name in ("a", "b"):  # whole at every moment, also while it grows
                tape = list(store.read(name))
                assert [event.seq for event in tape] == list(range(1, len(tape) + 1))
        finish(children)
        assert {(row.id, row.seq) for row in store.sessions()} == {("a", 200), ("b", 200)}
        assert [len(list(store.read(name))) for name in ("a", "b")] == [200, 200]


def test_the_second_of_two_processes_on_one_session_is_refused_by_name(path: Path) -> None:
    script = ONE_SESSION + "write(store, lease); print('ready', flush=True); input()"
    child = start(script, path, "one")
    assert heard(child) == "ready"
    with closing(SqliteStore(path)) as store:
        with pytest.raises(SessionOwned, match=f"by process {child.pid} on ") as caught:
            store.acquire("one", current_owner())
        assert store.sessions()[0].owner == caught.value.owner
        finish([child])
        assert store.sessions()[0].owner is None
        write(store, store.acquire("one", current_owner()))


def test_g9_the_session_of_a_killed_process_goes_on_at_once(path: Path) -> None:
    script = (
        ONE_SESSION + "while True: write(store, lease); print(store.sessions()[0].seq, flush=True)"
    )
    child = start(script, path, "one")
    written = 0
    while written < 20:
        written = int(heard(child))
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # and left as a zombie
    assert child.stdout is not None
    written = int([str(written), *child.stdout.read().split()][-1])
    with closing(SqliteStore(path)) as store:
        tape = list(store.read("one"))
        assert len(tape) in {written, written + 1}
        lease = store.acquire("one", current_owner())
        assert write(store, lease)[:-1] == tape
    child.communicate(timeout=60)


def test_g13_a_stopped_process_is_not_robbed(path: Path) -> None:
    script = ONE_SESSION + "print('ready', flush=True); input()"
    child = start(script, path, "one")
    assert heard(child) == "ready"
    child.send_signal(signal.SIGSTOP)
    with closing(SqliteStore(path, LateClock())) as store, pytest.raises(SessionOwned):
        store.acquire("one", current_owner())
    child.send_signal(signal.SIGCONT)
    finish([child])


class LateClock:
    """The time in a year in which every lease has ended."""

    def now(self) -> str:
        return "2999-01-01T00:00:00.000000+00:00"

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


def test_a_lease_that_this_process_forgot_ends_with_its_time(path: Path) -> None:
    with closing(SqliteStore(path)) as store, closing(SqliteStore(path, LateClock())) as late:
        old = store.create("one", "autocoder", "", current_owner())
        with pytest.raises(SessionOwned):
            store.acquire("one", current_owner())
        late.acquire("one", current_owner())
        with pytest.raises(LeaseLost, match=f"taken over by process {os.getpid()} on "):
            store.renew(old)


FORKING = (
    ONE_SESSION
    + """
import threading
write(store, lease, 2)
inherited = store._connection
held, done = threading.Event(), threading.Event()

def hold():
    with store._using():
        held.set()
        done.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
if os.fork() == 0:  # the lock is held by a thread that is not in the child
    assert len(list(store.read(name))) >= 2
    assert store._connection is not inherited
    other = store.create("child", "autocoder", "", current_owner())
    write(store, other, 50)
    sys.exit()
done.set()
if os.fork() == 0:
    sys.exit()  # ends as a program does, and touches nothing
write(store, lease, 50)
assert [os.wait()[1] for _ in range(2)] == [0, 0]
write(store, lease, 1)
print([row.seq for row in store.sessions()])
"""
)


def test_f6_a_forked_child_has_its_own_connection(path: Path) -> None:
    (output,) = finish([start(FORKING, path, "parent")])
    assert output.strip() == "[53, 50]"
    with closing(SqliteStore(path)) as store:
        assert [len(list(store.read(name))) for name in ("parent", "child")] == [53, 50]


def test_f13_a_reader_sees_nothing_that_is_rolled_back(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        tape = write(store, store.create("one", "autocoder", "", "alice"), 2)
        inside = threading.Event()
        seen: list[StoredEvent] = []

        def look() -> None:
            inside.wait()
            seen.extend(store.read("one"))

        reader = threading.Thread(target=look)
        reader.start()
        with suppress(KeyError), store._writing() as db:
            db.execute("DELETE FROM events WHERE seq = 2")
            inside.set()
            time.sleep(0.05)
            raise KeyError
        reader.join()
        assert seen == tape
