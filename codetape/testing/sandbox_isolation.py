"""The part of the sandbox contract that tries to get out."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from codetape.testing.sandbox_runs import Runs, SandboxCase

STATUS = """
import json
lines = open("/proc/self/status").read().splitlines()
print(json.dumps(dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)))
"""
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3)
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""
WRITE = """
import os, sys
for path in sys.argv[1:]:
    new = not os.path.exists(path)
    try:
        open(path, "a").close()
        print(path)
        if new:
            os.remove(path)  # where nothing holds it, this is the machine's
    except OSError:
        pass
print("tried")
"""
BECOME_ROOT = """
import ctypes, os, socket, stat
library = ctypes.CDLL(None)
def device(): os.mknod("/var/outputs/device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
def raw(): socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
def mount():
    if library.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None) != 0:
        raise OSError
for attempt in (
    lambda: os.setuid(0),
    lambda: os.setresgid(0, 0, 0),
    lambda: os.setgroups([0]),
    lambda: os.chroot("/tmp"),
    lambda: os.nice(-5),
    lambda: os.chown("/var/outputs", 0, 0),
    device,
    raw,
    mount,
):
    try:
        attempt()
        print("done:", attempt)
    except OSError:
        pass
print("tried")
"""
# Whoever has the bit and belongs to root: each is asked to run `id`, as far as it can be.
SETUID = """
import os, subprocess
for folder in ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib"):
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        facts = entry.stat(follow_symlinks=False)
        if facts.st_mode & 0o4000 and facts.st_uid == 0:
            for words in (["-c", "id"], ["id"], []):
                ran = subprocess.run(
                    [entry.path, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=9
                )
                print(ran.stdout.decode(errors="replace"))
with open("/var/outputs/shell", "wb") as file:
    file.write(open("/bin/sh", "rb").read())
os.chmod("/var/outputs/shell", 0o4755)
try:
    print(subprocess.run(["/var/outputs/shell", "-p", "-c", "id"], capture_output=True).stdout)
except OSError:
    pass
print("tried")
"""
# What is on a keyring of the kernel: no namespace hides the one that a process inherits.
KEYS = """
import ctypes, os, struct
library, SESSION, READ = ctypes.CDLL(None), -3, 11
NUMBER = {"x86_64": 250}.get(os.uname().machine, 219)
def read(key):
    buffer = ctypes.create_string_buffer(1000)
    size = library.syscall(NUMBER, READ, key, buffer, 1000)
    return buffer.raw[: max(0, size)]
for (key,) in struct.iter_unpack("i", read(SESSION)):
    print(read(key))
print("looked")
"""

# Families that lead to the machine's host, to the link layer, to drivers or into the kernel.
FAMILIES = """
import socket
opened = []
for family in range(50):
    if family not in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                socket.socket(family, kind).close()
                opened.append((family, kind))
            except OSError:
                pass
print(opened)
"""
# The key store has no namespace: one run would read there what another one has left.
KEEP_A_KEY = """
import ctypes, os
library, X86 = ctypes.CDLL(None), os.uname().machine == "x86_64"
ADD, REQUEST, CONTROL = (248, 249, 250) if X86 else (217, 218, 219)
SESSION, USER = -3, -4
kept = [
    library.syscall(ADD, b"user", b"canary", b"text", 4, keyring) for keyring in (SESSION, USER)
]
kept.append(library.syscall(REQUEST, b"user", b"canary", None, USER))
kept += [library.syscall(CONTROL, 0, keyring, 1) for keyring in (SESSION, USER)]
print(set(kept))
"""
# The same calls by other ways: io_uring's set-up, x32's numbers, and the instruction of 32 bits.
OTHER_WAYS = """
import ctypes, mmap, os, socket
library, X86 = ctypes.CDLL(None), os.uname().machine == "x86_64"
found = [library.syscall(425, 8, ctypes.create_string_buffer(120))]
if X86:
    found.append(library.syscall(0x40000000 + 41, 40, 1, 0))
    # mov eax, 359 (socket); mov ebx, 40; mov ecx, 1; xor edx, edx; int 0x80; ret
    code = bytes.fromhex("53 b867010000 bb28000000 b901000000 31d2 cd80 5b c3")
    child = os.fork()
    if child == 0:
        place = mmap.mmap(-1, 4096, prot=7)
        place.write(code)
        call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(place)))
        os._exit(0 if call() >= 0 else 1)
    found.append(0 if os.waitpid(child, 0)[1] == 0 else -1)
