"""Containers that wait: at most one, each used once or removed, and none in the way of a run."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.sandbox.podman.attached import Attached
from codetape.adapters.sandbox.podman.jobs import Cancelled, Job
from codetape.adapters.sandbox.podman.prepared import Shelf
from codetape.adapters.sandbox.podman.running import Shape
from codetape.engine.ports import SandboxBroken
from codetape.states.values import Limits

END = b'end {"bytes": {"out": 0, "err": 0}, "kept": {}}\n'


def shape(number: int) -> Shape:
    return Shape.of(f"image-{number}", "3.11", Limits(), network=False)


class Waiting:
    """Stands for a job that was prepared."""

    def __init__(self, of: Shape) -> None:
        self.of = of
        self.waiting = True
        self.removed = 0

    def remove(self) -> None:
        self.removed += 1


class Maker:
    """Makes jobs, and knows all that it made. `fails` makes it raise."""

    def __init__(self) -> None:
        self.made: list[Waiting] = []
        self.fails = False

    def __call__(self, of: Shape) -> Any:
        if self.fails:
            raise RuntimeError
        self.made.append(Waiting(of))
        return self.made[-1]


STEPS = st.lists(
    st.tuples(st.sampled_from(["want", "take", "harm", "fail", "work", "wait"]), st.integers(0, 1)),
    max_size=12,
)


@given(STEPS)
def test_each_container_is_handed_out_once_unharmed_or_removed_once(
    steps: list[tuple[str, int]],
) -> None:
    maker = Maker()
    shelf = Shelf(maker)
    taken: list[Any] = []
    for step, number in steps:
        match step:
            case "want":
                shelf.want(shape(number))
            case "take":
                job: Any = shelf.take(shape(number))
                if job is not None:
                    assert job.of == shape(number)
                    assert job.waiting
                    taken.append(job)
            case "harm":
                for made in maker.made:
                    made.waiting = False
            case "fail" | "work":
                maker.fails = step == "fail"
            case "wait":
                shelf.waits(shape(number))
    shelf.close()
    for made in maker.made:
        assert made.removed == (0 if made in taken else 1)
    assert len({id(job) for job in taken}) == len(taken)


def test_one_that_came_to_harm_is_removed_and_made_again() -> None:
    maker = Maker()
    shelf = Shelf(maker)
    shelf.want(shape(0))
    assert shelf.waits(shape(0))
    maker.made[0].waiting = False
    assert shelf.take(shape(0)) is None
    shelf.want(shape(0))
    assert shelf.waits(shape(0))
    maker.made[1].waiting = False
    shelf.want(shape(0))
    assert shelf.waits(shape(0))
    shelf.close()
    assert [made.removed for made in maker.made] == [1, 1, 1]


def test_one_that_is_on_its_way_is_waited_for() -> None:
    go = threading.Event()
    maker = Maker()

    def slow(of: Shape) -> Any:
        go.wait(10.0)
        return maker(of)

    shelf = Shelf(slow)
    shelf.want(shape(0), pause=60.0)  # whoever takes does not wait for the pause
    threading.Timer(0.05, go.set).start()
    assert shelf.take(shape(0)) is not None
    shelf.close()


def test_a_sandbox_that_is_closed_at_once_has_made_nothing() -> None:
    maker = Maker()
    shelf = Shelf(maker)
    shelf.want(shape(0), pause=60.0)
    shelf.close()
    shelf.want(shape(0))
    assert (maker.made, shelf.take(shape(0))) == ([], None)


@pytest.mark.parametrize(
    "changed", [{"memory": 1 << 20}, {"cpus": 2.0}, {"processes": 7}, {"network": True}]
)
def test_a_container_of_other_limits_does_not_fit(changed: dict[str, Any]) -> None:
    shelf = Shelf(Maker())
    network = changed.pop("network", False)
    shelf.want(shape(0))
    assert shelf.take(Shape.of("image-0", "3.11", Limits(**changed), network=network)) is None
    assert shelf.take(Shape.of("image-0", "3.11", Limits(seconds=1.0, disk=1), network=False))
    shelf.close()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def frame(stream: int, body: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(body).to_bytes(4, "big") + body


LINES = st.lists(st.sampled_from([b"out aGk=", b"out-tail ", b"report e30=", b"ending", b""]))


@given(LINES, st.lists(st.integers(1, 9)), st.integers(1, 30))
def test_a_line_is_heard_until_its_end_in_whatever_pieces_it_comes(
    lines: list[bytes], frames: list[int], piece: int
) -> None:
    told = b"".join(line + b"\n" for line in lines) + END
    sent = b"".join(frame(1, part) + frame(2, b"end {}\n") for part in cut(told, frames))
    ours, theirs = socket.socketpair()
    with pytest.MonkeyPatch.context() as patch, ours, theirs:
        patch.setattr("codetape.adapters.sandbox.podman.attached.PIECE", piece)
        theirs.sendall(sent)
        # The other end stays open: whoever missed the end would listen for an hour.
        assert Attached(ours).heard(3600.0) == told


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut data into pieces of these sizes; the rest is the last one."""
    found = []
    for size in sizes:
        found.append(data[:size])
        data = data[size:]
    return [piece for piece in (*found, data) if piece]


