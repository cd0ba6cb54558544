"""Environments appear whole or not at all, once, and only what can be had."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codetape.adapters.sandbox import environments
from codetape.adapters.sandbox.environments import HALF, MARK, Environments
from codetape.adapters.sandbox.installers import Uv, installer
from codetape.adapters.sandbox.interpreters import find, reachable
from codetape.adapters.sandbox.supervise import Wish
from codetape.engine.ports import SandboxBroken
from codetape.states.values import BuildFailure, ImageRef, ImageSpec
from codetape.testing.sandbox_runs import running_with
from tests.support.guarded_index import guarded_index

EMPTY = ImageSpec(base="python")


@pytest.fixture
def wish() -> Iterator[Wish]:
    made = Wish()
    yield made
    made.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_a_build_is_whole_and_found_again(tmp_path: Path, wish: Wish) -> None:
    cache = Environments(tmp_path)
    first, second = cache.build(EMPTY, wish), cache.build(EMPTY, wish)
    assert isinstance(first, ImageRef)
    assert second == first.model_copy(update={"cached": True})
    assert names(tmp_path) == [first.ref]
    assert json.loads((cache.path(first) / MARK).read_text())["requirements"] == []


def test_half_an_environment_is_built_again(tmp_path: Path, wish: Wish) -> None:
    cache = Environments(tmp_path)
    first = cache.build(EMPTY, wish)
    assert isinstance(first, ImageRef)
    (tmp_path / first.ref / MARK).unlink()
    again = cache.build(EMPTY, wish)
    assert isinstance(again, ImageRef)
    assert again.cached is False
    assert (tmp_path / first.ref / "bin/python").exists()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "an empty mark": lambda folder: (folder / MARK).write_text(""),
    "a mark of nothing": lambda folder: (folder / MARK).write_text("[]"),
    "a Python that was removed": lambda folder: (folder / MARK).write_text('{"prefix": "/no"}'),
    "no programs": lambda folder: shutil.rmtree(folder / "bin"),
    "a file": lambda folder: folder.rename(f"{folder}.old") and folder.write_text(""),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_environment_is_built_again(tmp_path: Path, wish: Wish, damage: str) -> None:
    cache = Environments(tmp_path)
    first = cache.build(EMPTY, wish)
    assert isinstance(first, ImageRef)
    DAMAGES[damage](tmp_path / first.ref)
    assert cache.build(EMPTY, wish) == first
    with cache.held(first) as folder:
        assert cache.prefix(folder).is_dir()


def test_many_that_ask_at_once_build_once(tmp_path: Path) -> None:
    built: list[ImageRef | BuildFailure] = []

    def ask() -> None:
        wish = Wish()
        built.append(Environments(tmp_path).build(EMPTY, wish))
        wish.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(str(image.cached) for image in built if isinstance(image, ImageRef)) == (
        ["False"] + ["True"] * 7
    )


def test_a_build_that_is_not_wanted_any_more_leaves_nothing(tmp_path: Path, wish: Wish) -> None:
    wish.make()
    assert isinstance(Environments(tmp_path).build(EMPTY, wish), BuildFailure)
    assert names(tmp_path) == []


def test_c9_a_build_has_a_limit_of_time(tmp_path: Path, wish: Wish) -> None:
    failure = Environments(tmp_path, seconds=0.0).build(EMPTY, wish)
    assert isinstance(failure, BuildFailure)
    assert failure.cause == "timeout"
    assert names(tmp_path) == []


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """What is there of an environment whose builder was killed."""
    folder = tmp_path / f"{HALF}0123abcd.4567"
    (folder / "bin").mkdir(parents=True)
    return folder


def test_half_an_environment_of_a_builder_that_is_gone_is_removed(
    tmp_path: Path, wish: Wish, half: Path
) -> None:
    cache = Environments(tmp_path)
    whole = cache.build(EMPTY, wish)
    assert isinstance(whole, ImageRef)
    cache.sweep()
    assert names(tmp_path) == [whole.ref]


def test_half_an_environment_that_somebody_builds_is_kept(tmp_path: Path, half: Path) -> None:
    with (tmp_path / "0123abcd.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Environments(tmp_path).sweep()
        assert half.exists()
    Environments(tmp_path).sweep()
    assert not half.exists()


@pytest.mark.slow
def test_an_installer_that_outlives_its_builder_holds_the_right_to_build(
    tmp_path: Path, half: Path
) -> None:
    """It writes to the half still: neither may that be removed nor may another one begin."""
    builder = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from codetape.adapters.sandbox.environments import Environments, _Steps\n"
        "from codetape.adapters.sandbox.interpreters import find\n"
        "from codetape.adapters.sandbox.supervise import Wish\n"
        "wish, folder = Wish(), Path(sys.argv[1])\n"
        "with Environments(folder)._locked('0123abcd', wish) as (lock, until):\n"
        "    steps = _Steps(find(None), lock, wish, until)\n"
        "    installer = 'import os, time; os.kill(os.getppid(), 9); time.sleep(600)'\n"
        "    steps.run((sys.executable, '-c', installer, sys.argv[1]))\n"
    )
    with subprocess.Popen([sys.executable, "-c", builder, str(tmp_path)]) as killed:
        assert killed.wait(30) == -signal.SIGKILL
    (installer,) = running_with(str(tmp_path), patience=0)
    Environments(tmp_path).sweep()
    assert half.exists()
    os.kill(installer, signal.SIGKILL)
    assert running_with(str(tmp_path)) == []
    Environments(tmp_path).sweep()
    assert not half.exists()


def test_the_key_is_that_of_the_content(tmp_path: Path, wish: Wish) -> None:
    cache = Environments(tmp_path)
    one = cache.build(ImageSpec(base="a"), wish)
    two = cache.build(ImageSpec(base="b"), wish)
    assert isinstance(one, ImageRef)
    assert isinstance(two, ImageRef)
    assert one.ref == two.ref  # an environment has no base image
    assert one.spec_key != two.spec_key


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        (ImageSpec(base="x", system_packages=("libgl1",)), "unknown_system_package"),
        (ImageSpec(base="x", commands=("make",)), "command"),
        (ImageSpec(base="x", requirements=("a b",)), "unknown_package"),
        (ImageSpec(base="x", python="3.99"), "other"),
    ],
)
def test_what_cannot_be_had_is_said_at_once(
    tmp_path: Path, wish: Wish, spec: ImageSpec, cause: str
) -> None:
    failure = Environments(tmp_path).build(spec, wish)
    assert isinstance(failure, BuildFailure)
    assert failure.cause == cause
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ref", ["nothing", "../etc", ""])
def test_an_environment_that_is_not_there_breaks(tmp_path: Path, ref: str) -> None:
    with pytest.raises(SandboxBroken):
        Environments(tmp_path).path(ImageRef(ref=ref, spec_key="0"))


def test_an_interpreter_that_cannot_be_used_is_passed_over() -> None:
    assert find(None, lambda _: False) is None
    found = find(None, lambda one: str(one.prefix) == "/usr")
    assert found is None or found.executable.is_relative_to("/usr")


def test_a_closed_folder_is_not_reachable(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0o700)
    assert not reachable(closed / "inner")
    assert reachable(Path("/usr/bin"))


class Talkative(Uv):
    """An installer that prints where it looks, and fails."""

    def install(self, folder: Path, requirements: tuple[str, ...]) -> tuple[str, ...]:
        return ("sh", "-c", "echo $UV_DEFAULT_INDEX; printf %s ann:canary-5f3a | base64; exit 1")


def test_the_log_of_a_build_keeps_no_credentials(
    tmp_path: Path, wish: Wish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://ann:canary-5f3a@127.0.0.1:9/simple")
    monkeypatch.setattr(environments, "installer", lambda: Talkative(installer().program))
    failed = Environments(tmp_path).build(ImageSpec(base="", requirements=("sample",)), wish)
    assert isinstance(failed, BuildFailure)
    assert "***@127.0.0.1" in failed.log
    for form in ("canary-5f3a", "YW5uOmNhbmFyeS01ZjNh"):
        assert form not in failed.model_dump_json()


def test_an_environment_keeps_no_credentials_of_its_index(
    tmp_path: Path, wish: Wish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    cache = Environments(tmp_path / "made")
    with guarded_index("canary-5f3a") as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        monkeypatch.setenv("PIP_INDEX_URL", address)
        built = cache.build(ImageSpec(base="", requirements=("codetape-sample",)), wish)
    assert isinstance(built, ImageRef), built
    kept = [path for path in cache.path(built).rglob("*") if path.is_file()]
    assert any(path.name == "RECORD" for path in kept)
    assert not [path for path in kept if b"canary-5f3a" in path.read_bytes()]
