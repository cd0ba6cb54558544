"""The first word of a session comes before LiteLLM, which takes seconds to import.

Read as modules and not as seconds: a machine under load is slow, and imports the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer

KEYS = {"OPENAI_API_KEY": "sk-of-a-test"}

SCRIPT = """
import sys
from codetape import AutoCoderAgent, ToolMaker
from codetape.adapters.sandbox.fake import FakeSandbox

SLOW = {"litellm", "openai", "pandas", "numpy", "aiohttp"}
asked = {"model": sys.argv[2], "api_base": sys.argv[3], "store": sys.argv[4], "sandbox": FakeSandbox()}
first = []

def seen(*_):
    if not first:
        first.append(sorted(SLOW & set(sys.modules)))

if sys.argv[1] == "generate":
    AutoCoderAgent(on_event=seen, **asked).generate("Add two numbers.")
elif sys.argv[1] == "tool":
    ToolMaker(on_event=seen, project="sums", **asked).make("Add two numbers.")
print(first, "litellm" in sys.modules)
"""


def first_modules(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", SCRIPT, *arguments, str(folder / "codetape.db")]
    environment = {**os.environ, **KEYS}
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.parametrize("what", ["generate", "tool"])
@pytest.mark.parametrize("model", ["openai/small", "hosted_vllm/any", "gpt-4.1"])
def test_the_first_event_is_shown_before_litellm_is_imported(
    what: str, model: str, tmp_path: Path
) -> None:
    """sqlite-utils brings pandas into the process, where it is installed: an embedder may want it."""
    with ChatServer([Reply({"description": "x", "approach": "y"})] * 9) as server:
        told = first_modules(tmp_path, what, model, server.base)
    assert told in ("[[]] True", "[['numpy', 'pandas']] True")


@pytest.mark.parametrize("command", ["generate", "tool"])
def test_the_command_line_brings_neither_litellm_nor_pandas(command: str, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom codetape import engines\nfrom codetape.cli import main\n"
        "shown = engines.Run._on_event\n"
        "def on_event(self, *given):\n"
        "    print(sorted({'litellm', 'pandas', 'numpy'} & set(sys.modules)), file=sys.stderr)\n"
        "    raise SystemExit(7)\n"
        "engines.Run._on_event = on_event\n"
        "main(sys.argv[1:])\n"
    )
    given = ("Add two numbers", "--model", "openai/small", "--api-base", "http://127.0.0.1:9")
    options = ("--sandbox", "process", "--store", str(tmp_path / "codetape.db"))
    project = ("--project", "sums") if command == "tool" else ()
    run = subprocess.run(
        [sys.executable, "-c", code, command, *given, *options, *project],
        capture_output=True, text=True, check=False, env={**os.environ, **KEYS},
    )  # fmt: skip
    assert (run.returncode, run.stderr.strip()) == (7, "[]")


def test_a_wrong_provider_is_still_told_before_anything_happens(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        "generate",
        "no-such/gpt",
        "http://localhost:9",
        str(tmp_path / "s.db"),
    ]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **KEYS}
    )
    assert "model 'no-such/gpt' names no provider" in run.stderr
    assert not (tmp_path / "s.db").exists()
