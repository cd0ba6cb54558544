"""The small parts: files, control groups, trees of processes, the paths of a bare process, the fake."""

import asyncio
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from codetape.adapters.sandbox import fake, files
from codetape.adapters.sandbox.cgroups import CONTROLLERS, Group, Parents, find_parents
from codetape.adapters.sandbox.files import checked, collect, measure, remove, stage
from codetape.adapters.sandbox.process import FOLDERS
from codetape.adapters.sandbox.trees import kill_tree
from codetape.engine.ports import SandboxBroken
from codetape.states.values import (
    HostFile,
    ImageSpec,
    Limits,
    RunOutcome,
    RunSpec,
    SandboxFailure,
    TextFile,
)
from codetape.testing.sandbox_runs import running_with

# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../b", "a//b", ".", "a/", "a\0b", "x" * 256])
def test_names_with_tricks_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        checked(name)


def test_staged_files_are_copies_that_everybody_can_read(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"1")
    source.chmod(0o600)
    stage(
        tmp_path / "in",
        [TextFile(name="a/b", text="x\r\n")],
        [HostFile(name="c", path=str(source))],
    )
    source.write_bytes(b"2")
    assert (tmp_path / "in/a/b").read_bytes() == b"x\r\n"
    assert (tmp_path / "in/c").read_bytes() == b"1"
    assert (tmp_path / "in/c").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["../out", "/etc/x"])
def test_a_staged_file_stays_in_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(SandboxBroken):
        stage(tmp_path / "in", [TextFile(name=name, text="x")], [])
    assert not (tmp_path / "out").exists()


def test_a_link_on_the_way_to_an_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/link").symlink_to("/etc")
    found = collect(tmp_path / "out", ["link/passwd", "link"], tmp_path / "kept", None)
    assert found.outputs == []
    assert len(found.refused) == 2


