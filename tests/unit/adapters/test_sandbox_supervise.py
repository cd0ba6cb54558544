"""Head and tail at a constant price, the end of a process, and a wish to cancel."""

import asyncio
import os
import signal
import sys
import time
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.sandbox.supervise import (
    Ended,
    Kept,
    Launch,
    Prefix,
    Threads,
    Wish,
    kill_group,
    supervise,
)
from codetape.engine.ports import SandboxBroken


@pytest.fixture
def wish() -> Iterator[Wish]:
    made = Wish()
    yield made
    made.close()


def launch(code: str, wish: Wish, seconds: float = 20.0) -> Ended:
    argv = (sys.executable, "-S", "-c", code)
    return supervise(Launch(argv, {}, seconds, kill_group), wish)


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(2, 60))
def test_head_and_tail_are_kept_and_the_rest_is_counted(chunks: list[bytes], most: int) -> None:
    whole = b"".join(chunks)
    kept = Kept(most)
    for chunk in chunks:
        kept.add(chunk)
    half = most // 2
    assert (kept.total, kept.cut) == (len(whole), max(0, len(whole) - 2 * half))
    if len(whole) <= 2 * half:
        assert kept.bytes() == whole
    else:
        note = f"\n[{len(whole) - 2 * half} bytes cut]\n".encode()
        assert kept.bytes() == whole[:half] + note + whole[-half:]


def test_adding_copies_nothing_that_came_before() -> None:
    kept = Kept(1 << 20)
    chunk = b"x" * 65536
    for _ in range(100):
        kept.add(chunk)
    tracemalloc.start()
    try:
        for _ in range(100):
            kept.add(chunk)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(chunk)  # a half is eight of them
    finally:
        tracemalloc.stop()


def test_a_prefix_keeps_the_beginning() -> None:
    prefix = Prefix(5)
    prefix.add(b"abc")
    prefix.add(b"defg")
    assert prefix.bytes() == b"abcde"


def test_a_process_that_ends_by_itself(wish: Wish) -> None:
    ended = launch("import sys; print(sys.stdin.read()); sys.exit(3)", wish)
    assert (ended.cause, ended.status, ended.stdout.text()) == ("exit", 3, "\n")


def test_who_holds_the_pipe_is_not_waited_for(wish: Wish) -> None:
    code = (
        "import os, time\nchild = os.fork()\nif child == 0: os.setsid(); time.sleep(600)\n"
        "print(child, flush=True)"
    )
    ended = launch(code, wish)
    assert ended.cause == "exit"
    os.kill(int(ended.stdout.text()), signal.SIGKILL)  # it is still there


def test_more_than_one_read_is_left_in_the_pipe(wish: Wish) -> None:
    code = (
        "import fcntl, os, time\nfcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)\n"
        "time.sleep(0.5)\nos.write(1, b'x' * 900_000)\nos._exit(0)"
    )
    argv = (sys.executable, "-S", "-c", code)
    # While this looks the other way, the process writes and ends.
    ended = supervise(Launch(argv, {}, 20, kill_group, watch=lambda: time.sleep(2)), wish)
    assert len(ended.stdout.bytes()) == 900_000


def test_who_prints_without_end_is_ended(wish: Wish) -> None:
    code = "import os\nwhile True: os.write(2, b'x' * 65536)"
    flood = Launch((sys.executable, "-S", "-c", code), {}, 60, kill_group, keep=1000)
    ended = supervise(flood, wish)
    assert ended.cause == "output"
    assert ended.stderr.cut > 900_000


def test_a_wish_ends_it(wish: Wish) -> None:
    wish.make()
    ended = launch("import time; time.sleep(60)", wish)
    assert (ended.cause, ended.status) == ("cancelled", -9)


def test_what_cannot_start_leaves_no_descriptor(wish: Wish) -> None:
    before = len(os.listdir("/proc/self/fd"))
    reader, writer = os.pipe()
    with pytest.raises(FileNotFoundError):
        supervise(
            Launch(("/no/such",), {}, 1, kill_group, inherited=(writer,), report=reader), wish
        )
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_cancelled_task_waits_for_its_thread() -> None:
    async def cancelled() -> list[str]:
        done: list[str] = []

        def work(wish: Wish) -> None:
            os.read(os.dup(wish.fileno()), 1)
            time.sleep(0.1)
            done.append("cleaned up")

        threads = Threads()
        task = asyncio.create_task(threads.run(work))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        seen = list(done)
        await threads.close()
        with pytest.raises(SandboxBroken):
            await threads.run(work)
        return seen

    assert asyncio.run(cancelled()) == ["cleaned up"]
