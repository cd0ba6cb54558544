"""A saved folder has all that is needed, and says how."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codetape import File, ImageConfig
from codetape.adapters.sandbox.fake import FakeSandbox, broke
from tests.support.sessions import HAPPY, RIGHT
from tests.unit.codetape.test_agent import agent


def test_a_saved_folder_tests_itself(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("a\n1\n")
    made = agent().generate(
        "Add.\nTwo numbers.", samples={"data": data}, inputs={"n": int}, outputs={"sum": File}
    )
    written = made.save(tmp_path / "out")
    assert {file.name for file in written} == {
        *("solution.py", "test_solution.py", "requirements.txt", "Containerfile", "README.md")
    }
    assert (tmp_path / "out" / "requirements.txt").read_text() == "pytest\n"
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "> Add.\n> Two numbers." in readme
    assert "--data /var/inputs/data.csv --n <int>" in readme
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "test_solution.py"]
    subprocess.run(command, cwd=tmp_path / "out", check=True, capture_output=True)


def test_the_containerfile_holds_what_the_image_held(tmp_path: Path) -> None:
    config = ImageConfig(base_image="python:3.12", system_packages=("jq",), commands=("true",))
    script = {**HAPPY, "code": [{**RIGHT, "packages": ["pandas>=2"]}]}
    made = agent(script, image_config=config).generate("Add.")
    made.save(tmp_path)
    lines = (tmp_path / "Containerfile").read_text().splitlines()
    assert lines[0] == "FROM python:3.12"
    assert any("install -y --no-install-recommends jq " in line for line in lines)
    assert "RUN true" in lines
    assert (tmp_path / "requirements.txt").read_text() == "pandas>=2\npytest\n"


@pytest.mark.parametrize(
    ("config", "base"),
    [
        (ImageConfig(), "docker.io/library/python:3.11-slim"),  # what the sandbox had
        (ImageConfig(python="3.13"), "docker.io/library/python:3.13-slim"),
        (ImageConfig(base_image="localhost/mine:1"), "docker.io/library/python:3.11-slim"),
    ],
)
def test_the_containerfile_has_the_python_of_the_tests(
    config: ImageConfig, base: str, tmp_path: Path
) -> None:
    agent(image_config=config).generate("Add.").save(tmp_path)
    assert (tmp_path / "Containerfile").read_text().splitlines()[0] == f"FROM {base}"


def test_the_containerfile_copies_only_files_that_are_there(tmp_path: Path) -> None:
    agent(skip_tests=True).generate("Add.").save(tmp_path)
    assert not (tmp_path / "requirements.txt").exists()
    assert "requirements.txt" not in (tmp_path / "Containerfile").read_text()


def test_there_is_nothing_to_save_without_code(tmp_path: Path) -> None:
    made = agent(sandbox=FakeSandbox(builds=[broke("none", missing=True)])).generate("Add.")
    with pytest.raises(ValueError, match="no code to save"):
        made.save(tmp_path)


def test_the_readme_runs_it_as_it_was_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_LOGIN", "canary-4711")
    agent().generate("Add.").save(tmp_path / "alone")
    assert "podman run --rm --network none \\\n" in (tmp_path / "alone" / "README.md").read_text()
    options: dict[str, Any] = {
        "network_access": True,
        "env_vars": {"LANGUAGE": "de"},
        "secrets": ["SERVICE_LOGIN"],
    }
    agent(**options).generate("Add.").save(tmp_path / "open")
    readme = (tmp_path / "open" / "README.md").read_text()
    assert "podman run --rm -e LANGUAGE -e SERVICE_LOGIN \\\n" in readme
    assert "It reads the variables LANGUAGE, SERVICE_LOGIN; set them first." in readme
    assert "canary" not in readme


def test_saving_goes_through_no_link(tmp_path: Path) -> None:
    """A link of a file's name is replaced; the file behind it stays."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "README.md").symlink_to(tmp_path / "mine")
    agent().generate("Add.").save(tmp_path / "out")
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "out" / "README.md").is_symlink()


def test_a_readme_holds_no_markup_of_others(tmp_path: Path) -> None:
    """The request and the name may come from a tape."""
    evil = "Add.\n<script>x</script>\n![a](http://x)\x1b[31m\u202e"
    made = agent(name="a<img src=x>").generate(evil)
    made.save(tmp_path)
    lines = (tmp_path / "README.md").read_text().split("\n")
    assert lines[0] == "# a&lt;img src=x>"
    assert ">     <script>x</script>" in lines
    assert not {"\x1b", "\u202e"} & set("".join(lines))
