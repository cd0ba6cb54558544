"""What the index knows of a name, asked of real uv against a server that speaks its protocol."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from codetape.adapters.sandbox import interpreters
from codetape.adapters.sandbox.index import Known, UvIndex
from codetape.adapters.sandbox.interpreters import find_program

OLD, FRESH = timedelta(days=900), timedelta(days=3)


def page(name: str, age: timedelta | None) -> bytes:
    file = {"filename": f"{name}-1.0-py3-none-any.whl", "url": f"/{name}.whl", "hashes": {}}
    file["core-metadata"] = True  # type: ignore[assignment]
    if age:
        file["upload-time"] = (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": [file]}).encode()


class Simple(BaseHTTPRequestHandler):
    """A package index: /simple/<name>/ and the metadata of each wheel."""

    ages: dict[str, timedelta | None] = {"old": OLD, "fresh": FRESH, "dateless": None}  # noqa: RUF012

    def do_GET(self) -> None:
        name = self.path.strip("/").split("/")[-1]
        if name.endswith(".whl.metadata"):
            name = name.partition(".")[0]
            body = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
            self.answer(body, "text/plain")
        elif name in self.ages:
            self.answer(page(name, self.ages[name]), "application/vnd.pypi.simple.v1+json")
        else:
            self.send_error(404)

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Simple)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/simple"
    for name in ("UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_NO_INDEX", "UV_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path_factory.mktemp("uv")))
    yield address
    server.shutdown()
    server.server_close()


def look(name: str) -> Known:
    return asyncio.run(UvIndex().look(name))


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("old", Known(exists=True, young=False)),
        ("fresh", Known(exists=True, young=True)),
        ("nobody-has-this", Known(exists=False)),
    ],
)
def test_an_index_says_whether_it_has_a_name_and_since_when(name: str, known: Known) -> None:
    assert look(name) == known


@pytest.mark.usefixtures("index")
def test_an_index_without_dates_does_not_say_how_young_a_name_is() -> None:
    assert look("dateless") in (Known(exists=True), Known(exists=True, young=True))


def test_of_an_index_that_is_not_there_nothing_is_known(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.replace("127.0.0.1", "127.0.0.2"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    assert look("old") == Known()


@pytest.mark.parametrize("name", ["--index-url=x", "a b", "a\nb", "../x", "-r /etc/passwd"])
def test_what_is_no_name_is_not_looked_for(name: str) -> None:
    assert look(name) == Known()


@pytest.mark.parametrize("above", [False, True])
def test_the_folder_that_we_stand_in_is_not_obeyed(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: bool
) -> None:
    """Files that lie there may be of anybody: no Python of it is started, no setting is read."""
    assert index
    started = tmp_path / "started"
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ntouch {started}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text(f"home = {tmp_path}\n")
    (tmp_path / "uv").symlink_to(python)
    nowhere = '"http://127.0.0.1:1/simple"'
    (tmp_path / "uv.toml").write_text(f"no-index = true\nindex-url = {nowhere}\n")
    (tmp_path / "pyproject.toml").write_text(f"[tool.uv]\nindex-url = {nowhere}\n")
    here = tmp_path / "below" if above else tmp_path
    here.mkdir(exist_ok=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / ".venv"))
    assert look("old") == Known(exists=True, young=False)
    assert not started.exists()


def test_a_program_of_the_folder_that_we_stand_in_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path may name the folder that one stands in, whatever that is."""
    for name in ("uv", "python3", "python3.99"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    assert Path(find_program("uv") or "/").is_absolute()
    assert find_program("python3.99") is None
    assert not [name for name in interpreters._candidates("3.99") if not name.startswith("/")]
