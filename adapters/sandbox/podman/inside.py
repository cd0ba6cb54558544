"""Process 1 of a container: runs one program within bounds and tells the host what it did.

Handed over with ../kernel.py, under the names that they have here (standard library, Python 3.8 and
later), and started by `handed.command`. Its only argument is a job, a JSON object:

    command    what to run, a list of words; its standard input is the nonce and a newline
    seconds    wall clock of the whole process tree
    output     bytes kept of each stream: half of it head, half of it tail
    disk       bytes below `outputs`, or null
    outputs    the folder that `disk` is about
    collect    names below `outputs` whose kind and size are asked for
    expect     limits that must be in force: {"memory": bytes, "processes": n, "cpus": share}
    confine    whether the program may make no namespaces
    waits      whether the rest of the job comes later, as one line of JSON on standard input, with
               two more names: `environment`, variables of the program, and `nonce`

Without `waits` the nonce comes in the variable CODETAPE_NONCE, which the program does not get.
Descriptor 3 of the program is a socket for its report. The host is told everything in lines on standard
output, which the program cannot reach: it has no descriptor of it, and this process is not dumpable,
so there is no way through /proc. A line is a word, a blank, and a value:

    refused JSON     a limit is not in force: {name: what is}; the program was not started
    out, err BASE64  the next piece of the head of a stream
    out-tail, err-tail BASE64  the tail, once the program has ended
    report BASE64    the next piece of the report
    end JSON         the facts, see `_facts`; without this line the run was cut from outside

Being process 1 of a pid namespace, it cannot be killed or stopped from inside, its kill(-1) reaches
every other process, and its end takes all of them along.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import resource
import select
import signal
import socket
import stat
import sys
import time
from typing import Any

from codetape.adapters.sandbox import kernel

CHUNK = 24_000  # bytes of one line before encoding: three to four makes 32 KiB
REPORT = 16 << 20  # bytes kept of the report
DRAIN = 2.0  # seconds for what lies in the pipes when every process is gone
WATCH = 0.1  # seconds between two looks at the clock and the disk
ENTRIES = 200_000  # entries looked at when the outputs are measured
LEAST = 512  # bytes that an entry counts, as an empty file takes some too
FLOOD = 1000  # times what is kept of a stream: who prints more is ended
GROUPS = "/sys/fs/cgroup"


def main() -> None:
    """Run the job and leave; the exit status says nothing, the `end` line does."""
    kernel.dumpable(0)
    job = json.loads(sys.argv[1])
    nonce = os.environ.pop("CODETAPE_NONCE", "")
    refused = kernel.unmet(job.get("expect") or {}, GROUPS)
    if refused:
        say("refused", json.dumps(refused))
        return
    if job.get("waits"):
        line = open(0, closefd=False).readline()  # noqa: SIM115 - the descriptor is used below
        if not line.endswith("\n"):
            return  # the host is gone, or needs us no more
        job.update(json.loads(line))
        os.environ.update(job["environment"])
        nonce = job["nonce"]
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    Watch(job, nonce).run()


def say(word: str, value: str) -> None:
    """Write one line to the host."""
    line = f"{word} {value}\n".encode()
    while line:
        line = line[os.write(1, line) :]


class Watch:
    """One program, its three pipes, its clock and its disk."""

    def __init__(self, job: dict[str, Any], nonce: str) -> None:
        self._job = job
        self._disk = Disk(job.get("outputs"), job.get("disk"))
        self._killed: str | None = None  # what was used up: "seconds", "memory", "disk", "output"
        self._status: int | None = None
        self._left = False  # processes were there after the program had ended
        self._start = self._next = time.monotonic()
        self._bell = _bell()
        self._child, ends = _spawn(job, nonce)
        half = job["output"] // 2
        room = {"out": (half, half), "err": (half, half), "report": (REPORT, 0)}
        self._streams = [Stream(name, head, tail) for name, (head, tail) in room.items()]
        self._open = {end: self._streams[at] for at, end in enumerate(ends)}

    def run(self) -> None:
        """Follow the program to its end, end the rest, and say what happened."""
        while self._status is None and self._killed is None:
            self._read(WATCH)
            self._reap(os.WNOHANG)
            self._look()
        seconds = time.monotonic() - self._start
        self._left = _kill_all()
        self._reap(0)
        self._drain()
        for stream in self._streams:
            stream.finish()
        say("end", json.dumps(self._facts(seconds)))

    def _read(self, seconds: float) -> None:
        """Pass on what the pipes hold, at most one buffer of each."""
        ready, _, _ = select.select([self._bell, *self._open], [], [], seconds)
        for end in ready:
            if end == self._bell:
                os.read(end, 65_536)
            elif not self._open[end].feed(os.read(end, 65_536)):
                os.close(end)
                del self._open[end]

    def _reap(self, options: int) -> None:
        """Collect every process that has ended: orphans become children of process 1."""
        pid = -1
        while pid:
            try:
                pid, status = os.waitpid(-1, options)
            except ChildProcessError:
                return
            if pid == self._child:
                self._status = status

    def _look(self) -> None:
        """See whether a limit was passed; not more often than WATCH, however much is printed."""
        now = time.monotonic()
        if self._status is not None or now < self._next:
            return
        self._next = now + WATCH
        if now - self._start > self._job["seconds"]:
            self._killed = "seconds"
        elif kernel.oom_kills(GROUPS):  # whoever survived may wait for the killed one for ever
            self._killed = "memory"
        elif self._disk.used_up():
            self._killed = "disk"
        elif any(stream.total > self._most(stream.name) for stream in self._streams):
            self._killed = "output"

    def _most(self, name: str) -> int:
        """How many bytes may come through a pipe before the run is ended for it."""
        return REPORT if name == "report" else FLOOD * int(self._job["output"])

    def _drain(self) -> None:
        """Read the rest: all writers are gone, so the pipes come to their end."""
        until = time.monotonic() + DRAIN
        while self._open and time.monotonic() < until:
            self._read(WATCH)

    def _facts(self, seconds: float) -> dict[str, Any]:
        job, status = self._job, self._status or 0
        by_signal = os.WIFSIGNALED(status)
        return {
            "status": None if by_signal else os.WEXITSTATUS(status),
            "signal": os.WTERMSIG(status) if by_signal else None,
            "timed_out": self._killed == "seconds",
            "disk_full": self._killed == "disk" or self._disk.used_up(thorough=True),
            "too_much_output": self._killed == "output",
            "forks_refused": kernel.refused_forks(GROUPS),
            "cpu_seconds": kernel.cpu_seconds(GROUPS),
            "left": self._left,
            "oom_kills": kernel.oom_kills(GROUPS),  # of this container, so the count began at 0
            "peak_memory": kernel.peak_memory(GROUPS),
            "seconds": round(seconds, 4),
            "bytes": {stream.name: stream.total for stream in self._streams},
            "outputs": {name: kind(job["outputs"], name) for name in job.get("collect", ())},
            "kept": {word: n for s in self._streams for word, n in s.kept.items()},
            "python": f"{sys.version_info.major}.{sys.version_info.minor}",
            "executable": sys.executable,
        }


def _bell() -> int:
    """Return a descriptor that becomes readable when a child ends: its pipes may close before that."""
    heard, rung = os.pipe()
    os.set_blocking(heard, False)
    os.set_blocking(rung, False)
    signal.set_wakeup_fd(rung, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return heard


def _spawn(job: dict[str, Any], nonce: str) -> tuple[int, list[int]]:
    """Start the program in a session of its own; return its pid and our ends of its pipes."""
    # Who writes to a pipe can open it again and take back what was written; a socket he cannot.
    report = tuple(end.detach() for end in socket.socketpair())
    pipes = [*(os.pipe() for _ in range(3)), report]
    (stdin, feed), *outward = pipes
    os.write(feed, nonce.encode() + b"\n")
    os.close(feed)
    pid = os.fork()
    if pid == 0:
        try:
            _become(job, [stdin, *(theirs for _, theirs in outward)])
        except BaseException as error:  # noqa: BLE001 - nothing may return into the parent's code
            os.write(2, f"{job['command'][0]}: {error}\n".encode(errors="replace"))
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    os.close(stdin)
    for _, theirs in outward:
        os.close(theirs)
    return pid, [ours for ours, _ in outward]


def _become(job: dict[str, Any], ends: list[int]) -> None:
    """Become the program: descriptors 0 to 3, a session, and the first choice of an OOM killer."""
    os.setsid()
    # Out of the way first, so that no dup2 lands on one that is still needed.
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for number, end in enumerate(high):
        os.dup2(end, number)
    kernel.dumpable(1)  # or the next file would belong to root
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    if job.get("disk") is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        size = job["disk"] if hard == resource.RLIM_INFINITY else min(job["disk"], hard)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    if job.get("confine"):
        kernel.confine()
    os.execvp(job["command"][0], job["command"])  # noqa: S606 - a list of words, and no shell


def _kill_all() -> bool:
    """Kill every process but this one; say whether there was any."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Stream:
    """What came through one pipe: the head passed on at once, a tail kept, the rest counted."""

    def __init__(self, name: str, head: int, tail: int) -> None:
        self.name = name
        self.total = 0  # bytes that came
        self.kept: dict[str, int] = {}  # bytes passed on, by word
        self._head = head
        self._tail = tail
        self._kept = bytearray()

    def feed(self, data: bytes) -> bool:
        """Take the next piece, in time that does not grow with what came before; False at the end."""
        self.total += len(data)
        self._send(self.name, data[: self._head])
        rest = data[self._head :]
        self._head = max(0, self._head - len(data))
        self._kept += rest
        if len(self._kept) > 2 * self._tail + CHUNK:
            del self._kept[: len(self._kept) - self._tail]
        return bool(data)

    def finish(self) -> None:
        """Pass on the tail."""
        self._send(f"{self.name}-tail", bytes(self._kept[-self._tail :] if self._tail else b""))

    def _send(self, word: str, data: bytes) -> None:
        self.kept[word] = self.kept.get(word, 0) + len(data)
        for at in range(0, len(data), CHUNK):
            say(word, base64.b64encode(data[at : at + CHUNK]).decode())


