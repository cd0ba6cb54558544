"""Tars of inputs, and hostile tars of outputs."""

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codetape.adapters.sandbox.podman.tars import of_inputs, unpack
from codetape.engine.ports import SandboxBroken
from codetape.states.values import HostFile, TextFile


def pieces(*members: tuple[tarfile.TarInfo, bytes]) -> Iterator[bytes]:
    """A tar, in pieces of a size that fits nothing."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, body in members:
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    data = buffer.getvalue()
    return (data[at : at + 777] for at in range(0, len(data), 777))


def member(name: str, body: bytes = b"", kind: bytes = tarfile.REGTYPE, to: str = "") -> tuple:  # type: ignore[type-arg]
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info, body


def test_files_and_folders_are_unpacked(tmp_path: Path) -> None:
    tar = pieces(
        member("out/", kind=tarfile.DIRTYPE),
        member("out/ä b.txt", b"x" * 5000),
        member("out/deep/er", b""),
    )
    assert unpack(tar, tmp_path, None, 10) == []
    assert (tmp_path / "out/ä b.txt").read_bytes() == b"x" * 5000
    assert (tmp_path / "out/deep/er").read_bytes() == b""


def test_d13_a_file_behind_a_link_does_not_leave_the_target(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    tar = pieces(
        member("out", kind=tarfile.SYMTYPE, to=str(outside)), member("out/planted", b"evil")
    )
    refused = unpack(tar, target, None, 10)
    assert refused == ["out: a link, not a file or folder"]
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE]
)
def test_d13_what_is_no_file_is_left_out(tmp_path: Path, kind: bytes) -> None:
    (refused,) = unpack(pieces(member("odd", kind=kind, to="/etc/passwd")), tmp_path, None, 10)
    assert refused.startswith("odd: ")
    assert not os.path.lexists(tmp_path / "odd")


@pytest.mark.parametrize("name", ["../up", "a/../../up", "/../up"])
def test_a_way_out_of_the_target_is_refused(tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(ValueError, match=r"\.\."):
        unpack(pieces(member(name, b"evil")), target, None, 10)
    assert list(tmp_path.iterdir()) == [target]


def test_an_absolute_path_is_taken_as_a_relative_one(tmp_path: Path) -> None:
    unpack(pieces(member("/etc/passwd", b"mine")), tmp_path, None, 10)
    assert (tmp_path / "etc/passwd").read_bytes() == b"mine"


def test_d13_more_bytes_than_agreed_are_refused_before_they_are_read(tmp_path: Path) -> None:
    info, _ = member("sparse")
    info.size = 10 << 30
    header = info.tobuf(tarfile.GNU_FORMAT) + bytes(10_240)  # tarfile reads ahead

    def endless() -> Iterator[bytes]:
        yield header
        pytest.fail("the body was asked for")

    with pytest.raises(ValueError, match="too large"):
        unpack(endless(), tmp_path, 1 << 20, 10)


def test_sizes_add_up(tmp_path: Path) -> None:
    tar = pieces(member("a", b"x" * 60), member("b", b"x" * 60))
    with pytest.raises(ValueError, match="too large"):
        unpack(tar, tmp_path, 100, 10)


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="more than 3 files"):
        unpack(pieces(*(member(str(n)) for n in range(5))), tmp_path, None, 3)


def read(tar: Iterator[bytes]) -> dict[str, bytes | None]:
    with tarfile.open(fileobj=io.BytesIO(b"".join(tar))) as archive:
        return {m.name: body.read() if (body := archive.extractfile(m)) else None for m in archive}


def test_inputs_are_texts_and_files_and_folders_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "private").write_bytes(b"data")
    (tmp_path / "private").chmod(0o600)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_bytes(b"x")
    name = f"ü {'long' * 40}.csv"
    tar = of_inputs(
        "var/inputs",
        [TextFile(name="solution.py", text="ä\ud83c\r\n")],
        [
            HostFile(name=name, path=str(tmp_path / "private")),
            HostFile(name="dir", path=str(tmp_path / "folder")),
        ],
        {"var/codetape/runner.py": b"run"},
    )
    assert read(tar) == {
        f"var/inputs/{name}": b"data",
        "var/inputs/dir": None,
        "var/inputs/dir/x": b"x",
        "var/inputs/solution.py": b"\xc3\xa4\xed\xa0\xbc\r\n",
        "var/codetape/runner.py": b"run",
    }


def test_everybody_inside_may_read_and_nobody_of_the_host_is_named(tmp_path: Path) -> None:
    (tmp_path / "private").touch(0o600)
    host = [HostFile(name="x", path=str(tmp_path / "private"))]
    with tarfile.open(fileobj=io.BytesIO(b"".join(of_inputs("in", [], host, {})))) as archive:
        (info,) = archive
    assert (info.mode, info.uid, info.uname, info.mtime) == (0o644, 0, "", 0)


def test_an_input_that_is_not_there_breaks_the_run(tmp_path: Path) -> None:
    host = [HostFile(name="x", path=str(tmp_path / "absent"))]
    with pytest.raises(SandboxBroken, match="absent"):
        list(of_inputs("in", [], host, {}))


def test_an_input_that_shrinks_while_it_is_read_breaks_the_run(tmp_path: Path) -> None:
    path = tmp_path / "shrinking"
    path.write_bytes(b"x" * (3 << 20))
    tar = of_inputs("in", [], [HostFile(name="x", path=str(path))], {})
    next(tar)
    next(tar)
    os.truncate(path, 1 << 20)
    with pytest.raises(SandboxBroken, match="shorter"):
        list(tar)


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "", "a\0b"])
def test_an_input_has_a_plain_name(name: str) -> None:
    with pytest.raises(SandboxBroken, match="name of a file"):
        list(of_inputs("in", [TextFile(name=name, text="")], [], {}))


@pytest.mark.parametrize("name", ["out/\udcff", "out/\udc80\n"])
def test_a_link_with_a_name_that_is_not_utf8_is_told_in_plain_text(
    tmp_path: Path, name: str
) -> None:
    (refused,) = unpack(pieces(member(name, kind=tarfile.SYMTYPE, to="x")), tmp_path, None, 10)
    assert refused.encode()  # raises where a store could not keep it
    assert refused.startswith("out/\\")


@pytest.mark.parametrize(
    "members",
    [
        [member("/".join(["d" * 200] * 30), b"x")],
        [member("out", b"x"), member("out", b"y")],
        [member("out", b"x"), member("out/inner", b"y")],
    ],
    ids=["a way that is too long", "a name twice", "a file as a folder"],
)
def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path, members: list) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match=r"(?i)too long|exists|not a directory"):
        unpack(pieces(*members), tmp_path, None, 10)
