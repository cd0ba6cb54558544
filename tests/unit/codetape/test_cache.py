"""Equal runs are taken from the cache if the caller wants it, and only equal ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codetape import File, RunFailed
from codetape.adapters.sandbox.fake import FakeSandbox, ended, passed
from codetape.cache import RunCache, key_of
from codetape.states.values import HostFile, ImageRef, RunSpec
from tests.unit.codetape.test_agent import agent
from tests.unit.codetape.test_running import wrote


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def run_twice(tmp_path: Path, first: Any, second: Any, **options: Any) -> tuple[Any, Any, int]:
    sandbox = FakeSandbox(runs=[passed(), first, second])
    made = agent(sandbox=sandbox, **({"cache": "auto"} | options)).generate(
        "Add.", inputs={"n": int}, outputs={"total": int, "report": File}
    )
    one, two = made.run(n=1), made.run(n=1)
    return one, two, len(sandbox.runs) - 1


def outcomes(tmp_path: Path) -> tuple[Any, Any]:
    return (
        wrote(tmp_path / "a", {"total": "1", "report": "first"}),
        wrote(tmp_path / "b", {"total": "2", "report": "second"}),
    )


def test_an_equal_run_is_not_made_again(tmp_path: Path) -> None:
    one, two, runs = run_twice(tmp_path, *outcomes(tmp_path))
    assert (one.total, two.total, runs) == (1, 1, 1)
    assert two.report.read_text() == "first"
    assert one.report.path != two.report.path


@pytest.mark.parametrize("cache", ["override", "disable"])
def test_the_caller_may_not_want_it(tmp_path: Path, cache: str) -> None:
    one, two, runs = run_twice(tmp_path, *outcomes(tmp_path), cache=cache)
    assert (one.total, two.total, runs) == (1, 2, 2)


def test_a_run_with_the_network_is_never_kept(tmp_path: Path) -> None:
    assert run_twice(tmp_path, *outcomes(tmp_path), network_access=True)[2] == 2


def test_a_failed_run_is_never_kept(tmp_path: Path) -> None:
    sandbox = FakeSandbox(runs=[passed(), ended(1), ended(0)])
    made = agent(sandbox=sandbox, cache="auto").generate("Add.")
    with pytest.raises(RunFailed):
        made.run()
    assert made.run() is None


def test_the_content_of_files_counts_and_not_their_place(tmp_path: Path) -> None:
    image = ImageRef(ref="i", spec_key="k")
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    for file, text in ((one, "1"), (same, "1"), (other, "2")):
        file.write_text(text)
    keys = [
        key_of(
            RunSpec(
                purpose="script",
                image=image,
                files=(),
                host_files=(HostFile(name="data", path=str(file)),),
            )
        )
        for file in (one, same, other)
    ]
    assert keys[0] == keys[1] != keys[2]


def test_an_entry_that_was_cut_short_is_none(tmp_path: Path) -> None:
    spec = RunSpec(purpose="script", image=ImageRef(ref="i", spec_key="k"), files=())
    (tmp_path / "c" / key_of(spec)).mkdir(parents=True)
    assert RunCache(tmp_path / "c").find(spec) is None
