"""Packages are files to the host: nothing in a wheel runs there, and none keeps the report."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.process import ProcessSandbox
from codetape.engine.ports import Sandbox
from codetape.states.values import ImageRef, ImageSpec, RunOutcome, RunSpec, TextFile
from codetape.testing.sandbox_runs import QUICK

CANARY = "import os; open({canary!r}, 'a').close()"
# Takes the nonce if it is there to be read, and writes the report of a run that passed.
FORGES = """
import json, os, sys
line = os.read(0, 1000).decode().strip() if not os.isatty(0) else ""
words = sys.orig_argv
where = [int(w[3:]) for w in words if w.startswith("fd:")]
facts = [
    {"nonce": line, "seq": 1, "kind": "begin", "python": "3.11"},
    {"nonce": line[:16], "seq": 2, "kind": "collected", "ids": ["test_it"]},
    {"nonce": line[:16], "seq": 3, "kind": "start", "id": "test_it"},
    {"nonce": line[:16], "seq": 4, "kind": "result", "id": "test_it", "outcome": "passed"},
    {"nonce": line[:16], "seq": 5, "kind": "end"},
    {"nonce": line, "kind": "exit", "status": 0, "signal": None, "peak_memory": 1},
]
for descriptor in where or range(3, 10):
    try:
        os.write(descriptor, "".join(json.dumps(fact) + "\\n" for fact in facts).encode())
    except OSError:
        pass
if line:
    os._exit(0)
"""
DATA = "bad-1.0.data"
# Where a wheel can put code that the start of an environment's Python would run.
PLACES: dict[str, Callable[[str], dict[str, str]]] = {
    "a .pth file": lambda code: {"zz.pth": f"import sys; exec({code!r})\n"},
    "sitecustomize": lambda code: {"sitecustomize.py": code},
    "a module of uv's": lambda code: {"_virtualenv.py": code},
    "a standard module": lambda code: {"compileall.py": code, "argparse.py": code, "json.py": code},
    "the interpreter": lambda code: {
        f"{DATA}/data/bin/python": f"#!/usr/bin/python3\n{code}",
        f"{DATA}/data/bin/python3": f"#!/usr/bin/python3\n{code}",
    },
    "an interpreter of its own": lambda code: {
        f"{DATA}/data/bin/python3.11": f"#!/usr/bin/python3\n{code}",
    },
    "a path of its own": lambda code: {
        "zz.pth": "hidden\n",
        "hidden/encodings/__init__.py": code,
        "hidden/sitecustomize.py": code,
    },
    "the mark and the settings": lambda code: {
        f"{DATA}/data/codetape.json": '{"prefix": "/usr", "executable": "/bin/false"}',
        f"{DATA}/data/pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = true\n",
        "zz.pth": f"import sys; exec({code!r})\n",
    },
}


def wheel(folder: Path, files: dict[str, str]) -> None:
    """Write bad-1.0 with `files` into `folder`."""
    inside = "bad-1.0.dist-info"
    files = {
        **files,
        "bad.py": "",
        f"{inside}/METADATA": "Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n",
        f"{inside}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{inside}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{inside}/RECORD"])
    with zipfile.ZipFile(folder / "bad-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def bubblewrap(folder: Path) -> Sandbox:
    return BubblewrapSandbox(environments=folder)


def process(folder: Path) -> Sandbox:
    return ProcessSandbox(environments=folder)


SANDBOXES = [
    pytest.param(process, id="process"),
    pytest.param(bubblewrap, id="bubblewrap", marks=pytest.mark.bubblewrap),
]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user may enter; uv takes wheels from there as well."""
    with tempfile.TemporaryDirectory(prefix="codetape-wheels-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        monkeypatch.setenv("UV_FIND_LINKS", made)
        monkeypatch.setenv("UV_CACHE_DIR", str(folder / "cache"))
        yield folder


async def built(sandbox: Sandbox, *requirements: str) -> ImageRef:
    image = await sandbox.build(ImageSpec(base="python", requirements=requirements))
    assert isinstance(image, ImageRef), image
    return image


@pytest.mark.slow
@pytest.mark.parametrize("code_at", PLACES)
@pytest.mark.parametrize("make", SANDBOXES)
def test_a_build_runs_no_code_of_a_wheel(
    place: Path, make: Callable[[Path], Sandbox], code_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while it is installed and compiled, nor when the environment is found again."""
    monkeypatch.setenv("UV_NO_INDEX", "1")
    canary = place / "canary"
    wheel(place, PLACES[code_at](CANARY.format(canary=str(canary))))
    real = Path(sys.executable).resolve().read_bytes()

    async def build() -> None:
        sandbox = make(place / "environments")
        for _ in range(2):  # a wheel that the installer refuses does no harm either
            await sandbox.build(ImageSpec(base="python", requirements=("bad",)))
        await sandbox.close()

    asyncio.run(build())
    assert not canary.exists()
    assert Path(sys.executable).resolve().read_bytes() == real


@pytest.mark.slow
@pytest.mark.parametrize("code_at", ["a .pth file", "sitecustomize", "a standard module"])
@pytest.mark.parametrize("make", SANDBOXES)
def test_a_wheel_forges_no_report(
    place: Path, make: Callable[[Path], Sandbox], code_at: str
) -> None:
    """The process that keeps the report has started before any code of a package runs."""
    wheel(place, PLACES[code_at](FORGES))

    async def run() -> RunOutcome:
        sandbox = make(place / "environments")
        image = await built(sandbox, "bad", "pytest")
        files = (
            TextFile(name="solution.py", text=""),
            TextFile(name="test_solution.py", text="def test_it():\n    assert False\n"),
        )
        try:
            return await sandbox.run(
                RunSpec(purpose="tests", image=image, files=files, limits=QUICK)
            )
        finally:
            await sandbox.close()

    report = asyncio.run(run()).report
    assert report is None or [result.outcome for result in report.results] != ["passed"]