Ends = tuple[socket.socket, socket.socket]


def test_a_line_that_breaks_gives_what_was_told_so_far(ends: Ends) -> None:
    ends[1].sendall(frame(1, b"out aGk=\n") + frame(1, b"end")[:-1])
    ends[1].close()
    assert Attached(ends[0]).heard(10.0) == b"out aGk=\n"


def test_a_silent_line_is_not_listened_to_for_ever(ends: Ends) -> None:
    assert Attached(ends[0]).heard(0.01) == b""


def test_a_line_is_open_while_the_other_end_is_there_and_silent(ends: Ends) -> None:
    attached = Attached(ends[0])
    assert attached.open
    ends[1].sendall(b"x")
    assert not attached.open


def test_a_line_whose_other_end_is_gone_is_not_open(ends: Ends) -> None:
    ends[1].close()
    assert not Attached(ends[0]).open


class Container:
    """A container with a line to its process 1; `log` is what podman says that it told."""

    def __init__(self, line: socket.socket, log: bytes = b"", place: Any = "/inputs") -> None:
        self.line = line
        self.log = log
        self.where = place
        self.steps: list[str] = []

    def __getattr__(self, step: str) -> Any:
        return lambda *_: self.steps.append(step)

    def place(self, _name: str, _target: str) -> Any:
        return self.where

    def attach(self, _name: str) -> Attached:
        return Attached(self.line)

    def wait(self, _name: str, _seconds: float) -> int:
        self.steps.append("wait")
        return 0

    def said(self, _name: str) -> bytes:
        return self.log


def prepared(container: Container) -> Job:
    job = Job(container)  # type: ignore[arg-type]
    job.prepare({}, iter(()), "/var/inputs")
    return job


def test_a_prepared_job_is_over_when_process_1_says_so(ends: Ends) -> None:
    container = Container(ends[0])
    job = prepared(container)
    assert job.waiting
    ends[1].sendall(frame(1, END))
    assert job.go({"seconds": 1}, 1.0, stopped=False).end is not None
    assert ends[1].recv(100) == b'{"seconds": 1}\n'
    assert "wait" not in container.steps
    job.remove()
    assert container.steps[-1] == "remove"


def test_outputs_are_not_fetched_before_the_container_has_ended(ends: Ends) -> None:
    container = Container(ends[0], log=END)
    job = prepared(container)
    ends[1].sendall(frame(1, END))
    assert job.go({}, 1.0, stopped=True).end is not None
    assert container.steps[-1] == "wait"


def test_what_the_line_has_lost_is_in_the_log(ends: Ends) -> None:
    job = prepared(Container(ends[0], log=END))
    ends[1].shutdown(socket.SHUT_WR)
    assert job.go({}, 1.0, stopped=False).end is not None


def test_a_job_whose_container_is_gone_breaks_the_sandbox(ends: Ends) -> None:
    job = prepared(Container(ends[0]))
    ends[1].close()
    assert not job.waiting
    with pytest.raises(SandboxBroken, match="prepared is gone"):
        job.go({"arguments": "x" * 10_000_000}, 1.0, stopped=False)


def test_a_prepared_job_that_is_cancelled_is_not_begun(ends: Ends) -> None:
    job = prepared(Container(ends[0]))
    job.cancel()
    assert not job.waiting
    with pytest.raises(Cancelled):
        job.go({}, 1.0, stopped=False)


def test_volumes_that_cannot_be_written_are_of_no_use(ends: Ends) -> None:
    with pytest.raises(SandboxBroken, match="cannot be written"):
        prepared(Container(ends[0], place=None))
