"""The filter of system calls, tried in a process of its own: it cannot be taken off again."""

import subprocess
import sys

TRY = """
import ctypes, subprocess, sys, threading
from codetape.adapters.sandbox import kernel
libc = ctypes.CDLL(None, use_errno=True)
def new_user():
    result = libc.unshare(0x10000000), ctypes.get_errno()
    return result
if "confine" in sys.argv:
    kernel.confine()
thread = threading.Thread(target=print, args=("thread",))
thread.start()
thread.join()
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip())
print(*new_user())
print(subprocess.run([sys.executable, "-c",
    "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"],
    capture_output=True, text=True).stdout.strip())
"""


def tried(*arguments: str) -> list[str]:
    command = [sys.executable, "-c", TRY, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_no_user_namespace_is_made_by_a_confined_process_or_its_children() -> None:
    assert tried("confine") == ["thread", "child", "-1 1", "-1"]


def test_a_process_is_closed_to_others_of_its_user_and_opened_again() -> None:
    code = (
        "import ctypes\n"
        "from codetape.adapters.sandbox import kernel\n"
        "def asked(): return ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)  # PR_GET_DUMPABLE\n"
        "kernel.dumpable(0)\nprint(asked())\n"
        "kernel.dumpable(1)\nprint(asked())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]
