"""`codetape images`, with a podman of a few images and an environment that is real."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codetape.adapters.sandbox.environments import MARK, Environments
from codetape.adapters.sandbox.supervise import Wish
from codetape.cli import main
from codetape.states.values import ImageRef, ImageSpec
from tests.support.podman_server import podman_server
from tests.unit.adapters.test_sandbox_kept import Podman, image

DAY = 86400


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that was used 40 days ago."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "codetape.adapters.sandbox.environments.default_folder", lambda: tmp_path / "environments"
    )
    folder = tmp_path / "environments"
    wish = Wish()
    built = Environments(folder).build(ImageSpec(base=""), wish)
    wish.close()
    assert isinstance(built, ImageRef)
    for file in (MARK, "pyvenv.cfg"):
        past = os.stat(folder / built.ref / file).st_mtime - 40 * DAY
        os.utime(folder / built.ref / file, (past, past))
    return folder / built.ref


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Three images that are years old: `above` stands on `below`, and one is held by a container."""
    monkeypatch.setenv("CONTAINER_HOST", f"unix://{tmp_path}/podman/podman.sock")
    monkeypatch.setattr(
        "codetape.adapters.sandbox.podman.storeroom.default_folder", lambda: tmp_path / "uses" / "x"
    )
    system = {"codetape.stage": "system", "codetape.names": "git"}
    images = [
        image("below00", Labels=system, Size=60),
        image("above00", ParentId="id-below00"),
        image("held000"),
        image("foreign", Names=["localhost/mine:1"], History=[]),
    ]
    with podman_server(tmp_path, Podman(images, ("id-held000",))) as asked:
        yield asked


def out(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["images", *words]) == code
    return capsys.readouterr().out


def test_the_list_shows_images_and_environments_of_ours(
    environment: Path, podman: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = out(capsys).splitlines()
    assert lines[0].split() == ["KEY", "KIND", "PYTHON", "CONTENT", "SIZE", "USED", "HELD"]
    assert {line.split()[0] for line in lines[1:5]} == {
        "below00",
        "above00",
        "held000",
        environment.name[:12],
    }
    assert "4 builds" in lines[-1]
    assert out(capsys) == out(capsys, "list")
    kept = json.loads(out(capsys, "list", "--json"))["kept"]
    assert {one["key"] for one in kept} == {"below00", "above00", "held000", environment.name}
    assert not any(asked.startswith("DELETE") for asked in podman)


def test_an_image_is_explained_with_what_it_stands_on(
    environment: Path, podman: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = out(capsys, "explain", "above")
    for words in ("pandas, pytest", "git", "below00", 'echo "x"', "above what it stands on"):
        assert words in said
    facts = json.loads(out(capsys, "explain", "below", "--json"))
    assert (facts["bears"], facts["system_packages"]) == (["above00"], ["git"])
    assert "an environment" in out(capsys, "explain", environment.name[:6])


@pytest.mark.usefixtures("environment", "podman")
@pytest.mark.parametrize("wanted", ["foreign", "zzz"])
def test_what_codetape_did_not_make_is_not_explained(
    wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["images", "explain", wanted]) == 2
    assert f"codetape has made no {wanted}" in capsys.readouterr().err


def deleted(asked: list[str]) -> list[str]:
    return [each.rpartition("3A")[2] for each in asked if each.startswith("DELETE")]


def test_a_dry_run_removes_nothing(
    environment: Path, podman: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = out(capsys, "prune", "--dry-run")
    assert "3 builds would be removed" in said
    assert "held000" not in said
    assert (deleted(podman), environment.exists()) == ([], True)


@pytest.mark.usefixtures("environment", "podman")
def test_where_nothing_goes_no_empty_table_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert out(capsys, "prune", "--unused", "999999", "--dry-run") == "Nothing is to be removed.\n"


def test_what_is_unused_goes_from_the_top_and_what_is_in_use_stays(
    environment: Path, podman: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    facts = json.loads(out(capsys, "prune", "--json"))
    assert {one["key"] for one in facts["removed"]} == {"above00", "below00", environment.name}
    assert (facts["failed"], facts["missing"], facts["dry_run"]) == ({}, {}, False)
    assert deleted(podman) == ["above00", "below00"]
    assert not environment.exists()


@pytest.mark.parametrize(
    "options", [("--unused", "41"), ("--age", "41"), ("--unused", "0", "--age", "41")]
)
def test_age_and_use_are_the_callers_choice(
    environment: Path,
    podman: list[str],
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
) -> None:
    said = out(capsys, "prune", *options)
    assert environment.exists()
    assert environment.name[:12] not in said
    assert deleted(podman) == ["above00", "below00"]  # they are older still


def test_without_podman_the_environments_are_there_all_the_same(
    environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CONTAINER_HOST", f"unix://{tmp_path}/nothing.sock")
    monkeypatch.setattr("codetape.adapters.sandbox.podman.service.candidates", lambda *_: [])
    monkeypatch.setenv("PATH", "")
    assert main(["images"]) == 0
    said = capsys.readouterr()
    assert environment.name[:12] in said.out
    assert "podman was not looked into: no podman" in said.err


@pytest.mark.usefixtures("environment")
def test_what_cannot_be_removed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONTAINER_HOST", f"unix://{tmp_path}/podman/podman.sock")
    with podman_server(tmp_path, Podman([image("held-by-a-build")])):
        assert main(["images", "prune"]) == 3
    said: Any = capsys.readouterr().out
    assert "localhost/codetape:held-by-a-build stays: podman: in use" in said
    assert "1 build removed" in said
