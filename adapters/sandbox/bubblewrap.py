"""A sandbox made of kernel namespaces by bubblewrap: no daemon, no image, a few milliseconds.

Inside there are the system's /usr, an environment, the inputs and the outputs, and nothing else: no
home, no network, no other process. Run by root, it first becomes a user without rights, so that a
hole in the namespaces does not lead to root.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from codetape.adapters.sandbox import kernel, runner
from codetape.adapters.sandbox.bubblewrap_program import Program, programs
from codetape.adapters.sandbox.environments import Environments, default_folder
from codetape.adapters.sandbox.interpreters import Interpreter, reachable
from codetape.adapters.sandbox.local import LocalSandbox, Run, base_variables
from codetape.adapters.sandbox.run_users import own_user
from codetape.adapters.sandbox.supervise import ENDING, Launch
from codetape.engine.ports import SandboxBroken
from codetape.states.values import SandboxFailure

NOBODY = 65534  # user and group that code sees itself as; the kernel's own number for "nobody"
PLACES = ("/tmp", "/var/outputs", "/dev/shm")  # noqa: S108 - those of the sandbox, and writable
TMP = 64 << 20  # bytes of /tmp and of /dev/shm, which are memory
INSTALL = "install it: apt-get install bubblewrap"
ALLOW = (
    "the kernel must let users make namespaces: sysctl -w kernel.unprivileged_userns_clone=1 "
    "kernel.apparmor_restrict_unprivileged_userns=0 user.max_user_namespaces=10000 (as root; "
    "settings that your kernel does not know are of no matter)"
)
# The loader's cache and the links that Debian's libraries lead through.
ALWAYS = ("/etc/ld.so.cache", "/etc/alternatives")
FOR_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki",
               "/etc/ca-certificates")  # fmt: skip
HOST = "codetape"
ETC = {
    "passwd": f"nobody:x:{NOBODY}:{NOBODY}:nobody:/tmp:/usr/sbin/nologin\n",
    "group": f"nogroup:x:{NOBODY}:\n",
    "hosts": f"127.0.0.1 localhost {HOST}\n::1 localhost ip6-localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n",
}
"""Files of /etc by which code finds its user, its group and its host."""

OF_THE_MACHINE = ("services", "protocols")
"""Files of /etc that are the same everywhere, and shown where they are."""


class BubblewrapSandbox(LocalSandbox):
    """Runs code in namespaces of its own. Needs Linux with bubblewrap; root is not needed.

    `environments` is the folder for environments (default: the user's cache), `outputs` the one for
    collected outputs (default: temporary, gone with `close`). `secret` gives the value of a named
    secret. `build_seconds` limits a build. `session` is written to the folder of each run.
    """

    def __init__(
        self,
        *,
        environments: Path | None = None,
        outputs: Path | None = None,
        secret: Callable[[str], str | None] = os.environ.get,
        build_seconds: float = 900.0,
        session: str = "",
    ) -> None:
        folder = environments or default_folder()
        kept = Environments(folder, _visible, build_seconds, self._confined)
        super().__init__(kept, outputs, secret, session)
        self._program: Program | None = None

    def _check(self) -> None:
        """Try the programs once, the system's first. Raises SandboxBroken with what mends it."""
        if self._program is None:
            working = _first_working()
            _enter_environments(self._environments.folder)
            self._program = working

    def _tool(self) -> str | None:
        return None if self._program is None else str(self._program)

    def _user(self) -> contextlib.AbstractContextManager[int | None]:
        return own_user() if os.geteuid() == 0 else contextlib.nullcontext()

    def _launch(self, run: Run) -> Launch:
        assert self._program is not None, "a sandbox is checked before each run"
        prefix = self._environments.prefix(run.environment)
        arguments = _options(run, prefix, self._variables(run))
        info, told = os.pipe()
        rules = _filter()
        if rules is not None:
            arguments += ["--seccomp", str(rules)]
        options = os.memfd_create("options")  # not on the command line: it may hold secrets
        os.write(options, "\0".join([*arguments, "--info-fd", str(told)]).encode())
        os.lseek(options, 0, os.SEEK_SET)
        script, inputs = f"/opt/codetape/{runner.FILE}", "/var/inputs"
        base = self._environments.python(run.environment)
        inner = run.command(base, "/opt/environment", script, inputs, PLACES, own_user=True)
        return Launch(
            argv=(
                *(*run.group.join(), *_become(run.user), self._program.path),
                *("--args", str(options), "--", *inner),
            ),
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            seconds=runner.longest(run.spec),
            kill=lambda process: _kill(process, info, run),
            watch=run.watch,
            stdin=run.nonce.encode() + b"\n",
            keep=run.spec.limits.output,
            inherited=(run.writer, told, options, *(() if rules is None else (rules,))),
            report=run.reader,
        )

    def _confined(
        self, command: tuple[str, ...], folder: Path, interpreter: Interpreter
    ) -> tuple[str, ...]:
        """Return `command` in a sandbox that can write to `folder` alone, which is the caller's."""
        assert self._program is not None, "a sandbox is checked before each build"
        options = [*_namespaces(network=False), *_system(network=False), "--clearenv"]
        if not interpreter.prefix.is_relative_to("/usr"):
            options += ["--ro-bind", str(interpreter.prefix), str(interpreter.prefix)]
        options += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108
        return (self._program.path, *options, "--bind", str(folder), str(folder), "--", *command)


def _first_working() -> Program:
    """Return the first program that makes namespaces here. Raises SandboxBroken."""
    problems = []
    for each in programs():
        try:
            problem = each.problem or _refusal(each)
        except OSError as error:  # there is no setpriv
            problem = str(error)
        if not problem:
            return each
        problems.append(f"{each}: {problem}")
    if not problems:
        raise _missing(f"bubblewrap is not installed; {INSTALL}")
    raise _missing(f"bubblewrap does not work: {'; '.join(problems)}; {ALLOW}")


def _refusal(tried: Program) -> str:
    """Make the namespaces of a run, with nothing in them; "" if that works."""
    user = NOBODY if os.geteuid() == 0 else None
    command = [*_become(user), tried.path, *_namespaces(network=False), *_system(network=False)]
    ended = subprocess.run(
        [*command, "--proc", "/proc", "--dev", "/dev", "--", "/usr/bin/true"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd="/",
    )
    return (ended.stderr.strip() or f"status {ended.returncode}") if ended.returncode else ""


def _missing(message: str) -> SandboxBroken:
    return SandboxBroken(SandboxFailure(message=message, missing=True))


def _enter_environments(folder: Path) -> None:
    """Make sure that the user that code runs as can go there. Raises SandboxBroken."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _missing(f"cannot make the folder for environments: {error}") from error
    if os.geteuid() == 0 and not reachable(folder):
        message = (
            f"the folder for environments, {folder}, is closed to the user that code runs as; "
            "name another one: export XDG_CACHE_HOME=/var/cache"
        )
        raise _missing(message)


def _visible(interpreter: Interpreter) -> bool:
    """Say whether an interpreter can be shown inside: to be linked is not enough."""
    return os.geteuid() != 0 or reachable(interpreter.executable)


def _become(number: int | None) -> tuple[str, ...]:
    """Return what makes root a user without rights, before there is any namespace."""
    if number is None:
        return ()
    user = (f"--reuid={number}", f"--regid={number}", "--clear-groups")
    return ("setpriv", *user, "--no-new-privs", "--inh-caps=-all", "--")


def _namespaces(*, network: bool) -> list[str]:
    options = ["--unshare-user", "--disable-userns", "--unshare-ipc", "--unshare-pid"]
    options += ["--unshare-uts", "--unshare-cgroup-try", "--hostname", HOST]
    options += ["--uid", str(NOBODY), "--gid", str(NOBODY), "--die-with-parent", "--new-session"]
    return options if network else [*options, "--unshare-net"]


def _system(*, network: bool) -> list[str]:
    """Show the system's programs and libraries, read-only, under the names that they have."""
    options = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            options += ["--ro-bind", str(path), str(path)]
    for file in (*ALWAYS, *(FOR_NETWORK if network else ())):
        options += ["--ro-bind-try", file, file]
    return options


def _filter() -> int | None:
    """Return a descriptor of the filter of system calls; None where there is none for the machine."""
    program = kernel.filter_bytes()
    if program is None:
        return None
    rules = os.memfd_create("filter")
    os.write(rules, program)
    os.lseek(rules, 0, os.SEEK_SET)
    return rules


def _options(run: Run, prefix: Path, variables: dict[str, str]) -> list[str]:
    """Return the options of bwrap for one run."""
    network = run.spec.network
    options = [*_namespaces(network=network), *_system(network=network), "--clearenv"]
    for name, value in {**base_variables("/opt/environment", "/tmp"), **variables}.items():  # noqa: S108
        options += ["--setenv", name, value]
    if not prefix.is_relative_to("/usr"):
        options += ["--ro-bind", str(prefix), str(prefix)]
    for source, target in (
        *_etc(run, network=network),
        (run.environment, "/opt/environment"),
        (run.folder / runner.FILE, f"/opt/codetape/{runner.FILE}"),
        (run.inputs, "/var/inputs"),
    ):
        options += ["--ro-bind", str(source), target]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/dev/shm"):  # noqa: S108 - those of the sandbox
        options += ["--perms", "1777", "--size", str(TMP), "--tmpfs", folder]
    options += ["--bind", str(run.outputs), "/var/outputs"]
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/"]


def _etc(run: Run, *, network: bool) -> Iterator[tuple[Path, str]]:
    """Write the files of /etc that are our own; with a network, names are found as on the machine."""
    for name, text in ETC.items():
        if network and name == "nsswitch.conf":
            continue
        file = run.folder / f"etc-{name}"
        known = _text(Path("/etc/hosts")) if network and name == "hosts" else ""
        file.write_text(f"{text}{known}")
        yield file, f"/etc/{name}"
    for name in OF_THE_MACHINE:
        if (file := Path("/etc", name)).is_file():
            yield file, str(file)


def _text(file: Path) -> str:
    with contextlib.suppress(OSError, UnicodeError):
        return file.read_text()
    return ""


def _kill(process: subprocess.Popen[bytes], info: int, run: Run) -> None:
    """End bwrap; the first process inside dies with it, and the kernel ends all others with that.

    Returns when they are gone, so that the outputs do not change any more.
    """
    try:
        first = _first(info)
        process.kill()
        process.wait(ENDING)
        run.group.kill()
        deadline = time.monotonic() + ENDING
        while first is not None and _alive(first) and time.monotonic() < deadline:
            time.sleep(0.001)
    finally:
        os.close(info)


def _first(info: int) -> tuple[int, str] | None:
    """Return number and start of the first process inside, or None if it has not begun."""
    os.set_blocking(info, False)
    with contextlib.suppress(BlockingIOError, ValueError, IndexError):
        text = os.read(info, 1000).decode()
        pid = int(text.split('"child-pid":')[1].split(",")[0].split("}")[0])
        return pid, _started(pid) or ""
    return None


def _started(pid: int) -> str | None:
    """Return when a process began, in the kernel's ticks; None if it is gone or only a zombie."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if facts[0] in "ZX" else facts[19]


def _alive(first: tuple[int, str]) -> bool:
    return _started(first[0]) == first[1]
