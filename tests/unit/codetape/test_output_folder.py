"""A run replaces nothing in the folder for its outputs unless one says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codetape import Dir, File
from codetape.adapters.sandbox.fake import FakeSandbox, passed
from codetape.result import Result
from codetape.states.values import RunOutcome, RunSpec
from tests.unit.codetape.test_running import result, wrote

OUTPUTS: dict[str, Any] = {"report.csv": File, "plots": Dir}


def made(tmp_path: Path, **call: Any) -> Result:
    """A result whose run leaves a file and a folder."""
    run = wrote(tmp_path / "o", {"report.csv": "new"}, {"plots": {"one.txt": "1"}})
    return result(FakeSandbox(runs=[passed(), run]), outputs=OUTPUTS, **call)


def kept(folder: Path) -> set[str]:
    """Return what lies in a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_folder_named_like_an_output_stays(tmp_path: Path) -> None:
    """It is named before the run, and nothing runs."""
    target = tmp_path / "kept"
    (target / "plots").mkdir(parents=True)
    (target / "plots" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"the folder .*plots is there already"):
        made(tmp_path).run(output_dir=target)
    assert kept(target) == {"plots", "plots/mine.txt"}
    assert not (tmp_path / "o").exists()


def test_a_file_named_like_an_output_stays(tmp_path: Path) -> None:
    """A README of the user's is not an output of ours."""
    (tmp_path / "report.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"the file .*report\.csv is there already"):
        made(tmp_path).run(output_dir=tmp_path)
    assert (tmp_path / "report.csv").read_text() == "mine"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_named_like_an_output_stays(tmp_path: Path, *, there: bool) -> None:
    """A dangling link is something of the user's, too."""
    target, elsewhere = tmp_path / "kept", tmp_path / "elsewhere"
    target.mkdir()
    if there:
        elsewhere.mkdir()
    (target / "plots").symlink_to(elsewhere)
    with pytest.raises(ValueError, match="is there already"):
        made(tmp_path).run(output_dir=target)
    assert (target / "plots").is_symlink()


def test_overwrite_replaces_what_lies_there(tmp_path: Path) -> None:
    """Files and folders of the outputs' names go, others stay, and nothing is left over."""
    target = tmp_path / "kept"
    (target / "plots").mkdir(parents=True)
    (target / "plots" / "old.txt").write_text("old")
    (target / "report.csv").write_text("old")
    (target / "other").write_text("mine")
    made(tmp_path).run(output_dir=target, overwrite=True)
    assert kept(target) == {"other", "plots", "plots/one.txt", "report.csv"}
    assert (target / "report.csv").read_text() == "new"


def test_overwrite_goes_through_no_link(tmp_path: Path) -> None:
    """The link is replaced; the folder and the file behind it stay as they were."""
    target, elsewhere = tmp_path / "kept", tmp_path / "elsewhere"
    target.mkdir()
    elsewhere.mkdir()
    (elsewhere / "mine.txt").write_text("mine")
    (target / "plots").symlink_to(elsewhere)
    (target / "report.csv").symlink_to(elsewhere / "mine.txt")
    made(tmp_path).run(output_dir=target, overwrite=True)
    assert kept(elsewhere) == {"mine.txt"}
    assert (elsewhere / "mine.txt").read_text() == "mine"
    assert not (target / "plots").is_symlink()
    assert not (target / "report.csv").is_symlink()


def test_overwrite_spares_the_input_of_the_run(tmp_path: Path) -> None:
    """An output may be called like the file that the run reads."""
    data = tmp_path / "report.csv"
    data.write_text("a\n1\n")
    session = made(tmp_path, samples={"data": data})
    with pytest.raises(ValueError, match="is needed"):
        session.run(output_dir=tmp_path, overwrite=True, data=data)
    assert data.read_text() == "a\n1\n"


def test_overwrite_spares_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in which one stands is never an old output."""
    here = tmp_path / "plots" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    with pytest.raises(ValueError, match="is needed"):
        made(tmp_path).run(output_dir=tmp_path, overwrite=True)
    assert here.is_dir()


def test_what_appears_during_the_run_stays(tmp_path: Path) -> None:
    """The outputs stay beside it, and the message says where."""
    target = tmp_path / "kept"
    run = wrote(tmp_path / "o", {"report.csv": "new"}, {"plots": {}})

    def late(spec: RunSpec) -> RunOutcome:
        (target / "report.csv").write_text("mine")
        return run(spec)

    with pytest.raises(ValueError, match=r"outputs of the run are in (.*)$") as caught:
        result(FakeSandbox(runs=[passed(), late]), outputs=OUTPUTS).run(output_dir=target)
    assert (target / "report.csv").read_text() == "mine"
    assert (Path(str(caught.value).rpartition(" in ")[2]) / "report.csv").read_text() == "new"


def test_a_run_that_fails_leaves_no_folder_of_ours(tmp_path: Path) -> None:
    """What was made to gather outputs goes when there are none."""

    def broken(_: RunSpec) -> RunOutcome:
        raise RuntimeError("broken")

    target = tmp_path / "kept"
    with pytest.raises(RuntimeError, match="broken"):
        result(FakeSandbox(runs=[passed(), broken]), outputs=OUTPUTS).run(output_dir=target)
    assert kept(target) == set()


@pytest.mark.parametrize("name", ["..", "../mine", "/tmp/mine", "a/b", ""])
def test_an_output_leaves_its_folder_by_no_name(tmp_path: Path, name: str) -> None:
    """Names may come from a tape."""
    from codetape.output_folder import opened

    with (
        pytest.raises(ValueError, match="no name of a file"),
        opened(tmp_path / "kept", [name], [], overwrite=True),
    ):
        pass
