"""In podman, too, no package reaches the system of the image or the process that keeps the report."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from codetape.adapters.sandbox.podman import PodmanSandbox
from codetape.states.values import BuildFailure, ImageRef, ImageSpec, RunOutcome
from codetape.testing.sandbox_runs import run_spec

pytestmark = [pytest.mark.podman, pytest.mark.slow]

# Writes a whole report where the parent of the runner would start with it.
FORGER = """
import json, os, sys
if "--nonce" in sys.argv:
    nonce = os.read(0, 1000).decode().strip()
    half, test = nonce[:len(nonce) // 2], "test_it"
    facts = {"phase": "call", "problem": None, "captured": ""}
    for number, (key, line) in enumerate([
        (nonce, {"kind": "begin", "python": "3.11"}),
        (half, {"kind": "collected", "ids": [test]}),
        (half, {"kind": "start", "id": test}),
        (half, {"kind": "result", "id": test, **facts, "outcome": "passed"}),
        (half, {"kind": "witness", "id": "the witness", **facts, "outcome": "failed"}),
        (half, {"kind": "end"}),
        (nonce, {"kind": "exit", "status": 0, "signal": None, "peak_memory": 1}),
    ], 1):
        os.write(3, json.dumps({"nonce": key, "seq": number, **line}).encode() + b"\\n")
    os._exit(0)
"""
FAILS = "def test_it():\n    assert False\n"
# Writes wherever it can, and builds nothing.
BACKEND = """
import glob, os
for place in ["/usr/bin", "/usr/lib", "/etc", "/opt", "/root", *glob.glob("/usr/lib/python3*")]:
    try:
        open(place + "/canary", "w").close()
        print("WROTE", place)
    except OSError:
        pass
raise SystemExit("TRIED as %d" % os.getuid())
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def put(name: str, text: str) -> str:
    """Return a command that puts a file among the packages of the environment."""
    encoded = base64.b64encode(text.encode()).decode()
    return f"echo {encoded} | base64 -d > $(echo /opt/venv/lib/python3*/site-packages)/{name}"


@pytest.mark.parametrize("carrier", ["bad.pth", "sitecustomize.py"])
def test_a_package_forges_no_report_in_a_container(
    carrier: str, base_image: str, tmp_path: Path
) -> None:
    text = "import forger\n"
    spec = ImageSpec(
        base=base_image,
        requirements=("pytest",),
        commands=(put("forger.py", FORGER), put(carrier, text)),
    )

    async def once() -> RunOutcome:
        sandbox = PodmanSandbox(base=base_image, outputs=tmp_path)
        try:
            image = await sandbox.build(spec)
            assert isinstance(image, ImageRef), image
            return await sandbox.run(run_spec(image, purpose="tests", solution="", tests=FAILS))
        finally:
            await sandbox.close()

    report = asyncio.run(once()).report
    assert report is not None
    assert [result.outcome for result in report.results] == ["failed"]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index with the source of one package, whose build runs BACKEND."""
    page = tmp_path / "simple" / "bad"
    page.mkdir(parents=True)
    (page / "index.html").write_text('<a href="bad-1.0.tar.gz">bad-1.0.tar.gz</a>')
    facts = "Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n"
    with tarfile.open(page / "bad-1.0.tar.gz", "w:gz") as archive:
        for name, text in (
            ("PKG-INFO", facts),
            ("backend.py", BACKEND),
            ("pyproject.toml", PROJECT),
        ):
            member = tarfile.TarInfo(f"bad-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


def test_a_package_that_is_built_writes_nothing_of_the_system(
    index: str, base_image: str, tmp_path: Path
) -> None:
    host = {**os.environ, "UV_EXTRA_INDEX_URL": index, "CODETAPE_BUILD_NETWORK": "host"}

    async def once() -> ImageRef | BuildFailure:
        sandbox = PodmanSandbox(base=base_image, outputs=tmp_path, environment=host)
        try:
            return await sandbox.build(ImageSpec(base=base_image, requirements=("bad==1.0",)))
        finally:
            await sandbox.close()

    failure = asyncio.run(once())
    assert isinstance(failure, BuildFailure)
    assert "TRIED as" in failure.log, failure
    assert "TRIED as 0" not in failure.log
    assert "WROTE" not in failure.log
