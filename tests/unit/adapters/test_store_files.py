"""Which file system a path lies on, and which of them machines share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from codetape.adapters.store.files import filesystem_of, find_mount, is_shared, make_private

MOUNTS = r"""
/dev/sda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /mnt/server nfs4 rw 0 0
none /mnt/server/local tmpfs rw 0 0
//pc/share /mnt/with\040blank cifs rw 0 0
old /mnt/twice ext4 rw 0 0
new /mnt/twice virtiofs rw 0 0
""".strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/tape.db", "ext4"),
        ("/mnt/server/tape.db", "nfs4"),
        ("/mnt/serverless/tape.db", "ext4"),
        ("/mnt/server/local/a/tape.db", "tmpfs"),
        ("/mnt/with blank/tape.db", "cifs"),
        ("/mnt/twice/tape.db", "virtiofs"),
    ],
)
def test_the_deepest_mount_holds_a_path(path: str, kind: str) -> None:
    assert find_mount(Path(path), MOUNTS) == kind


def test_a_path_of_this_machine_has_a_file_system(tmp_path: Path) -> None:
    if not Path("/proc/self/mounts").exists():
        assert filesystem_of(tmp_path) == ""
        return
    assert filesystem_of(Path("/proc/self/tape.db")) == "proc"
    assert filesystem_of(tmp_path / "not" / "there.db") not in {"", "proc"}


def test_a_link_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/proc/self")
    assert filesystem_of(link / "tape.db") == filesystem_of(Path("/proc/self/tape.db"))


def test_a_link_that_leads_to_itself_is_an_error_with_its_name(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(OSError, match="link"):
        make_private(link)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "9p", "virtiofs", "fuse.sshfs", "ceph"])
def test_machines_share(kind: str) -> None:
    assert is_shared(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuseblk", ""])
def test_machines_do_not_share(kind: str) -> None:
    assert not is_shared(kind)


def test_many_make_one_file(tmp_path: Path) -> None:
    for number in range(50):
        path = tmp_path / f"{number}" / "tape.db"
        start = Barrier(4)

        def make(path: Path = path, start: Barrier = start) -> None:
            start.wait()
            make_private(path)

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(make) for _ in range(4)]:
                done.result()
        assert path.stat().st_mode & 0o777 == 0o600
