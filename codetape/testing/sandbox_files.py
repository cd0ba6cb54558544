"""The part of the sandbox contract that is about files, images and the life of a sandbox."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from codetape.engine.ports import Sandbox, SandboxBroken
from codetape.states.values import (
    BuildFailure,
    HostFile,
    ImageRef,
    ImageSpec,
    Limits,
    RunOutcome,
    TextFile,
)
from codetape.testing.sandbox_runs import SOLUTION, Runs, SandboxCase, run_spec

NO_NAMES = (
    "pandas; touch /tmp/owned",
    "--index-url=file:///tmp",
    "a\nRUN touch /owned",
    "-r /etc/passwd",
    "x @ file:///tmp/x",
    "$(id)",
    "a b",
    "",
)
# Options of a sandbox may be handed over with a NUL between them: here one more would come in.
NO_WORDS: dict[str, dict[str, Any]] = {
    "NUL in an argument": {"arguments": ("--x", "a\0b")},
    "no text": {"arguments": ("--x", "\ud800")},
    "too long": {"arguments": ("--x", "x" * 200_000)},
    "too many": {"arguments": ("x" * 1000,) * 3000},
    "NUL in a variable": {"environment": {"A": "x\0--bind\0/\0/tmp"}},
    "no variable": {"environment": {"A=B": "x"}},
}
ODD_NAMES = """
import os
os.chdir("/var/outputs")
open("good", "w").close()
for folder in ("links", "bytes"):
    os.mkdir(folder)
