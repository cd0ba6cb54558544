"""Faults of folders that others made: a cloned repository, in which a command of ours is started."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from codetape.adapters.sandbox.index import UvIndex


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """The address of a server of the folder's author, and what it was asked for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple", paths
    server.shutdown()
    server.server_close()


CONFIGURATIONS = {
    "uv.toml": 'index-url = "{}"\n',
    "pyproject.toml": '[tool.uv]\nindex-url = "{}"\n',
    "../uv.toml": 'find-links = ["{}"]\nno-index = true\n',
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_folder_names_no_index_to_the_gate(
    name: str, asked: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate asks where the installer installs from: the folder that we stand in has no say."""
    address, paths = asked
    here, user = tmp_path / "clone", tmp_path / "config" / "uv"
    here.mkdir()
    user.mkdir(parents=True)
    (user / "uv.toml").write_text(f'index-url = "{address.replace("simple", "user")}"\n')
    (here / name).write_text(CONFIGURATIONS[name].format(address))
    for variable in [v for v in os.environ if v.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(user.parent))
    monkeypatch.chdir(here)
    asyncio.run(UvIndex().look("left-pad"))
    assert {path.split("/")[1] for path in paths} == {"user"}


WORKFLOW = "from codetape.states.workflow import AUTOCODER as RULE\n"


def replayed(here: Path, name: str, path: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from codetape.cli import main; import sys; sys.exit(main())"]
    return subprocess.run(
        [*program, "sessions"],
        cwd=here,
        env={**os.environ, "CODETAPE_WORKFLOWS": name, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("module", ["rich", "sqlite_utils", "installed_rules"])
def test_a_folder_stands_for_no_installed_module(module: str, tmp_path: Path) -> None:
    """Where the named workflow is installed, the folder that we stand in is on no search path."""
    here, installed = tmp_path / "clone", tmp_path / "installed"
    here.mkdir()
    installed.mkdir()
    (installed / "installed_rules.py").write_text(f"{WORKFLOW}import rich, sqlite_utils\n")
    (here / f"{module}.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    replayed(here, "installed_rules:RULE", str(installed))
    assert not (here / "ran").exists()


def test_a_workflow_of_the_folder_is_still_found(tmp_path: Path) -> None:
    (tmp_path / "own_rules.py").write_text(WORKFLOW)
    assert "there is no store" in replayed(tmp_path, "own_rules:RULE", "").stderr