print(set(found))
"""


# Keys that are shared by all of one user, sockets that no network namespace holds, and the call
# that does what a filter forbids.
UNSHARED = """
import ctypes, os, socket
library = ctypes.CDLL(None)
ADD = {"x86_64": 248}.get(os.uname().machine, 217)
for number, arguments in (
    (ADD, (b"user", b"codetape", b"x", ctypes.c_size_t(1), -4)),
    (ADD + 2, (0, -4, 1)),
    (425, (1, ctypes.create_string_buffer(200))),
):
    if library.syscall(number, *arguments) >= 0:
        print("done:", number)
for family in (17, 21, 30, 31, 38, 40, 44):
    try:
        socket.socket(family, socket.SOCK_SEQPACKET if family == 38 else socket.SOCK_STREAM)
        print("open:", family)
    except OSError as error:
        if error.errno != 97:
            print("reached:", family, error)
for family in (socket.AF_UNIX, socket.AF_INET):
    socket.socket(family).close()
print("tried")
"""


class IsolationContract(SandboxCase):
    """What code inside cannot reach."""

    def test_there_is_no_network(self, make: Runs) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
            printed = make.printed(CONNECT, arguments=("127.0.0.1", port))
        assert printed in {"ConnectionRefusedError", "TimeoutError", "OSError"}

    def test_keys_and_unusual_sockets_are_refused(self, make: Runs) -> None:
        assert make.printed(UNSHARED) == "tried"

    def test_there_is_only_the_loopback_device(self, make: Runs) -> None:
        assert make.printed("import socket; print(socket.if_nameindex())") == "[(1, 'lo')]"

    def test_loopback_works(self, make: Runs) -> None:
        code = """
            import socket
            server = socket.create_server(("127.0.0.1", 0))
            socket.create_connection(server.getsockname(), timeout=3)
            print("connected")
        """
        assert make.printed(code) == "connected"

    def test_files_of_the_host_are_not_there(self, make: Runs) -> None:
        folder = Path(tempfile.mkdtemp(prefix="canary-"))
        folder.chmod(0o755)
        code = """
            import os, sys
            def found(folder, name, depth):
                try:
                    entries = list(os.scandir(folder))
                except OSError:
                    return False
                return any(
                    e.name == name
                    or (depth and e.is_dir(follow_symlinks=False) and found(e.path, name, depth - 1))
                    for e in entries
                )
            print(found("/", sys.argv[1], 3), found("/proc/1/root", sys.argv[1], 3))
        """
        try:
            assert make.printed(code, arguments=(folder.name,)) == "False False"
        finally:
            folder.rmdir()

    def test_d12_variables_of_the_host_are_not_there(
        self, make: Runs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CANARY_TOKEN", "secret-of-the-host")
        code = """
            import glob, os
            found = [v for v in os.environ.values() if "secret-of-the-host" in v]
            for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
                try:
                    found += [path] if "secret-of-the-host" in open(path).read() else []
                except OSError:
                    pass
            print(found)
        """
        assert make.printed(code) == "[]"

    def test_the_user_is_not_root(self, make: Runs) -> None:
        users = make.printed("import os; print(*os.getresuid())").split()
        assert len(users) == 3
        assert "0" not in users

    def test_there_are_no_capabilities_and_no_new_privileges(self, make: Runs) -> None:
        status = json.loads(make.printed(STATUS))
        held = {name: int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")}
        assert held == dict.fromkeys(held, 0)
        assert status["NoNewPrivs"].strip() == "1"

    def test_nobody_becomes_root(self, make: Runs) -> None:
        assert make.printed(BECOME_ROOT) == "tried"

    def test_no_setuid_program_gives_rights(self, make: Runs) -> None:
        printed = make.printed(SETUID)
        assert "uid=0" not in printed
        assert printed.endswith("tried")

    def test_sockets_of_the_host_are_not_there(self, make: Runs) -> None:
        name = f"canary-{uuid.uuid4().hex}"
        code = """
            import socket, sys
            try:
                socket.socket(socket.AF_UNIX).connect(chr(0) + sys.argv[1])
                print("connected")
            except OSError as error:
                print(type(error).__name__)
        """
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"\0{name}")
            server.listen()
            assert make.printed(code, arguments=(name,)) == "ConnectionRefusedError"

    def test_keys_of_the_host_are_not_there(self, make: Runs) -> None:
        _keep_a_key(b"key-of-the-host")
        assert make.printed(KEYS) == "looked"

    def test_sockets_lead_to_no_other_machine(self, make: Runs) -> None:
        assert make.printed(FAMILIES) == "[]"

    def test_keys_do_not_outlive_a_run(self, make: Runs) -> None:
        assert make.printed(KEEP_A_KEY) == "{-1}"

    def test_refused_calls_have_no_other_way(self, make: Runs) -> None:
        assert make.printed(OTHER_WAYS) == "{-1}"

    def test_no_namespace_gives_new_rights(self, make: Runs) -> None:
        code = """
            import ctypes
            print(ctypes.CDLL(None).unshare(0x10000000))  # CLONE_NEWUSER
        """
        assert make.printed(code) == "-1"

    def test_root_and_inputs_are_read_only(self, make: Runs) -> None:
        targets = ("/new", "/usr/new", "/etc/new", "/opt/new", "/var/new", "/var/inputs/new")
        assert make.printed(WRITE, arguments=(*targets, "/var/inputs/solution.py")) == "tried"

    def test_outputs_and_temporary_files_can_be_written(self, make: Runs) -> None:
        code = """
            import tempfile
            open("/var/outputs/new", "w").close()
            tempfile.NamedTemporaryFile().close()
            open("in the current folder", "w").close()
            print("written")
        """
        assert make.printed(code) == "written"

    def test_temporary_files_are_private(self, make: Runs) -> None:
        name = f"/tmp/codetape-canary-{uuid.uuid4().hex}"  # noqa: S108
        make.printed("import sys; open(sys.argv[1], 'w').close()", arguments=(name,))
        left = Path(name).exists()
        Path(name).unlink(missing_ok=True)
        assert not left
        seen = make.printed("import os, sys; print(os.path.exists(sys.argv[1]))", arguments=(name,))
        assert seen == "False"

    def test_processes_of_the_host_are_not_there(self, make: Runs) -> None:
        mark = f"canary-{uuid.uuid4().hex}"
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", mark])
        code = """
            import glob, os, sys
            try:
                os.kill(int(sys.argv[1]), 0)
                print("signalled")
            except ProcessLookupError:
                pass
            for path in glob.glob("/proc/[0-9]*/cmdline"):
                text = open(path).read()
                if sys.argv[2] in text and sys.argv[1] not in text:
                    print(path)
            print("looked")
        """
        try:
            printed = make.printed(code, arguments=(str(sleeper.pid), mark[:-1]))
        finally:
            sleeper.kill()
            sleeper.wait()
        assert printed == "looked"

    def test_the_host_has_no_new_open_descriptors(self, make: Runs) -> None:
        make.printed("print()")
        before = len(os.listdir("/proc/self/fd"))
        make.printed("print()")
        assert len(os.listdir("/proc/self/fd")) <= before

    def test_descriptors_of_the_host_are_not_there(self, make: Runs) -> None:
        with tempfile.TemporaryFile() as canary:
            os.set_inheritable(canary.fileno(), True)
            code = "import os; print(*sorted(os.listdir('/proc/self/fd'))[:-1])"
            assert make.printed(code) == "0 1 2"


def _keep_a_key(payload: bytes) -> None:
    """Put a key on a session keyring that is ours; skips the test where the kernel has none."""
    library, number = ctypes.CDLL(None), {"x86_64": 250}.get(os.uname().machine, 219)
    joined = library.syscall(number, 1, None)
    add = {"x86_64": 248}.get(os.uname().machine, 217)
    if joined < 0 or library.syscall(add, b"user", b"canary", payload, len(payload), -3) < 0:
        pytest.skip("there are no keyrings here")