os.symlink("/etc/passwd", b"links/\\xff\\xfe")
os.symlink("x", "links/two\\nlines")
os.mkfifo(b"links/\\x80pipe")
open(b"bytes/\\xe4", "w").close()
open("bytes/two\\nlines", "w").close()
os.mkdir("deep")
os.chdir("deep")
for _ in range(38):  # deeper than is collected; a path that is too long counts as a full disk
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
open("end", "w").close()
"""
HOSTILE_OUTPUTS = """
import os, socket, stat
os.chdir("/var/outputs")
try:
    os.mknod("device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
except OSError:
    os.mkfifo("device")  # only root can make devices
os.symlink("/etc/passwd", "link")
os.symlink("/etc", "folder-link")
os.mkfifo("pipe")
os.makedirs("folder/inner")
open("folder/inner/good", "w").write("good")
os.symlink("/etc/passwd", "folder/bad-link")
os.mkfifo("folder/bad-pipe")
socket.socket(socket.AF_UNIX).bind("socket")
"""


class FileContract(SandboxCase):
    """What goes in and what comes out."""

    def test_inputs_are_there_under_their_names(self, make: Runs, tmp_path: Path) -> None:
        source = tmp_path / "some file"
        source.write_bytes(b"\x00\xff")
        folder = tmp_path / "some folder"
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "é.txt").write_text("é")
        code = r"""
            import sys
            assert open("/var/inputs/with space é.txt", "rb").read() == b"text\r\n"
            assert open("/var/inputs/data.bin", "rb").read() == b"\x00\xff"
            assert open("/var/inputs/a/folder/inner/é.txt").read() == "é"
            assert sys.argv[1:] == ["--data", "/var/inputs/data.bin", "--text", "a b; $x '\"", ""]
            print("all there")
        """
        printed = make.printed(
            code,
            files=(TextFile(name="with space é.txt", text="text\r\n"),),
            host_files=(
                HostFile(name="data.bin", path=str(source)),
                HostFile(name="a/folder", path=str(folder)),
            ),
            arguments=("--data", "/var/inputs/data.bin", "--text", "a b; $x '\"", ""),
        )
        assert printed == "all there"

    @pytest.mark.slow
    def test_large_inputs_with_odd_names_arrive(self, make: Runs, tmp_path: Path) -> None:
        large = tmp_path / "large"
        with large.open("wb") as file:
            file.truncate(200 << 20)
        large.chmod(0o600)
        name = "große Datei 大.bin"
        code = f"""
            import os
            print(os.path.getsize("/var/inputs/{name}"))
            with open("/var/inputs/{name}", "rb") as file:
                print(sum(len(block) for block in iter(lambda: file.read(1 << 20), b"")))
        """
        printed = make.printed(code, host_files=(HostFile(name=name, path=str(large)),))
        assert printed.split() == [str(200 << 20)] * 2

    def test_outputs_are_collected(self, make: Runs) -> None:
        code = """
            import os
            os.makedirs("/var/outputs/a folder/inner")
            open("/var/outputs/a folder/inner/é", "w").write("1")
            open("/var/outputs/report ü.csv", "w").write("x,y\\n")
            open("/var/outputs/large", "wb").write(bytes(100_000))
            open("/var/outputs/not asked for", "w").close()
        """

        def check(outcome: RunOutcome) -> None:
            found = {file.name: file for file in outcome.outputs}
            assert {*found} == {"report ü.csv", "a folder", "large"}
            assert (found["report ü.csv"].text, found["report ü.csv"].size) == ("x,y\n", 4)
            assert (found["large"].text, found["large"].size) == (None, 100_000)
            assert Path(found["large"].path).read_bytes() == bytes(100_000)
            assert found["a folder"].is_folder
            assert (Path(found["a folder"].path) / "inner" / "é").read_text() == "1"

        make.script(code, check=check, outputs=("report ü.csv", "a folder", "large", "missing"))

    def test_outputs_of_any_name_are_collected_or_refused(self, make: Runs) -> None:
        names = ("*", "a?b", "[x]", "back\\slash", "-rf", "a#b%41&c", "new\nline", " x ", "n" * 255)
        code = f"for name in {names!r}: open('/var/outputs/' + name, 'w').close()"
        outcome = make.script(code, outputs=names)
        assert outcome.exit_status == 0
        refused = tuple(text.rpartition(":")[0] for text in outcome.refused_outputs)
        assert sorted([*(file.name for file in outcome.outputs), *refused]) == sorted(names)

    def test_d13_links_devices_and_ways_out_are_refused(self, make: Runs) -> None:
        names = (
            "link",
            "folder-link/passwd",
            "pipe",
            "device",
            "socket",
            "../inputs/x",
            "/etc/passwd",
        )

        def check(outcome: RunOutcome) -> None:
            assert outcome.exit_status == 0, outcome
            assert [file.name for file in outcome.outputs] == ["folder"]
            inner = Path(outcome.outputs[0].path)
            assert sorted(p.name for p in inner.rglob("*")) == ["good", "inner"]
            refused = [text.partition(":")[0] for text in outcome.refused_outputs]
            assert {*names} <= {*refused}
            assert {"folder/bad-link", "folder/bad-pipe"} <= {*refused}

        make.script(HOSTILE_OUTPUTS, check=check, outputs=(*names, "folder"))

    def test_names_of_bytes_and_deep_folders_end_no_run(self, make: Runs) -> None:
        def check(outcome: RunOutcome) -> None:
            assert outcome.exit_status == 0, outcome
            names = [file.name for file in outcome.outputs]
            assert "good" in names
            told = "\n".join(outcome.refused_outputs)
            told.encode()  # text, whatever the names are
            assert "links/" in told
            assert "deep" in names or "deep" in told

        outputs = ("good", "links", "bytes", "deep")
        make.script(ODD_NAMES, check=check, outputs=outputs)

    def test_files_that_only_look_large_count_as_they_look(self, make: Runs) -> None:
        code = "for name in 'abc': open('/var/outputs/' + name, 'wb').truncate(8 << 20)"
        limits = Limits(disk=10 << 20, seconds=20)
        outcome = make.script(code, outputs=("a", "b", "c"), limits=limits)
        assert [file.name for file in outcome.outputs] == ["a"]
        assert [text.partition(":")[0] for text in outcome.refused_outputs] == ["b", "c"]

    def test_d20_an_output_folder_that_was_emptied_is_survived(self, make: Runs) -> None:
        code = """
            import os, shutil
            open("/var/outputs/old", "w").close()
            shutil.rmtree("/var/outputs", ignore_errors=True)
            os.makedirs("/var/outputs", exist_ok=True)
            open("/var/outputs/new", "w").write("new")
        """
        outcome = make.script(code, outputs=("old", "new"))
        assert [(file.name, file.text) for file in outcome.outputs] == [("new", "new")]

    @pytest.mark.slow
    def test_what_a_limit_has_ended_still_gives_its_outputs(self, make: Runs) -> None:
        code = "import time\nopen('/var/outputs/x', 'w').write('so far')\ntime.sleep(60)"
        outcome = make.script(code, outputs=("x",), limits=Limits(seconds=2.0))
        assert outcome.timed_out
        assert [file.text for file in outcome.outputs] == ["so far"]

    def test_variables_and_secrets_reach_the_code(
        self, make: Runs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SOME_SECRET", "its value")
        code = "import os; print(*map(os.environ.get, ['SOME_SECRET', 'MODE', 'MPLBACKEND']))"
        printed = make.printed(code, secrets=("SOME_SECRET",), environment={"MODE": "a=b c"})
        assert printed == "its value a=b c Agg"


class LifeContract(SandboxCase):
    """Images, and how a sandbox begins and ends."""

    def test_a_spec_without_packages_finds_the_sandbox(self, make: Runs, base: str) -> None:
        spec = ImageSpec(base=base)
        image = make.use(lambda sandbox: sandbox.build(spec))
        assert isinstance(image, ImageRef)
        assert image.spec_key == spec.key

    def test_an_image_is_built_once(self, make: Runs, base: str) -> None:
        spec = ImageSpec(base=base, requirements=("iniconfig",))

        async def several(sandbox: Sandbox) -> list[ImageRef | BuildFailure]:
            return list(await asyncio.gather(*(sandbox.build(spec) for _ in range(4))))

        images = make.use(several)
        assert all(isinstance(image, ImageRef) for image in images)
        assert len({image.ref for image in images if isinstance(image, ImageRef)}) == 1
        again = make.use(lambda sandbox: sandbox.build(spec))
        assert isinstance(again, ImageRef)
        assert (again.cached, again.spec_key) == (True, spec.key)

    def test_an_unknown_package_is_named(self, make: Runs, base: str) -> None:
        name = "codetape-no-such-package-here"
        failure = make.use(
            lambda sandbox: sandbox.build(ImageSpec(base=base, requirements=(name,)))
        )
        assert isinstance(failure, BuildFailure)
        assert (failure.cause, failure.packages) == ("unknown_package", (name,))
        assert failure.log

    def test_requirements_that_exclude_each_other_are_a_conflict(
        self, make: Runs, base: str
    ) -> None:
        spec = ImageSpec(base=base, requirements=("pluggy==1.0.0", "pytest==8.4.0"))
        failure = make.use(lambda sandbox: sandbox.build(spec))
        assert isinstance(failure, BuildFailure)
        assert failure.cause == "conflict"

    @pytest.mark.parametrize("name", NO_NAMES, ids=range(len(NO_NAMES)))
    def test_what_is_no_name_reaches_no_command(self, make: Runs, base: str, name: str) -> None:
        failure = make.use(
            lambda sandbox: sandbox.build(ImageSpec(base=base, requirements=(name,)))
        )
        assert isinstance(failure, BuildFailure)
        assert (failure.cause, failure.packages) == ("unknown_package", (name,))
        assert not Path("/tmp/owned").exists()  # noqa: S108

    def test_an_image_that_is_not_there_breaks_the_run(self, make: Runs) -> None:
        nothing = ImageRef(ref="no-such-image", spec_key="0")
        spec = run_spec(nothing, purpose="script", solution=SOLUTION)
        with pytest.raises(SandboxBroken):
            make.use(lambda sandbox: sandbox.run(spec))

    def test_an_input_that_is_not_there_breaks_the_run(self, make: Runs) -> None:
        with pytest.raises(SandboxBroken):
            make.script("", host_files=(HostFile(name="x", path="/no/such/file"),))

    def test_without_room_for_temporary_files_it_is_broken(
        self, make: Runs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
        with pytest.raises(SandboxBroken, match="/no/such/folder"):
            make.script("")

    @pytest.mark.parametrize("case", NO_WORDS)
    def test_words_that_cannot_be_given_break_the_run(self, make: Runs, case: str) -> None:
        with pytest.raises(SandboxBroken, match="cannot be given"):
            make.script("", **NO_WORDS[case])

    def test_a_sandbox_is_closed_twice_and_then_refuses(self, make: Runs) -> None:
        async def closed(sandbox: Sandbox) -> None:
            spec = run_spec(await make.image(sandbox), purpose="script", solution=SOLUTION)
            await sandbox.close()
            await sandbox.close()
            with pytest.raises(SandboxBroken):
                await sandbox.run(spec)

        make.use(closed)

    def test_closing_ends_what_runs(self, make: Runs) -> None:
        async def closed(sandbox: Sandbox) -> None:
            image = await make.image(sandbox)
            spec = run_spec(image, purpose="script", solution="import time; time.sleep(60)")
            task = asyncio.create_task(sandbox.run(spec))
            await asyncio.sleep(0.5)
            await sandbox.close()
            with pytest.raises((SandboxBroken, asyncio.CancelledError)):
                await task

        make.use(closed)

    def test_runs_at_the_same_time_do_not_meet(self, make: Runs) -> None:
        code = "import sys, time\nopen('/var/outputs/x', 'w').write(sys.argv[1])\ntime.sleep(0.3)"

        async def several(sandbox: Sandbox) -> list[RunOutcome]:
            image = await make.image(sandbox)
            specs = [
                run_spec(
                    image, purpose="script", solution=code, outputs=("x",), arguments=(str(n),)
                )
                for n in range(6)
            ]
            return list(await asyncio.gather(*(sandbox.run(spec) for spec in specs)))

        outcomes = make.use(several)
        assert [outcome.outputs[0].text for outcome in outcomes] == list("012345")
