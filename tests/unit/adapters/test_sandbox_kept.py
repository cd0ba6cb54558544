"""What builds have left: only ours is seen, and only what nobody needs goes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.sandbox.environments import HALF, MARK, Environments
from codetape.adapters.sandbox.kept import EnvironmentRoom, Kept, find, removable
from codetape.adapters.sandbox.podman.storeroom import REPOSITORY, ImageRoom, Uses
from codetape.adapters.sandbox.supervise import Wish
from codetape.states.values import ImageRef, ImageSpec
from tests.support.podman_server import podman_server

NOW = datetime(2026, 1, 31, tzinfo=UTC)
MONTH, WEEK = timedelta(days=30), timedelta(days=7)


def kept(key: str, used: int = 0, made: int = 0, **more: Any) -> Kept:
    """One that was used and made so many days ago."""
    moments = {"used": NOW - timedelta(days=used), "made": NOW - timedelta(days=max(used, made))}
    return Kept(**{"kind": "image", "key": key, "name": key, "size": 1, **moments, **more})


@st.composite
def forests(draw: st.DrawFn) -> list[Kept]:
    """Images that stand on each other, in any order."""
    found: list[Kept] = []
    for number in range(draw(st.integers(0, 8))):
        under = draw(st.none() | st.sampled_from(found)) if found else None
        held = draw(st.sampled_from([(), (), ("container x",)]))
        name, used, made = f"i{number}", draw(st.integers(0, 40)), draw(st.integers(0, 40))
        found.append(kept(name, used, made, under=under.name if under else None, held=held))
    return draw(st.permutations(found))


@given(forests())
def test_c12_what_goes_is_old_unused_and_bears_nothing_that_stays(every: list[Kept]) -> None:
    going = removable(every, NOW, MONTH, WEEK)
    may = [o for o in every if not o.held and NOW - o.used >= MONTH and NOW - o.made >= WEEK]
    assert all(one in may for one in going)
    gone: set[str] = set()
    for one in going:  # in this order each can be removed
        assert all(other.name in gone for other in every if other.under == one.name)
        gone.add(one.name)
    for one in may:  # and nothing else could go, too
        assert one in going or any(o.under == one.name and o.name not in gone for o in every)


def test_a_name_or_the_beginning_of_a_key_means_one() -> None:
    one, two = kept("abc1", name="localhost/codetape:abc1"), kept("abd2")
    assert find([one, two], "abc") == find([one, two], one.name) == [one]
    assert find([one, two], "ab") == [one, two]
    assert find([one, two], "c1") == []


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    wish = Wish()
    built = Environments(tmp_path).build(ImageSpec(base=""), wish)
    assert isinstance(built, ImageRef)
    yield tmp_path / built.ref
    wish.close()


def test_an_environment_says_what_it_is(environment: Path) -> None:
    (environment.parent / f"{HALF}{environment.name}.1234").mkdir()
    (environment.parent / "something else").mkdir()
    os.utime(environment / MARK, (1000, 1000))
    (one,) = EnvironmentRoom(environment.parent).kept()
    assert (one.key, one.kind, one.held) == (environment.name, "environment", ())
    assert one.used == datetime.fromtimestamp(1000, UTC)
    assert abs(one.made.timestamp() - time.time()) < 3600
    assert one.size


def test_a_folder_that_is_not_there_has_no_environments(tmp_path: Path) -> None:
    assert EnvironmentRoom(tmp_path / "none").kept() == []


def test_an_environment_is_removed_and_can_be_built_again(environment: Path) -> None:
    room = EnvironmentRoom(environment.parent)
    (one,) = room.kept()
    assert room.remove(one) == ""
    assert not environment.exists()
    assert room.kept() == []


def test_an_environment_in_which_code_runs_stays(environment: Path) -> None:
    room = EnvironmentRoom(environment.parent)
    image = ImageRef(ref=environment.name, spec_key="")
    with Environments(environment.parent).held(image):
        (one,) = room.kept()
        assert one.held
        assert room.remove(one) == "it is in use"
    assert environment.exists()
    assert room.remove(one) == ""


def image(key: str, **more: Any) -> dict[str, Any]:
    labels = {
        "codetape.key": key,
        "codetape.names": "pandas pytest",
        "codetape.commands": '["echo \\"x\\""]',
        "codetape.python": "3.11",
        "codetape.stage": "packages",
        **more.pop("Labels", {}),
    }
    named = f"{REPOSITORY}:{key}"
    facts = {"Id": f"id-{key}", "ParentId": "", "Names": [named], "History": [named]}
    return {**facts, "Size": 100, "Created": 1000, "Labels": labels, **more}


class Podman:
    """A podman of a few images, which can be removed unless they are in use."""

    def __init__(self, images: list[dict[str, Any]], containers: tuple[str, ...] = ()) -> None:
        self.images = images
        self.containers = containers

    def __call__(self, method: str, path: str) -> tuple[int, Any]:
        if method == "DELETE":
            return (409, {"message": "in use"}) if "held" in path else (200, {})
        if path == "/containers/json":
            return 200, [{"Names": ["c1"], "ImageID": each} for each in self.containers]
        return 200, self.images


def room(folder: Path) -> ImageRoom:
    host = f"unix://{folder}/podman/podman.sock"
    return ImageRoom({"CONTAINER_HOST": host}, Uses(folder / "uses"))


def test_c12_only_images_that_codetape_named_are_its_own(tmp_path: Path) -> None:
    foreign = [
        image("built-on-ours", Names=["localhost/mine:1"], History=["localhost/mine:1"]),
        image("built-on-ours-and-unnamed", Names=None, History=["localhost/mine:1"]),
        image("without-labels", Labels={"codetape.key": "other"}),
        {**image("plain"), "Labels": None},
    ]
    ours = [
        image("a"),
        image("b", Names=None),
        image("c", Names=["localhost/mine:2", f"{REPOSITORY}:c"]),
    ]
    with podman_server(tmp_path, Podman([*foreign, *ours])):
        rooms = room(tmp_path)
        assert [one.name for one in rooms.kept()] == [f"{REPOSITORY}:a", "id-b", f"{REPOSITORY}:c"]
        rooms.close()


def test_an_image_says_what_it_is_made_of_and_who_uses_it(tmp_path: Path) -> None:
    below = image("below", Size=60, Labels={"codetape.stage": "system", "codetape.names": "git"})
    above = image("above", ParentId="id-below")
    lost = image("lost", Names=None)
    uses = Uses(tmp_path / "uses")
    uses.note(["above", "lost"])
    with podman_server(tmp_path, Podman([below, above, lost], ("id-above",))):
        rooms = room(tmp_path)
        first, second, third = rooms.kept()
        rooms.close()
    assert (first.system_packages, first.requirements, first.size) == (("git",), (), None)
    assert (second.requirements, second.commands) == (("pandas", "pytest"), ('echo "x"',))
    assert (second.under, second.size, second.held) == (first.name, 40, ("container c1",))
    assert second.used > second.made
    assert third.used == third.made  # no build finds it any more


def test_commands_are_read_with_and_without_podmans_escapes(tmp_path: Path) -> None:
    label = json.dumps(['echo "a"'])
    for kept_by_podman in (label, json.dumps(label)[1:-1], "damaged"):
        one = image("a", Labels={"codetape.commands": kept_by_podman})
        with podman_server(tmp_path, Podman([one])):
            rooms = room(tmp_path)
            (found,) = rooms.kept()
            rooms.close()
        assert found.commands == (() if kept_by_podman == "damaged" else ('echo "a"',))


def test_removing_takes_only_the_name_that_codetape_gave(tmp_path: Path) -> None:
    uses = Uses(tmp_path / "uses")
    uses.note(["a"])
    with podman_server(tmp_path, Podman([])) as asked:
        rooms = room(tmp_path)
        assert rooms.remove(kept("a", name=f"{REPOSITORY}:a")) == ""
        assert "in use" in rooms.remove(kept("held", name=f"{REPOSITORY}:held"))
        rooms.close()
    assert asked[-2:] == [
        "DELETE /images/localhost%2Fcodetape%3Aa",
        "DELETE /images/localhost%2Fcodetape%3Aheld",
    ]
    assert uses.last("a") == 0.0
