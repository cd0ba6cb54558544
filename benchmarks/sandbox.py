"""Measure sandboxes against a bare process. `python -m benchmarks.sandbox [--quick] [--strict]`.

Everything is measured in turns, in one run: the same two tests by pytest in a bare process, in
bubblewrap, in a container that podman has prepared, and in a fresh one. What counts is how much later
than the bare process a sandbox has its verdict: files handed over, run, report read and judged.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure, at_most, heading, line, missed
from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.environments import default_folder
from codetape.adapters.sandbox.podman import PodmanSandbox
from codetape.adapters.sandbox.podman.storeroom import ImageRoom
from codetape.engine.ports import Sandbox, SandboxBroken
from codetape.states.values import ImageRef, ImageSpec, RunOutcome, RunSpec, TextFile

SPEC = ImageSpec(base="", requirements=("pytest",))
SOLUTION = "def add(a, b):\n    return a + b\n"
TESTS = """
from solution import add

def test_add():
    assert add(1, 2) == 3

def test_nothing():
    assert add(0, 0) == 0
"""
FILES = {"solution.py": SOLUTION, "test_solution.py": TESTS}
# As our runner asks of pytest, so that nothing but the sandbox differs.
PLAIN = (
    *("-q", "-c", os.devnull, "--rootdir", ".", "--confcutdir", ".", "--noconftest"),
    *("--color=no", "-s", "-p", "no:cacheprovider", "--tb=line"),
)
THINKING = 1.5  # seconds between two runs; a model takes longer
NULLS = 0.080  # seconds that three null solutions may take in bubblewrap
LIMITS = {"bubblewrap": 0.060, "podman, prepared": 0.150}  # seconds over the bare process
MADE: dict[str, Callable[[], Sandbox]] = {
    "bubblewrap": BubblewrapSandbox,
    "podman, prepared": PodmanSandbox,
    "podman, fresh": lambda: PodmanSandbox(ahead=False),
}


@dataclass(slots=True)
class Rival:
    """A sandbox with an image, and the seconds until each verdict."""

    sandbox: Sandbox
    image: ImageRef
    taken: list[float] = field(default_factory=list)

    nulls: list[float] = field(default_factory=list)  # with null solutions after the tests

    async def run(self) -> None:
        """Run the tests once, and once with null solutions; the verdict has to be the right one."""
        for nulls, taken in ((False, self.taken), (True, self.nulls)):
            await asyncio.sleep(THINKING)
            start = time.perf_counter()
            outcome = await self.sandbox.run(self._spec(nulls))
            taken.append(time.perf_counter() - start)
            if not _passed(outcome) or bool(outcome.nulls) != nulls:
                raise RuntimeError(f"the tests did not pass: {outcome}")

    def _spec(self, nulls: bool) -> RunSpec:
        files = tuple(TextFile(name=name, text=text) for name, text in FILES.items())
        return RunSpec(purpose="tests", image=self.image, files=files, nulls=nulls)


def main() -> int:
    """Print the table; return 1 if a goal is missed and the caller is strict."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sandbox", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    arguments = parser.parse_args()
    figures = asyncio.run(_printed(2 if arguments.quick else 15))
    if lost := missed(figures):
        print(f"\n{len(lost)} missed: {'; '.join(lost)}")
    return 1 if lost and arguments.strict else 0


async def _printed(turns: int) -> list[Figure]:
    print(heading())
    figures = []
    async for figure in _figures(turns):
        figures.append(figure)
        print(line(figure), flush=True)
    return figures


async def _figures(turns: int) -> AsyncIterator[Figure]:
    async with AsyncExitStack() as stack:
        rivals: dict[str, Rival] = {}
        for name, make in MADE.items():
            found = await _rival(make, stack)
            if isinstance(found, Rival):
                rivals[name] = found
            else:
                yield Figure(f"{name}: missing", "", found[:40])
        bare = await _turns(rivals, turns)
        yield Figure("pytest in a bare process", f"{median(bare):.3f} s", f"best {min(bare):.3f} s")
        for name, rival in rivals.items():
            for figure in _compared(name, rival.taken, bare):
                yield figure
            yield _null_runs(name, rival)
    for name in ("bubblewrap", "podman, fresh"):
        if name in rivals:
            async for figure in _builds(name):
                yield figure


