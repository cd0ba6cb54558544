"""A machine with Python and make and nothing else: an ordinary user runs the demo and some tests.

The machine is a container of the base image. One of its kind forbids user namespaces, as podman does
by itself, so no sandbox works there; the other allows them, so the bundled bubblewrap does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codetape.adapters.sandbox.podman.settings import BUNDLES

pytestmark = [pytest.mark.podman, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
CERTIFICATES = "/etc/ssl/given.pem"
NAMESPACES = ("--security-opt", "seccomp=unconfined", "--security-opt", "unmask=ALL")
TESTS = "tests/unit/adapters/test_sandbox_bubblewrap_program.py tests/unit/engine/test_loop.py"
Bare = Callable[..., str]


def podman(*words: str) -> str:
    """Run podman; its stdout and stderr, for a reader if it failed."""
    done = subprocess.run(
        ["podman", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def copy_of_the_work_tree(folder: Path) -> Path:
    """Copy what git knows of, as a clone would have it."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not (ROOT / name).exists() and not (ROOT / name).is_symlink():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    folder.chmod(0o755)
    return folder


def options() -> list[str]:
    """Return what the package index needs here, and make, which is one file."""
    make = shutil.which("make")
    assert make is not None, "make is not on PATH"
    found = ["--network=host", "--volume", f"{make}:/usr/bin/make:ro"]
    bundle = next((os.environ[name] for name in BUNDLES if os.environ.get(name)), None)
    if bundle:
        found += ["--volume", f"{bundle}:{CERTIFICATES}:ro"]
        found += [f"--env={name}={CERTIFICATES}" for name in BUNDLES]
    return found


@pytest.fixture(scope="module")
def bare(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """Runs a shell command in the tree on a bare machine; all of them share the tree."""
    tree = copy_of_the_work_tree(tmp_path_factory.mktemp("tree"))
    volume = f"codetape-bare-{uuid.uuid4().hex[:12]}"
    podman("volume", "create", volume)

    def run(command: str, *more: str) -> str:
        places = ["--volume", f"{tree}:/given:ro", "--volume", f"{volume}:/home/user:U"]
        user = ["--user=1000:1000", "--env=HOME=/home/user", "--workdir=/home/user"]
        shell = ["sh", "-euc", command]
        return podman("run", "--rm", *options(), *more, *places, *user, base_image, *shell)

    try:
        run("cp -r /given codetape")
        yield run
    finally:
        podman("volume", "rm", "--force", volume)


def test_a_bare_machine_has_no_sandbox_and_no_root(bare: Bare) -> None:
    assert bare("id -u; command -v podman bwrap crun runc || true") == "1000\n"


def test_the_demo_ends_in_done_where_namespaces_are_forbidden(bare: Bare) -> None:
    shown = bare("cd codetape && make demo")
    assert "No sandbox works here: the demo's own code runs in a bare process." in shown
    assert "Testing -> Done               tests_passed" in shown


def test_nothing_but_the_demo_runs_where_namespaces_are_forbidden(bare: Bare) -> None:
    command = ".venv/bin/codetape generate Add. --model scripted/demo || echo ended with $?"
    shown = bare(f"cd codetape && {command}")
    assert "no sandbox works here" in shown
    assert "ended with 3" in shown


def test_the_demo_ends_in_done_in_the_bundled_bubblewrap(bare: Bare) -> None:
    shown = bare("cd codetape && make demo", *NAMESPACES)
    assert "bubblewrap; bwrap 0.11.0 (bundled)" in shown
    assert "bare process" not in shown
    assert "Testing -> Done               tests_passed" in shown


def test_tests_pass_on_a_bare_machine(bare: Bare) -> None:
    shown = bare(f"cd codetape && make test WORKERS=0 ARGS='{TESTS}'", *NAMESPACES)
    assert " passed" in shown
    assert "skipped" not in shown, "the bundled bubblewrap counts as bubblewrap"