def test_more_than_the_limit_is_refused_together(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in "abc":
        (tmp_path / "out" / name).write_bytes(bytes(40))
    found = collect(tmp_path / "out", "abc", tmp_path / "kept", 100)
    assert [file.name for file in found.outputs] == ["a", "b"]
    assert found.refused == ["c: too large (40 bytes)"]


def test_a_deep_folder_is_refused_and_removed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    deep = "import os\nfor _ in range(1200):\n    os.mkdir('d')\n    os.chdir('d')"
    subprocess.run([sys.executable, "-c", deep], cwd=tmp_path / "out", check=True)
    try:
        found = collect(tmp_path / "out", ["d"], tmp_path / "kept", None)
        assert (found.outputs, len(found.refused)) == ([], 1)
        remove(tmp_path / "out")
        assert not (tmp_path / "out").exists()
    finally:  # what is left would break pytest's own cleaning
        subprocess.run(["rm", "-rf", str(tmp_path / "out")], check=True)


def test_a_closed_folder_is_removed(tmp_path: Path) -> None:
    (tmp_path / "out/closed").mkdir(parents=True)
    (tmp_path / "out/closed/file").touch()
    (tmp_path / "out/closed").chmod(0)
    remove(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_too_many_files_are_as_bad_as_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 20)
    assert measure(tmp_path, 1 << 20) == 0
    (tmp_path / "large").write_bytes(b"x" * 8192)
    assert measure(tmp_path, 8191) is None
    for number in range(20):
        (tmp_path / f"{number}").touch()
    assert measure(tmp_path, 1 << 20) is None


# --- control groups -------------------------------------------------------------------------------


def kernel(root: Path, mounts: str, own: str) -> None:
    """Write what a kernel would tell below `root`/proc."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mounts)
    (root / "proc/self/cgroup").write_text(own)


def test_without_control_groups_there_is_no_parent(tmp_path: Path) -> None:
    assert find_parents(tmp_path).folders == {}
    kernel(tmp_path, "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n")
    assert find_parents(tmp_path).folders == {}


def test_the_limits_of_version_2_are_written(tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    group = Group(dict.fromkeys(CONTROLLERS, tmp_path / "g"), unified=True)
    group.make(Limits(memory=1000, processes=7, cpus=0.5))
    written = {file.name: file.read_text() for file in (tmp_path / "g").iterdir()}
    assert written == {
        "memory.max": "1000",
        "memory.swap.max": "0",
        "pids.max": "7",
        "cpu.max": "50000 100000",
    }
    assert group.join()[4:] == (str(tmp_path / "g/cgroup.procs"), "--")


def test_a_limit_that_is_not_asked_for_is_not_set(tmp_path: Path) -> None:
    group = Parents({"pids": tmp_path}, unified=False).group(Limits(processes=None))
    assert group.has("pids")
    assert list(group.folders["pids"].iterdir()) == []


def test_a_controller_that_refuses_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    parents = Parents({"memory": tmp_path / "file", "pids": tmp_path}, unified=False)
    group = parents.group(Limits())
    assert (group.has("memory"), group.has("pids")) == (False, True)
    assert group.ran_out() is None
    assert group.peak() is None
    assert group.refused_forks() is None
    assert group.cpu_seconds() is None


@pytest.mark.parametrize(
    ("unified", "name", "text"),
    [(True, "memory.events", "oom 1\noom_kill 2\n"), (False, "memory.oom_control", "oom_kill 1\n")],
)
def test_only_the_counter_of_the_kernel_is_evidence(
    tmp_path: Path, unified: bool, name: str, text: str
) -> None:
    group = Group({"memory": tmp_path}, unified)
    assert group.ran_out() is None
    (tmp_path / name).write_text("oom_kill 0\n")
    assert group.ran_out() is False
    (tmp_path / name).write_text(text)
    assert group.ran_out() is True


def test_refused_processes_and_computed_time_are_the_kernels_numbers(tmp_path: Path) -> None:
    (tmp_path / "pids.events").write_text("max 3\n")
    (tmp_path / "cpuacct.usage").write_text("1500000000\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    folders = dict.fromkeys(CONTROLLERS, tmp_path)
    first, second = Group(folders, unified=False), Group(folders, unified=True)
    assert (first.refused_forks(), second.refused_forks()) == (3, 3)
    assert (first.cpu_seconds(), second.cpu_seconds()) == (1.5, 2.5)


def test_one_folder_may_stand_for_two_controllers(tmp_path: Path) -> None:
    group = Parents(dict.fromkeys(("cpu", "cpuacct"), tmp_path), unified=False).group(Limits())
    assert {*group.folders} == {"cpu", "cpuacct"}


# --- processes ------------------------------------------------------------------------------------


def test_an_orphan_in_another_session_is_found_by_its_mark() -> None:
    mark, name = f"CODETAPE_RUN={uuid.uuid4().hex}", f"canary-{uuid.uuid4().hex}"
    code = (
        "import os, sys\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(60)', "
        f"{name!r}])\n    os._exit(0)\nos.wait()\n"
    )
    variables = dict([mark.split("=")])
    leader = subprocess.Popen([sys.executable, "-c", code], env=variables, start_new_session=True)
    leader.wait()
    until = time.monotonic() + 20
    while not running_with(name, patience=0) and time.monotonic() < until:
        time.sleep(0.02)
    assert kill_tree(leader.pid, mark)
    assert running_with(name) == []


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("open('/var/inputs/a.csv')", True),
        ("'/var/outputs'", True),
        ('f"/var/outputs/{name}"', True),
        ("/var/inputs_old", False),
        ("/var/inputs-2", False),
        ("srv/var/inputs", False),
        ("../var/outputs", False),
        ("/var/input", False),
    ],
)
def test_only_the_two_folders_are_translated(text: str, changed: bool) -> None:
    assert (FOLDERS.sub("X", text) != text) == changed


# --- the fake -------------------------------------------------------------------------------------

TESTS = "def test_a(): pass\nclass TestB:\n    def test_c(self): pass\n"


def spec_of(sandbox: fake.FakeSandbox) -> RunSpec:
    image = asyncio.run(sandbox.build(ImageSpec(base="x")))
    assert image.outcome == "image"
    tests = TextFile(name="test_solution.py", text=TESTS)
    return RunSpec(purpose="tests", image=image, files=(tests,))


def outcomes(outcome: RunOutcome) -> dict[str, str]:
    assert outcome.report is not None
    return {result.id: result.outcome for result in outcome.report.results}


def test_a_fake_passes_all_tests_when_nothing_else_was_said() -> None:
    sandbox = fake.FakeSandbox()
    spec = spec_of(sandbox)
    assert outcomes(asyncio.run(sandbox.run(spec))) == {
        "test_a": "passed",
        "TestB::test_c": "passed",
    }
    assert sandbox.runs == [spec]


def test_a_fake_takes_its_script_in_order() -> None:
    wrong = fake.failed({"test_a": ("ValueError", "x")})
    sandbox = fake.FakeSandbox(runs=[wrong, fake.broke("gone"), fake.timed_out("t")])
    spec = spec_of(sandbox)
    assert outcomes(asyncio.run(sandbox.run(spec))) == {
        "TestB::test_c": "passed",
        "test_a": "failed",
    }
    with pytest.raises(SandboxBroken, match="gone"):
        asyncio.run(sandbox.run(spec))
    assert sandbox.left_over() == (0, 1)
    assert asyncio.run(sandbox.run(spec)).timed_out


def test_a_fake_build_can_fail_raise_and_be_computed() -> None:
    failure = SandboxFailure(message="no podman", missing=True)
    sandbox = fake.FakeSandbox(builds=[failure, KeyError("x"), fake.built])
    with pytest.raises(SandboxBroken) as broken:
        asyncio.run(sandbox.build(ImageSpec(base="x")))
    assert broken.value.failure == failure
    with pytest.raises(KeyError):
        asyncio.run(sandbox.build(ImageSpec(base="x")))
    assert asyncio.run(sandbox.build(ImageSpec(base="x"))) == fake.built(ImageSpec(base="x"))


def test_outputs_of_a_fake_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outcome = fake.ended(3, stdout="x", outputs={"total": "7"})
    assert (outcome.exit_status, outcome.stdout) == (3, "x")
    assert Path(outcome.outputs[0].path).read_text() == outcome.outputs[0].text == "7"
    assert os.path.getsize(outcome.outputs[0].path) == outcome.outputs[0].size
