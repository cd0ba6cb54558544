"""Process 1 of a container: what it keeps of a stream, what it reads of the kernel."""

import base64
import subprocess
import sys
from pathlib import Path

import pytest

from codetape.adapters.sandbox import kernel
from codetape.adapters.sandbox.podman import handed, inside

V1 = {
    "memory/memory.limit_in_bytes": "1048576",
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3",
    "memory/memory.max_usage_in_bytes": "777",
    "pids/pids.max": "20",
    "cpu/cpu.cfs_quota_us": "50000",
    "cpu/cpu.cfs_period_us": "100000",
}
V2 = {
    "memory.max": "1048576",
    "memory.events": "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3",
    "memory.peak": "777",
    "pids.max": "20",
    "cpu.max": "50000 100000",
}
ASKED = {"memory": 1048576, "processes": 20, "cpus": 0.5}


@pytest.fixture(params=[V1, V2], ids=["cgroup-v1", "cgroup-v2"])
def groups(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for name, text in request.param.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\n")
    return tmp_path


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """What is said to the host, decoded."""
    said: list[tuple[str, bytes]] = []
    monkeypatch.setattr(inside, "say", lambda word, v: said.append((word, base64.b64decode(v))))
    return said


def test_limits_that_are_in_force_are_met(groups: Path) -> None:
    assert kernel.unmet(ASKED, str(groups)) == {}


@pytest.mark.parametrize(
    ("name", "asked"), [("memory", 4096), ("processes", 19), ("cpus", 0.25)], ids=str
)
def test_a_looser_limit_is_unmet(groups: Path, name: str, asked: float) -> None:
    assert list(kernel.unmet({name: asked}, str(groups))) == [name]


def test_d6_a_limit_that_was_accepted_and_ignored_is_unmet(tmp_path: Path) -> None:
    (tmp_path / "pids.max").write_text("max\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    unmet = kernel.unmet(ASKED, str(tmp_path))
    assert unmet == {"memory": None, "processes": "unlimited", "cpus": "unlimited"}


def test_no_limit_asked_is_none_unmet(tmp_path: Path) -> None:
    assert kernel.unmet({"memory": None, "processes": None}, str(tmp_path)) == {}


def test_the_kernel_says_what_it_killed_and_how_much_was_held(groups: Path) -> None:
    assert kernel.oom_kills(str(groups)) == 3
    assert kernel.peak_memory(str(groups)) == 777


def test_refused_processes_and_computed_time_are_the_kernels_numbers(tmp_path: Path) -> None:
    assert kernel.refused_forks(str(tmp_path)) is None
    assert kernel.cpu_seconds(str(tmp_path)) is None
    (tmp_path / "pids.events").write_text("max 3\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert kernel.refused_forks(str(tmp_path)) == 3
    assert kernel.cpu_seconds(str(tmp_path)) == 2.5


def test_without_counters_nothing_is_known(tmp_path: Path) -> None:
    assert kernel.oom_kills(str(tmp_path)) is None
    assert kernel.peak_memory(str(tmp_path)) is None


def test_the_head_of_a_stream_is_passed_on_at_once(lines: list[tuple[str, bytes]]) -> None:
    stream = inside.Stream("out", 10, 10)
    assert stream.feed(b"0123456789abc")
    assert lines == [("out", b"0123456789")]


def test_a_stream_keeps_head_and_tail_and_counts_the_rest(lines: list[tuple[str, bytes]]) -> None:
    stream = inside.Stream("out", 4, 4)
    for piece in (b"head", *[b"x" * 1000] * 100, b"tail"):
        stream.feed(piece)
        assert len(stream._kept) <= 2 * 4 + inside.CHUNK + 1000
    stream.finish()
    assert lines == [("out", b"head"), ("out-tail", b"tail")]
    assert stream.total == 100_008
    assert stream.kept == {"out": 4, "out-tail": 4}


def test_a_stream_ends_with_an_empty_piece() -> None:
    assert not inside.Stream("out", 4, 4).feed(b"")


def test_no_line_is_longer_than_a_pipe_takes_whole(lines: list[tuple[str, bytes]]) -> None:
    inside.Stream("out", 100_000, 0).feed(b"x" * 100_000)
    assert max(len(base64.b64encode(data)) for _, data in lines) <= 32_768
    assert b"".join(data for _, data in lines) == b"x" * 100_000


def test_what_lies_below_a_folder_is_measured_by_what_it_takes(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"x" * 100_000)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    assert 100_000 <= inside.below(str(tmp_path), 1 << 30) < 1_000_000


def test_measuring_stops_when_it_knows_enough(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).write_bytes(b"x" * 10_000)
    assert inside.below(str(tmp_path), 20_000) < 60_000


def test_the_disk_is_used_up_at_its_limit(tmp_path: Path) -> None:
    disk = inside.Disk(str(tmp_path), 50_000)
    assert not disk.used_up(thorough=True)
    (tmp_path / "file").write_bytes(b"x" * 60_000)
    assert disk.used_up(thorough=True)
    assert not inside.Disk(str(tmp_path), None).used_up(thorough=True)


def test_the_kind_of_an_output_is_told_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("four")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "way").symlink_to(tmp_path, target_is_directory=True)
    told = {n: inside.kind(str(tmp_path), n) for n in ("file", "folder", "link", "way/file", "no")}
    assert told == {
        "file": ["file", 4],
        "folder": ["folder", 0],
        "link": ["a link", 0],
        "way/file": ["a link", 0],
        "no": None,
    }


def test_what_is_handed_over_is_all_that_process_1_imports(tmp_path: Path) -> None:
    for name, body in handed.files().items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    start = handed.START.replace(handed.FOLDER, str(tmp_path / handed.FOLDER[1:]))
    loading = start.removesuffix("main()") + "print(main.__module__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", loading], capture_output=True, text=True, check=True
    )
    assert done.stdout == "codetape.adapters.sandbox.podman.inside\n"
