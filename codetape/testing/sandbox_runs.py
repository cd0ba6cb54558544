"""What the parts of the sandbox contract share: how a run is made, and the marks it leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar, TypeVar

import pytest

from codetape.engine.ports import Sandbox
from codetape.states.values import (
    ImageRef,
    ImageSpec,
    Limits,
    RunOutcome,
    RunSpec,
    TestReport,
    TextFile,
)

T = TypeVar("T")

SOLUTION = "def add(a, b):\n    return a + b\n"
QUICK = Limits(seconds=20.0, memory=512 << 20, disk=32 << 20)
PATIENCE = 120.0  # seconds; a first build may download


class SandboxCase:
    """Makes runs for the tests of a contract. `gaps` names tests that fail here, with the reason.

    A gap that passes is a failure: it is to be taken from the list.
    """

    gaps: ClassVar[dict[str, str]] = {}
    unpinned: ClassVar[tuple[str, ...]] = ("pytest",)  # what an image for tests needs

    def make_sandbox(self, folder: Path) -> Sandbox:
        """Return a new sandbox. What it builds may lie in `folder`, which all tests share."""
        raise NotImplementedError

    @pytest.fixture
    def base(self) -> str:
        """The base image of the specs; override it where that matters."""
        return "python"

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls) -> Iterator[Path]:
        """A folder that every user of the machine may enter."""
        path = Path(tempfile.mkdtemp(prefix="codetape-contract-"))
        path.chmod(0o755)
        yield path
        shutil.rmtree(path, ignore_errors=True)

    @pytest.fixture
    def make(self, folder: Path, base: str) -> Runs:
        """Makes runs in a new sandbox each."""
        return Runs(
            lambda: self.make_sandbox(folder), ImageSpec(base=base, requirements=self.unpinned)
        )

    @pytest.fixture(autouse=True)
    def _expect_gaps(self, request: pytest.FixtureRequest) -> None:
        name = request.node.originalname
        if name in self.gaps:
            request.applymarker(pytest.mark.xfail(reason=self.gaps[name], strict=True))


class Runs:
    """Runs code in a new sandbox, and closes it."""

    def __init__(self, sandbox: Callable[[], Sandbox], spec: ImageSpec) -> None:
        self.sandbox = sandbox
        self.spec = spec

    def use(self, work: Callable[[Sandbox], Awaitable[T]]) -> T:
        """Do `work` with a sandbox."""

        async def used() -> T:
            sandbox = self.sandbox()
            try:
                return await asyncio.wait_for(work(sandbox), PATIENCE)
            finally:
                await sandbox.close()

        return asyncio.run(used())

    async def image(self, sandbox: Sandbox) -> ImageRef:
        """Return an image with pytest."""
        image = await sandbox.build(self.spec)
        assert isinstance(image, ImageRef), image
        return image

    def outcome(
        self, check: Callable[[RunOutcome], None] = lambda _: None, **parts: Any
    ) -> RunOutcome:
        """Run once; `parts` are those of `run_spec`. `check` sees the outputs before they go."""

        async def once(sandbox: Sandbox) -> RunOutcome:
            outcome = await sandbox.run(run_spec(await self.image(sandbox), **parts))
            check(outcome)
            return outcome

        return self.use(once)

    def script(self, solution: str, **parts: Any) -> RunOutcome:
        """Run a solution as a script."""
        return self.outcome(purpose="script", solution=solution, **parts)

    def printed(self, solution: str, **parts: Any) -> str:
        """Run a solution as a script that must succeed, and return what it printed."""
        outcome = self.script(solution, **parts)
        assert outcome.exit_status == 0, outcome
        return outcome.stdout.strip()

    def tests(self, tests: str, solution: str = SOLUTION, **parts: Any) -> RunOutcome:
        """Run tests."""
        return self.outcome(purpose="tests", solution=solution, tests=tests, **parts)

    def report(self, tests: str, solution: str = SOLUTION, **parts: Any) -> TestReport:
        """Run tests, and return the report, which must be there."""
        report = self.tests(tests, solution, **parts).report
        assert report is not None
        return report


def run_spec(
    image: ImageRef,
    *,
    purpose: Any,
    solution: str,
    tests: str = "",
    files: tuple[TextFile, ...] = (),
    limits: Limits = QUICK,
    **more: Any,
) -> RunSpec:
    """Return the spec of a run; texts are written with the indentation of the test around them."""
    own = [TextFile(name="solution.py", text=dedent(solution))]
    if purpose == "tests":
        own.append(TextFile(name="test_solution.py", text=dedent(tests)))
    return RunSpec(purpose=purpose, image=image, files=(*own, *files), limits=limits, **more)


def verdicts(report: TestReport) -> dict[str, str]:
    """Return the outcome of each test."""
    return {result.id: result.outcome for result in report.results}


def running_with(mark: str, patience: float = 3.0) -> list[int]:
    """Return the processes of this machine that have `mark` on their command line, if any stay."""
    until = time.monotonic() + patience
    while found := [pid for pid, line in _command_lines() if mark.encode() in line]:
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    return found


def _command_lines() -> Iterator[tuple[int, bytes]]:
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_bytes()