class Disk:
    """Measures what lies below a folder, as often as measuring is cheap."""

    def __init__(self, folder: str | None, limit: int | None) -> None:
        self._folder = folder or ""
        self._limit = limit if folder and os.path.isdir(folder) else None
        self._free = 0 if self._limit is None else free(self._folder)
        self._next = 0.0

    def used_up(self, thorough: bool = False) -> bool:
        """Say whether the limit is reached, or the disk is full; a cheap no between measurements."""
        start = time.monotonic()
        if self._limit is None or (start < self._next and not thorough):
            return False
        left = free(self._folder)
        used = below(self._folder, self._limit, self._free - left)
        spent = time.monotonic() - start
        self._next = start + spent + max(WATCH, 5 * spent)
        return used >= self._limit or left == 0


def free(folder: str) -> int:
    """Return the bytes that the disk below `folder` still has room for."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def below(folder: str, enough: int, lost: int = 0) -> int:
    """Return the bytes that the tree takes on disk; stops counting at `enough`.

    `lost` is what the disk has lost in the meantime: a folder that is closed to us may hold it. One
    whose path is too long to be looked into holds enough.
    """
    total, count, waiting = 0, 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    total += max(LEAST, entry.stat(follow_symlinks=False).st_blocks * 512)
                    if total >= enough or count >= ENTRIES:
                        return total
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except PermissionError:
            total = max(total, lost)
        except OSError as error:  # removed while we looked, mostly
            total = enough if error.errno == errno.ENAMETOOLONG else total
    return total


def kind(folder: str, name: str) -> list[Any] | None:
    """Return ["file", size], ["folder", 0] or [what else it is, 0]; None if there is no `name`.

    A link anywhere on the way counts as one: what it leads to is not an output.
    """
    path = folder
    for part in name.split("/"):
        path = os.path.join(path, part)
        try:
            facts = os.lstat(path)
        except OSError:
            return None
        if not stat.S_ISDIR(facts.st_mode) and not stat.S_ISREG(facts.st_mode):
            return ["a link" if stat.S_ISLNK(facts.st_mode) else "a device, pipe or socket", 0]
    return ["folder", 0] if stat.S_ISDIR(facts.st_mode) else ["file", facts.st_size]