async def _rival(make: Callable[[], Sandbox], stack: AsyncExitStack) -> Rival | str:
    """Return a sandbox that has run once, or why there is none."""
    sandbox = make()
    stack.push_async_callback(sandbox.close)
    try:
        image = await sandbox.build(SPEC)
    except SandboxBroken as error:
        return error.failure.message
    if not isinstance(image, ImageRef):
        return image.message
    rival = Rival(sandbox, image)
    await rival.run()
    rival.taken.clear()
    rival.nulls.clear()
    return rival


async def _turns(rivals: dict[str, Rival], turns: int) -> list[float]:
    """Let each run once in each turn; returns the seconds of the bare process."""
    bare = []
    with _folder() as folder:
        command = _bare_command(folder, rivals)
        for _ in range(turns):
            await asyncio.sleep(THINKING)
            bare.append(await asyncio.to_thread(_seconds, command, folder))
            for rival in rivals.values():
                await rival.run()
    return bare


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that the user that code runs as may enter."""
    with tempfile.TemporaryDirectory(prefix="codetape-benchmark-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _bare_command(folder: Path, rivals: dict[str, Rival]) -> list[str]:
    """Put the tests there; the same Python and pytest as bubblewrap has, if it is there."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    python = sys.executable
    if "bubblewrap" in rivals:
        python = str(default_folder() / rivals["bubblewrap"].image.ref / "bin/python")
    return [python, "-B", "-m", "pytest", *PLAIN, "test_solution.py"]


def _seconds(command: list[str], folder: Path) -> float:
    """Run the tests in a process of nothing but pytest."""
    variables = {"PATH": os.defpath, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=variables, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _compared(name: str, taken: list[float], bare: list[float]) -> list[Figure]:
    """How long it took, and how much longer than the bare process of the same turn."""
    over = median(mine - its for mine, its in zip(taken, bare, strict=True))
    best, ratio = f"best {min(taken):.3f} s", median(taken) / median(bare)
    verdict = Figure(f"- verdict of {name}", f"{median(taken):.3f} s", best, ratio)
    if name in LIMITS:
        return [at_most(f"{name}, over bare", over, LIMITS[name], "{:.3f} s"), verdict]
    return [Figure(f"{name}, over bare", f"{over:.3f} s"), verdict]


def _null_runs(name: str, rival: Rival) -> Figure:
    """How much longer a run takes with null solutions, in the same turn."""
    pairs = zip(rival.nulls, rival.taken, strict=True)
    cost = median(with_them - without for with_them, without in pairs)
    if name == "bubblewrap":
        return at_most("- null solutions", cost, NULLS, "{:.3f} s")
    return Figure("- null solutions", f"{cost:.3f} s")


async def _builds(name: str) -> AsyncIterator[Figure]:
    """Build what has never been built, then once more."""
    with _folder() as folder:
        spec, make = _never_built(name, folder)
        cold, image = await _build(make, spec)
        warm, _ = await _build(make, spec)
    yield Figure(f"{name.partition(',')[0]}, cold build", f"{cold:.3f} s")
    yield Figure("- warm build", f"{warm:.3f} s", f"cold {cold:.3f} s", warm / cold)
    if spec.commands:
        _forget(image)


def _never_built(name: str, folder: Path) -> tuple[ImageSpec, Callable[[], Sandbox]]:
    if name == "bubblewrap":
        return SPEC, lambda: BubblewrapSandbox(environments=folder)
    command = f"true # {time.time_ns()}"
    return SPEC.model_copy(update={"commands": (command,)}), lambda: PodmanSandbox(ahead=False)


async def _build(make: Callable[[], Sandbox], spec: ImageSpec) -> tuple[float, ImageRef]:
    """Build in a new sandbox; the first connection is not counted."""
    sandbox = make()
    await sandbox.build(ImageSpec(base=""))
    start = time.perf_counter()
    image = await sandbox.build(spec)
    taken = time.perf_counter() - start
    await sandbox.close()
    assert isinstance(image, ImageRef), image.message
    return taken, image


def _forget(image: ImageRef) -> None:
    """Remove an image that nobody will ask for again."""
    room = ImageRoom()
    for kept in room.kept():
        if kept.name == image.ref:
            room.remove(kept)
    room.close()


def _passed(outcome: RunOutcome) -> bool:
    report = outcome.report
    return bool(report and report.finished and {r.outcome for r in report.results} == {"passed"})


if __name__ == "__main__":
    sys.exit(main())
