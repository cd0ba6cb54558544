"""What ordinary code expects of the machine that it runs on, in bubblewrap too."""

from __future__ import annotations

import asyncio

import pytest

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.states.values import ImageRef, ImageSpec, RunOutcome, RunSpec, TextFile

pytestmark = pytest.mark.bubblewrap

ASKED = {
    "localhost": "assert socket.gethostbyname('localhost') == '127.0.0.1'",
    "its own name": "assert socket.gethostbyname(socket.gethostname()).startswith('127.')",
    "addresses": "assert socket.getaddrinfo('localhost', 80)",
    "a full name": "assert socket.getfqdn()",
    "a server on localhost": (
        "server = socket.create_server(('localhost', 0)); "
        "assert socket.create_connection(server.getsockname())"
    ),
    "its user": "assert pwd.getpwuid(os.getuid()).pw_name == getpass.getuser()",
    "its home": "assert pathlib.Path.home()",
    "the owner of a file": "assert pathlib.Path('/var/outputs').owner()",
    "the group of a file": "assert pathlib.Path('/var/outputs').group()",
    "its group": "assert grp.getgrgid(os.getgid()).gr_name",
    "its groups": "assert [grp.getgrgid(each) for each in os.getgroups()] or True",
    "processors": "assert os.cpu_count() and len(os.sched_getaffinity(0))",
    "shared memory": "assert multiprocessing.shared_memory.SharedMemory(create=True, size=8)",
    "a temporary file": "assert tempfile.NamedTemporaryFile().name",
    "a time zone": "assert time.tzname",
    "a name that is none": (
        "import contextlib\n"
        "try:\n    socket.gethostbyname('no-such-host.invalid')\n"
        "except socket.gaierror:\n    pass\nelse:\n    raise AssertionError"
    ),
}
IMPORTS = (
    "import getpass, grp, multiprocessing.shared_memory, os, pathlib, pwd, socket, tempfile, time\n"
)


def outcome(code: str) -> RunOutcome:
    async def run() -> RunOutcome:
        sandbox = BubblewrapSandbox()
        try:
            image = await sandbox.build(ImageSpec(base="", requirements=("pytest",)))
            assert isinstance(image, ImageRef), image
            files = (TextFile(name="solution.py", text=IMPORTS + code),)
            return await sandbox.run(RunSpec(purpose="script", image=image, files=files))
        finally:
            await sandbox.close()

    return asyncio.run(run())


@pytest.mark.parametrize("asked", ASKED)
def test_h1_names_of_user_group_and_host_are_found(asked: str) -> None:
    ended = outcome(ASKED[asked])
    assert ended.exit_status == 0, ended.stderr
