"""The file of a store: made private, and looked at for where it lies. Never opened here.

Closing a second descriptor of a file would drop every lock that SQLite holds on it in this process.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
import warnings
from contextlib import suppress
from pathlib import Path

_SHARED = {
    *(
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "gfs2",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
    ),
    *("ocfs2", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"),
}
_LOCAL_FUSE = {"fuse.fuse-overlayfs"}


def make_private(path: Path) -> None:
    """Make the file if there is none, for its owner only (0600; folders that are made 0700).

    One that is there and is ours is made private too, with its sidecar files. SQLite gives those that
    it makes the mode of the file. Raises OSError.
    """
    path = _resolved(path)  # where a link leads to nothing yet, SQLite would make what it names
    if path.exists():
        return
    _make_folders(path.parent)
    try:
        os.mknod(path, stat.S_IFREG | 0o600)  # makes it without opening it
    except FileExistsError:
        pass  # another process was faster
    except PermissionError:  # some systems keep mknod for the superuser
        _make_by_opening(path)


_SIDECARS = ("-wal", "-shm", "-journal")

_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")
"""So ends a journal with the name of a file that SQLite deletes once it has played the journal back."""


def fault_beside(path: Path) -> str | None:
    """Return why the files beside a store are none that a crash of ours leaves; None if they may be.

    It has to be asked before SQLite opens the store, for that plays a journal back, waits for a pipe
    and follows a link. Our transactions are of one file: no journal of theirs names another one.
    """
    path = _resolved(path)
    for end in _SIDECARS:
        file = path.with_name(path.name + end)
        try:
            if not stat.S_ISREG(file.lstat().st_mode):
                return f"{file.name} beside it is no regular file: move it away"
            if end == "-journal" and _last(file, len(_NAMES_ANOTHER)) == _NAMES_ANOTHER:
                return (
                    f"{file.name} beside it is none of ours, and would delete a file: move it away"
                )
        except FileNotFoundError:
            continue
    return None


def _last(file: Path, count: int) -> bytes:
    """Return the last bytes of a file, fewer if it is shorter."""
    with file.open("rb") as opened:
        opened.seek(max(opened.seek(0, os.SEEK_END) - count, 0))
        return opened.read(count)


def size_of(path: Path) -> int:
    """Return the bytes of a store with its log; 0 for what is not there."""
    total = 0
    for end in ("", "-wal"):
        with suppress(OSError):
            total += os.stat(f"{path}{end}").st_size
    return total


def is_empty(path: Path) -> bool:
    """Say whether a file has no content; False if that cannot be told."""
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def close_to_others(path: Path, *, was_empty: bool) -> None:
    """Take the rights of others away, and say so once unless the file `was_empty`.

    Of another user's file it is said that it is one.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return
    if status.st_uid != os.geteuid():
        warnings.warn(f"store {path} belongs to another user, who can change it", stacklevel=2)
    elif status.st_mode & 0o077 and _made_private(path) and not was_empty:
        warnings.warn(f"store {path} could be read by others; it is private now", stacklevel=2)


def _made_private(path: Path) -> bool:
    """Take the rights of others away from a file and its sidecars; False where it cannot be done."""
    try:
        path.chmod(0o600)
        for end in _SIDECARS:
            with suppress(FileNotFoundError):
                path.with_name(path.name + end).chmod(0o600)
    except OSError:  # a system of files that is read-only, or that has no modes
        return False
    return True


def tell_of_folders(path: Path) -> None:
    """Say of a folder above a store that others can change it: they could put another file there.

    Its rights are left as they are: it may be shared for a reason that is not ours.
    """
    for folder in path.parents:
        if others_can_change(folder.stat()):
            what = f"store {path} lies below {folder}, which others can change: they can replace it"
            warnings.warn(what, stacklevel=2)
            return


def others_can_change(status: os.stat_result) -> bool:
    """Say whether others may move files of ours in a folder; in one like /tmp they may not."""
    if status.st_mode & stat.S_ISVTX:
        return False
    of_group = status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid)
    return bool(of_group or status.st_mode & stat.S_IWOTH)


def _is_own_group(gid: int) -> bool:
    """Say whether a group is the one that many systems make for each user, by the user's name."""
    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    others = {*group.gr_mem} - {user.pw_name}
    return gid == user.pw_gid and group.gr_name == user.pw_name and not others


def others_can_list(path: Path) -> bool:
    """Say whether others see the names in the folder of a store."""
    return bool(path.resolve().parent.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def identity(path: Path) -> tuple[int, int] | None:
    """Return what stays the same while a path leads to the same file, None if it leads nowhere."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError as loop:  # what Python before 3.13 calls a link that leads to itself
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from loop


def _make_by_opening(path: Path) -> None:
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _make_folders(folder: Path) -> None:
    if not folder.exists():
        _make_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def filesystem_of(path: Path) -> str:
    """Return the type of the file system that holds `path` ("ext4"), empty if it is not known."""
    try:
        mounts = Path("/proc/self/mounts").read_text(errors="surrogateescape")
    except OSError:
        return ""
    return find_mount(path.resolve(), mounts)


def find_mount(path: Path, mounts: str) -> str:
    """Return the type of the deepest mount above `path` in a text of the form of /proc/mounts."""
    depth, found = -1, ""
    for line in mounts.splitlines():
        _, where, kind, *_ = line.split(" ")
        folder = Path(_unescaped(where))
        # The last one of the same folder lies on top.
        if len(folder.parts) >= depth and path.is_relative_to(folder):
            depth, found = len(folder.parts), kind
    return found


def is_shared(filesystem: str) -> bool:
    """Say whether other machines may write there: they share no memory with this one."""
    fuse = filesystem.startswith("fuse.") and filesystem not in _LOCAL_FUSE
    return fuse or filesystem in _SHARED


def _unescaped(text: str) -> str:
    for code in ("040", "011", "012", "134"):  # blank, tab, newline, backslash
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text
