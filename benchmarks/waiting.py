"""What a person waits for: the first word of `codetape generate`, and its first request."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import create_server
from statistics import median

from benchmarks.figures import Figure, at_most
from benchmarks.timing import WALL, seconds

LIMIT = 0.7
"""Seconds until the first event is on screen."""

MOST = 1.5
"""The first request for a model comes after at most so many times what importing LiteLLM takes."""

_IMPORT = (sys.executable, "-c", "import litellm")
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds from the start of the process."""

    event: float
    request: float


def figures(rounds: int) -> Iterator[Figure]:
    """Generate `rounds` times, in turns with a Python that only imports LiteLLM."""
    waits, imports = [], []
    for _ in range(rounds):
        imports.append(seconds(partial(_run, _IMPORT)))
        waits.append(_wait())
    imported = median(imports)
    request = median(wait.request for wait in waits)
    yield at_most("generate, first event", median(w.event for w in waits), LIMIT, "{:.3f} s")
    against, ratio = f"{imported:.2f} s import", request / imported
    yield Figure("- first request for a model", f"{request:.2f} s", against, ratio, ratio <= MOST)


def _wait() -> Wait:
    """Start a session against a port of this process, and stop it when it asks there."""
    with tempfile.TemporaryDirectory() as folder, create_server(("127.0.0.1", 0)) as server:
        command = _command(server.getsockname()[1], Path(folder) / "codetape.db")
        start = WALL()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=_environment()
        ) as run:
            assert run.stdout is not None
            first = run.stdout.readline()
            event = WALL() - start
            assert "session_opened" in first, first
            server.accept()[0].close()
            request = WALL() - start
            run.kill()
    return Wait(event, request)


def _command(port: int, store: Path) -> tuple[str, ...]:
    model = ("--model", "openai/small", "--api-base", f"http://127.0.0.1:{port}")
    where = ("--sandbox", "process", "--store", str(store))
    return (sys.executable, "-m", "codetape", "generate", "Add two numbers", *model, *where)


def _environment() -> dict[str, str]:
    return {**os.environ, "OPENAI_API_KEY": "sk-of-a-benchmark", "PYTHONUNBUFFERED": "1"}


def _run(command: tuple[str, ...]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **_QUIET})
