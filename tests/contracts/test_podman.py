"""Podman keeps the contract of a sandbox, and what is podman's own: images, containers, the service."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import unquote

import pytest

from codetape.adapters.owner import current_owner
from codetape.adapters.sandbox.podman import PodmanSandbox, Settings
from codetape.adapters.sandbox.podman.service import OwnService
from codetape.adapters.sandbox.run_users import COUNT, FIRST
from codetape.engine.ports import Sandbox, SandboxBroken
from codetape.states.values import (
    BuildFailure,
    ImageRef,
    ImageSpec,
    Limits,
    RunOutcome,
    RunSpec,
    TextFile,
)
from codetape.testing.sandbox_files import FileContract, LifeContract
from codetape.testing.sandbox_isolation import IsolationContract
from codetape.testing.sandbox_limits import LimitContract
from codetape.testing.sandboxes import HarmContract, SandboxContract
from tests.support.guarded_index import guarded_index

pytestmark = [pytest.mark.podman, pytest.mark.slow]
T = TypeVar("T")
CANARY = "canary-5f3a"


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """One service for all tests of the file: starting one takes longer than a run."""
    own = OwnService()
    client, refusal = own.client()
    assert client is not None, refusal
    client.close()
    yield own.url
    own.end()


Use = Callable[..., Any]


@pytest.fixture
def use(service: str, base_image: str, tmp_path: Path) -> Use:
    """Does work with a sandbox on the shared service, and closes it."""

    def used(
        work: Callable[[PodmanSandbox], Awaitable[T]],
        host: dict[str, str] | None = None,
        **settings: Any,
    ) -> T:
        environment = {**os.environ, "CONTAINER_HOST": service, **(host or {})}
        found = Settings.read(environment).on(base_image)
        changed = {name: getattr(found, name) for name in found.__slots__} | settings

        async def within() -> T:
            sandbox = PodmanSandbox(
                outputs=tmp_path / "outputs",
                settings=Settings(**changed),
                environment=environment,
                session="the-session",
            )
            try:
                return await work(sandbox)
            finally:
                await sandbox.close()

        return asyncio.run(within())

    return used


def script(image: ImageRef, code: str, **more: Any) -> RunSpec:
    limits = Limits(**{"seconds": 20.0, "memory": 256 << 20, **more.pop("limits", {})})
    files = (TextFile(name="solution.py", text=code),)
    return RunSpec(purpose="script", image=image, files=files, limits=limits, **more)


async def bare(sandbox: PodmanSandbox) -> ImageRef:
    image = await sandbox.build(ImageSpec(base=""))
    assert isinstance(image, ImageRef)
    return image


def run(use: Use, code: str, **more: Any) -> RunOutcome:
    async def work(sandbox: PodmanSandbox) -> RunOutcome:
        return await sandbox.run(script(await bare(sandbox), code, **more))

    outcome: RunOutcome = use(work)
    return outcome


def podman(*arguments: str) -> str:
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def containers_of(mark: str) -> list[str]:
    return podman("ps", "-a", "--filter", f"label={mark}", "--format", "{{.Names}}").split()


def failure(use: Use, **spec: Any) -> BuildFailure:
    built = use(lambda sandbox: sandbox.build(ImageSpec(base="", **spec)))
    assert isinstance(built, BuildFailure)
    return built


def unique(text: str = "true") -> str:
    """A command that no image has had yet."""
    return f"{text} # {time.time_ns()}"


class TestContract(HarmContract, SandboxContract):
    service: ClassVar[str]

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _service(cls, service: str) -> None:
        cls.service = service

    @pytest.fixture
    def base(self, base_image: str) -> str:
        return base_image

    def make_sandbox(self, folder: Path) -> Sandbox:
        return PodmanSandbox(
            outputs=folder / "outputs", environment={**os.environ, "CONTAINER_HOST": self.service}
        )


class Ahead(PodmanSandbox):
    """Prepares the container of each run, whatever its limits, so that none is made late."""

    async def run(self, spec: RunSpec) -> RunOutcome:
        shape = self._shape(spec.image.ref, spec.limits, network=spec.network)
        for _ in range(3):  # another run may take it
            self._shelf.want(shape)
            if self._shelf.waits(shape):
                break
        return await super().run(spec)


class TestPrepared(LimitContract, IsolationContract, FileContract, LifeContract):
    """A container that was started before it had a job holds the code as well as any other."""

    service: ClassVar[str]
    _service = TestContract._service
    base = TestContract.base

    def make_sandbox(self, folder: Path) -> Sandbox:
        return Ahead(
            outputs=folder / "outputs", environment={**os.environ, "CONTAINER_HOST": self.service}
        )


class TestImages:
    def test_a_bare_spec_asks_only_whether_there_is_a_sandbox(
        self, use: Use, base_image: str
    ) -> None:
        start = time.monotonic()
        image = use(bare)
        assert (image.ref, image.spec_key) == (base_image, ImageSpec(base="").key)
        assert time.monotonic() - start < 10.0  # it builds nothing

    def test_c12_ten_tasks_that_ask_at_once_share_one_build(self, use: Use) -> None:
        spec = ImageSpec(base="", commands=(unique(),))

        async def work(sandbox: PodmanSandbox) -> list[ImageRef]:
            found = await asyncio.gather(*(sandbox.build(spec) for _ in range(10)))
            assert all(isinstance(each, ImageRef) for each in found)
            return [each for each in found if isinstance(each, ImageRef)]

        images = use(work)
        assert len({image.ref for image in images}) == 1
        assert sorted(image.cached is True for image in images) == [False, *[True] * 9]
        assert use(lambda sandbox: sandbox.build(spec)).cached is True
        podman("image", "rm", images[0].ref)

    def test_ten_sessions_that_ask_at_once_build_once(self, use: Use, service: str) -> None:
        spec = ImageSpec(base="", commands=(unique(),))
        host = {**os.environ, "CONTAINER_HOST": service}

        async def session(base: str) -> ImageRef:
            sandbox = PodmanSandbox(base=base, environment=host)
            try:
                image = await sandbox.build(spec)
                assert isinstance(image, ImageRef)
                return image
            finally:
                await sandbox.close()

        async def ten(base: str) -> list[ImageRef]:
            return await asyncio.gather(*(session(base) for _ in range(10)))

        images = asyncio.run(ten(use(bare).ref))
        assert len({image.ref for image in images}) == 1
        assert sorted(image.cached is True for image in images) == [False, *[True] * 9]
        podman("image", "rm", images[0].ref)

    def test_packages_and_commands_are_there_and_nothing_of_the_host_is(
        self, use: Use, tmp_path: Path
    ) -> None:
        bundle = tmp_path / "ca.pem"
        known = os.environ.get("SSL_CERT_FILE") or os.environ.get("PIP_CERT") or ""
        bundle.write_text((Path(known).read_text() if known else "") + f"\n# {CANARY}-ca\n")
        given = 'test -z "$NO_PROXY" && test -z "$UV_INSECURE_HOST"'
        seen = f"{given} && grep -q {CANARY}-ca $PIP_CERT && echo made > /made"
        spec = ImageSpec(base="", requirements=("iniconfig==2.0.0",), commands=(unique(seen),))
        check = (
            "import iniconfig, importlib.metadata as m, os, sys\n"
            "print(m.version('iniconfig'), open('/made').read().strip(),"
            " sys.version_info[:2], os.path.exists('/var/codetape/stage.json'),"
            " os.path.exists('/var/codetape/ca.pem'))"
        )

        async def work(sandbox: PodmanSandbox) -> tuple[ImageRef, RunOutcome]:
            image = await sandbox.build(spec)
            assert isinstance(image, ImageRef), image
            return image, await sandbox.run(script(image, check))

        host = {"NO_PROXY": f"{CANARY}-proxy", "UV_INSECURE_HOST": f"{CANARY}-index"}
        image, outcome = use(work, host=host, certificates=bundle)
        major, minor = (image.python or "").split(".")
        assert outcome.stdout == f"2.0.0 made ({major}, {minor}) False False\n"
        told = podman("image", "inspect", image.ref) + podman("history", "--no-trunc", image.ref)
        saved = subprocess.run(
            f"podman save {image.ref} | grep -ac -e {CANARY}-proxy -e {CANARY}-index -e {CANARY}-ca",
            shell=True,
            capture_output=True,
            text=True,
            check=False,
        )
        labels = json.loads(podman("image", "inspect", image.ref))[0]["Labels"]
        assert labels["codetape.owner"] == ""
        assert f"{CANARY}-proxy" not in told
        assert f"{CANARY}-index" not in told
        # The command itself, which is a label of the image, names the certificate.
        assert int(saved.stdout) <= 2
        podman("image", "rm", image.ref)

    def test_credentials_of_an_index_reach_no_command_and_no_layer(self, use: Use) -> None:
        """The index is real and demands them: the package is there, they are nowhere."""
        use(lambda sandbox: sandbox.build(ImageSpec(base="", commands=("true",))))  # the tools
        look = (
            "(env; cat /proc/*/environ /proc/*/cmdline; cat /root/.netrc /etc/pip.conf;"
            " cat -- /var/codetape/*) > /seen 2>&1 || true"
        )
        with guarded_index(CANARY) as address:
            name = f"codetape-sample-{time.time_ns()}"
            host = {"PIP_INDEX_URL": address, "UV_DEFAULT_INDEX": address}
            host |= dict.fromkeys(("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"), "")
            host["NO_PROXY"] = host["no_proxy"] = "127.0.0.1"
            host["ALL_PROXY"] = f"http://ann:{CANARY}@127.0.0.1:9"
            spec = ImageSpec(base="", requirements=(name,), commands=(unique(look),))
            image = use(lambda sandbox: sandbox.build(spec), host=host, network="host")
        assert isinstance(image, ImageRef), image
        check = f"import importlib.metadata as m; print(m.version({name!r}))"
        told = use(lambda sandbox: sandbox.run(script(image, check)))
        assert told.stdout == "1.0\n"
        facts = podman("image", "inspect", image.ref) + podman("history", "--no-trunc", image.ref)
        saved = subprocess.run(
            ["podman", "save", image.ref], capture_output=True, check=True
        ).stdout
        for form in (CANARY, base64.b64encode(f"ann:{CANARY}".encode()).decode()):
            assert form not in facts
            assert form.encode() not in saved
        podman("image", "rm", image.ref)

    @pytest.mark.parametrize("secret", [CANARY, "per%2Fcent-5f3a"])
    def test_credentials_of_an_index_are_in_no_log(self, use: Use, secret: str) -> None:
        use(lambda sandbox: sandbox.build(ImageSpec(base="", commands=("true",))))  # the tools
        address = f"http://ann:{secret}@127.0.0.1:9/simple"
        host = {"PIP_INDEX_URL": address, "UV_DEFAULT_INDEX": address, "NO_PROXY": "127.0.0.1"}
        spec = ImageSpec(base="", requirements=(f"iniconfig!=0.{time.time_ns()}",))  # not built yet
        found = use(lambda sandbox: sandbox.build(spec), host=host, network="host")
        assert found.cause == "download"
        for form in (secret, unquote(secret)):
            assert form not in found.model_dump_json()

    def test_apt_takes_a_name_only_literally(self, use: Use) -> None:
        """`lib.6` is an expression to apt, which the C library of the base image matches."""
        found = failure(use, system_packages=("lib.6",))
        assert (found.cause, found.packages) == ("unknown_system_package", ("lib.6",))

    def test_c13_a_failing_command_says_what_it_said(self, use: Use) -> None:
        command = unique("echo out-of-it; echo err-of-it >&2; exit 7")
        found = failure(use, commands=("true", command))
        assert (found.cause, found.packages) == ("command", (command,))
        assert "out-of-it" in found.log
        assert "err-of-it" in found.log
        assert "err-of-it" in found.message

    def test_an_unknown_system_package_is_named(self, use: Use) -> None:
        found = failure(use, system_packages=("codetape-no-such-thing",))
        assert found.cause == "unknown_system_package"
        assert found.packages == ("codetape-no-such-thing",)

    def test_an_index_that_is_not_there_is_a_download_failure(self, use: Use) -> None:
        nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "UV_DEFAULT_INDEX": ""}
        nowhere["UV_DEFAULT_INDEX"] = nowhere["PIP_INDEX_URL"]
        spec = ImageSpec(base="", requirements=(f"iniconfig!=0.{time.time_ns()}",))  # not built yet
        found = use(lambda sandbox: sandbox.build(spec), host=nowhere)
        assert found.cause == "download"

    def test_another_python_than_the_one_asked_for_is_refused(self, use: Use) -> None:
        found = failure(use, python="3.99", requirements=("pytest",))
        assert found.cause == "other"
        assert "3.99" in found.message

    def test_c9_a_build_ends_at_its_limit_and_leaves_nothing(self, use: Use) -> None:
        mark = f"sleep 3{time.time_ns()}"
        spec = ImageSpec(base="", commands=(mark,))
        use(lambda sandbox: sandbox.build(ImageSpec(base="", commands=("true",))))  # the tools
        start = time.monotonic()
        found = use(lambda sandbox: sandbox.build(spec), build_seconds=2.0)
        assert found.cause == "timeout"
        assert time.monotonic() - start < 30.0
        assert not processes_with(mark)
        assert not containers_of(f"codetape.owner={current_owner()}")

    def test_cancelling_ends_the_build(self, use: Use) -> None:
        mark = f"sleep 3{time.time_ns()}"

        async def work(sandbox: PodmanSandbox) -> None:
            building = asyncio.create_task(sandbox.build(ImageSpec(base="", commands=(mark,))))
            await seen(lambda: processes_with(mark))
            building.cancel()
            with pytest.raises(asyncio.CancelledError):
                await building
            assert not processes_with(mark)
            assert not containers_of(f"codetape.owner={current_owner()}")

        use(work)

    @pytest.mark.parametrize("base", ["localhost/codetape-nothing:1", "localhost:9/nothing:1"])
    def test_a_base_image_that_cannot_be_had_is_a_missing_sandbox(
        self, use: Use, base: str
    ) -> None:
        with pytest.raises(SandboxBroken, match=f"podman pull {base}") as caught:
            use(lambda sandbox: sandbox.build(ImageSpec(base=base)))
        assert caught.value.failure.missing


class TestRuns:
    def test_a_program_that_ends_at_once_is_not_missed(self, use: Use) -> None:
        outcome = run(use, "")
        assert (outcome.exit_status, outcome.timed_out) == (0, False)

    def test_status_137_alone_is_no_lack_of_memory(self, use: Use) -> None:
        outcome = run(use, "raise SystemExit(137)")
        assert (outcome.exit_status, outcome.signal) == (137, None)
        assert outcome.out_of_memory is False

    def test_process_1_can_be_neither_read_nor_stopped_nor_imitated(self, use: Use) -> None:
        code = (
            "import os, signal\n"
            "for name in ('environ', 'fd/1', 'mem'):\n"
            "    try: open(f'/proc/1/{name}', 'rb').read(); print('read', name)\n"
            "    except OSError as error: print(type(error).__name__)\n"
            "for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM): os.kill(1, number)\n"
            "print('end {\"status\": 0}')\n"
            "print(os.environ.get('CODETAPE_NONCE'))\nraise SystemExit(3)"
        )
        outcome = run(use, code)
        assert outcome.stdout.splitlines() == [
            *["PermissionError"] * 3,
            'end {"status": 0}',
            "None",
        ]
        assert outcome.exit_status == 3

    def test_podman_itself_takes_all_rights_before_process_1_begins(self, use: Use) -> None:
        outcome = run(use, "print(open('/proc/1/status').read())")
        status = dict(line.split(":\t") for line in outcome.stdout.strip().splitlines())
        assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        (user,) = set(status["Uid"].split())
        assert int(user) in (range(FIRST, FIRST + COUNT) if os.geteuid() == 0 else (65534,))

    def test_secrets_come_from_the_host_and_nothing_else_does(self, use: Use) -> None:
        code = "import os\nprint(os.environ.get('TOKEN'), os.environ.get('OTHER'))"

        async def work(sandbox: PodmanSandbox) -> RunOutcome:
            return await sandbox.run(script(await bare(sandbox), code, secrets=("TOKEN", "UNSET")))

        outcome = use(work, host={"TOKEN": CANARY, "OTHER": CANARY, "http_proxy": CANARY})
        assert outcome.stdout == f"{CANARY} None\n"

    def test_a_volume_of_outputs_goes_with_its_container(self, use: Use) -> None:
        before = set(podman("volume", "ls", "-q").split())
        outcome = run(use, "open('/var/outputs/x', 'w').write('1')", outputs=("x",))
        assert outcome.outputs[0].text == "1"
        assert set(podman("volume", "ls", "-q").split()) <= before

    def test_eight_at_a_time_leave_nothing(self, use: Use) -> None:
        async def work(sandbox: PodmanSandbox) -> list[RunOutcome]:
            image = await bare(sandbox)
            runs = (sandbox.run(script(image, f"print({number})")) for number in range(8))
            return await asyncio.gather(*runs)

        assert [each.stdout for each in use(work)] == [f"{number}\n" for number in range(8)]
        assert not containers_of(f"codetape.owner={current_owner()}")


def processes_with(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in line and "inside.py" not in line:
            found.append(line)
    return found


async def seen(what: Callable[[], object], patience: float = 60.0) -> None:
    """Wait until `what` is true."""
    for _ in range(int(patience / 0.05)):
        if what():
            return
        await asyncio.sleep(0.05)
    pytest.fail("waited in vain")


class TestLife:
    @pytest.mark.parametrize("pause", [0.0, 0.05, 0.15, 0.4])
    def test_cancelling_at_any_moment_leaves_nothing(self, use: Use, pause: float) -> None:
        async def work(sandbox: PodmanSandbox) -> None:
            running = asyncio.create_task(sandbox.run(script(await bare(sandbox), "while True: 0")))
            await asyncio.sleep(pause)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert not containers_of(f"codetape.owner={current_owner()}")

        use(work)

    def test_the_containers_of_a_dead_process_are_removed_and_no_others(
        self, use: Use, base_image: str
    ) -> None:
        with subprocess.Popen(["sleep", "0"]) as ended:
            pass
        host, _, start, *rest = current_owner().split(":")
        owners = {
            "dead": ":".join((host, str(ended.pid), "1", *rest)),
            "reused": ":".join((host, str(os.getppid()), "1", *rest)),
            "living": current_owner(),
            "elsewhere": ":".join((host, str(ended.pid), start, "another", "boot")),
            "image": "",
        }
        names = {
            kind: podman(
                *("run", "-d", "--network=none", "--label", f"codetape.owner={owner}"),
                *(base_image, "sleep", "600"),
            )
            for kind, owner in owners.items()
        }
        try:
            use(bare)
            kept = podman("ps", "-a", "-q", "--no-trunc").split()
            assert {kind for kind, name in names.items() if name in kept} == {
                "living",
                "elsewhere",
                "image",
            }
        finally:
            subprocess.run(["podman", "rm", "-f", "-t0", "-i", *names.values()], check=False)

    def test_a_killed_process_leaves_nothing_for_long(self, use: Use, base_image: str) -> None:
        mark = f"run-{time.time_ns()}"
        code = (
            "import asyncio, os\n"
            "from codetape.adapters.sandbox.podman import PodmanSandbox\n"
            "from codetape.states.values import *\n"
            "async def main():\n"
            f"    sandbox = PodmanSandbox(base={base_image!r})\n"
            "    image = await sandbox.build(ImageSpec(base=''))\n"
            "    files = (TextFile(name='solution.py', text='while True: pass'),)\n"
            "    await sandbox.run(RunSpec(purpose='script', image=image, files=files,"
            " arguments=(os.environ['MARK'],)))\n"
            "asyncio.run(main())\n"
        )
        host = {**os.environ, "MARK": mark}
        with subprocess.Popen([sys.executable, "-c", code], env=host) as engine:
            asyncio.run(seen(lambda: processes_with(mark)))
            engine.send_signal(signal.SIGKILL)
        assert processes_with(mark)
        use(bare)
        assert not processes_with(mark)

    def test_a_service_that_dies_in_the_middle_is_replaced(
        self, base_image: str, tmp_path: Path
    ) -> None:
        mark = f"run-{time.time_ns()}"
        # No socket of this machine's: the sandbox starts a service of its own.
        host = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "CONTAINER_HOST": ""}

        async def work() -> RunOutcome:
            sandbox = PodmanSandbox(base=base_image, outputs=tmp_path, environment=host)
            try:
                image = await bare(sandbox)
                spec = script(image, "import time\ntime.sleep(600)", arguments=(mark,))
                running = asyncio.create_task(sandbox.run(spec))
                await seen(lambda: processes_with(mark))
                kill_services_of(os.getpid())
                with pytest.raises(SandboxBroken) as caught:
                    await running
                assert not caught.value.failure.missing
                assert not processes_with(mark)
                return await sandbox.run(script(image, "print('again')"))
            finally:
                await sandbox.close()

        assert asyncio.run(work()).stdout == "again\n"
        assert not services_of(os.getpid())

    def test_a_service_that_dies_while_a_container_waits_costs_no_run(
        self, base_image: str, tmp_path: Path
    ) -> None:
        host = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "CONTAINER_HOST": ""}

        async def work() -> RunOutcome:
            sandbox = Ahead(base=base_image, outputs=tmp_path, environment=host)
            try:
                spec = script(await bare(sandbox), "print('there')")
                assert (await sandbox.run(spec)).stdout == "there\n"
                shape = sandbox._shape(base_image, spec.limits, network=False)
                sandbox._shelf.want(shape)
                assert await asyncio.to_thread(sandbox._shelf.waits, shape)
                kill_services_of(os.getpid())
                await seen(lambda: not services_of(os.getpid()))
                return await PodmanSandbox.run(sandbox, spec)
            finally:
                await sandbox.close()

        assert asyncio.run(work()).stdout == "there\n"
        assert not containers_of(f"codetape.owner={current_owner()}")


def services_of(pid: int) -> list[int]:
    """The podman services that this process has started and that no fixture holds."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            line = (path.parent / "cmdline").read_bytes()
            parent = (Path("/proc") / fields[1] / "stat").read_text().rpartition(")")[2].split()[1]
        except (OSError, IndexError):
            continue
        if b"system\0service" in line and int(parent) == pid:
            found.append(int(path.parent.name))
    return found


def kill_services_of(pid: int) -> None:
    for service in services_of(pid):
        os.kill(service, signal.SIGKILL)
