"""Tries a sandbox: what answers, what holds inside, and whether a test runs in it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codetape.engine.ports import Sandbox
    from codetape.states.values import ImageRef, Limits, RunOutcome

PATIENCE = 120.0
"""Seconds that a sandbox has to answer; the first podman command after a boot sets up its storage."""

MEMORY, PROCESSES, CPUS = 200 << 20, 24, 0.5
# Looks from inside. What it finds is a fact of the kernel, not of a setting.
PROBE = f"""
import json, os, socket, time
status = dict(l.split(":", 1) for l in open("/proc/self/status") if ":" in l)
def writable(folder):
    try:
        open(folder + "/codetape-probe", "x").close()
        os.unlink(folder + "/codetape-probe")
        return True
    except OSError:
        return False
children = []
try:
    while len(children) < {PROCESSES} * 2:
        child = os.fork()
        if child == 0:
            time.sleep(20)
            os._exit(0)
        children.append(child)
except OSError:
    pass
for child in children:
    os.kill(child, 9)
start = time.monotonic()
while time.monotonic() < start + 0.6: pass
spent = time.process_time()
print(json.dumps({{
    "no network": [name for _, name in socket.if_nameindex()] in ([], ["lo"]),
    "no rights": os.getuid() != 0 and int(status["CapEff"], 16) == 0,
    "no new privileges": status.get("NoNewPrivs", "").strip() == "1",
    "a read-only system": not any(writable(folder) for folder in ("/", "/usr", "/etc", "/var")),
    "processes of its own": os.getppid() < 50,
    "the limit of processes": len(children) < {PROCESSES},
    "the limit of CPU": spent < 0.85 * (time.monotonic() - start),
}}))
"""
HOG = f"x = bytearray({2 * MEMORY})\nprint('held')"
TINY = "from solution import one\n\ndef test_one():\n    assert one() == 1\n"


@dataclass(frozen=True, slots=True)
class Trial:
    """What a sandbox did. `problem` says why nothing can run in it; None: something can.

    `holds` and `lacks` name what was seen to hold inside, and what was not; `tests` says how a tiny
    test went, or why none ran ("": not tried); `tool` names the program that isolates ("": unknown).
    """

    kind: str
    problem: str | None = None
    holds: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    tests: str = ""
    tool: str = ""


async def tried(kind: str, *, quick: bool = False) -> Trial:
    """Try the sandbox of a name. `quick` leaves the tests out, which may need a download."""
    from codetape.composition import make_sandbox
    from codetape.engine.ports import SandboxBroken

    sandbox = make_sandbox(kind)
    trial = Trial(kind)
    try:
        async with asyncio.timeout(PATIENCE):
            trial = await _probed(sandbox, trial)
        if trial.problem is None and not quick:
            trial = replace(trial, tests=await _tested(sandbox))
    except SandboxBroken as broken:
        trial = replace(trial, problem=str(broken))
    except TimeoutError:
        trial = replace(trial, problem=f"it gave no answer in {PATIENCE:.0f} s")
    finally:
        await sandbox.close()
    return trial


async def _probed(sandbox: Sandbox, trial: Trial) -> Trial:
    """Find the base, and look around inside."""
    from codetape.states.values import BuildFailure, ImageSpec, Limits

    image = await sandbox.build(ImageSpec(base=""))
    if isinstance(image, BuildFailure):
        return replace(trial, problem=image.message)
    trial = replace(trial, tool=image.tool or "")
    limits = Limits(memory=MEMORY, processes=PROCESSES, cpus=CPUS, seconds=30.0)
    seen = await _run(sandbox, image, limits, PROBE)
    try:
        facts: dict[str, bool] = json.loads(seen.stdout)
    except ValueError:
        return replace(trial, problem=f"a program of a few lines does not run: {_said(seen)}")
    hog = await _run(sandbox, image, limits, HOG)
    facts["the limit of memory"] = "held" not in hog.stdout
    if facts["the limit of memory"]:
        facts["the kernel's count of memory"] = hog.out_of_memory is True
    holds = tuple(name for name, held in facts.items() if held)
    return replace(trial, holds=holds, lacks=tuple(name for name in facts if name not in holds))


async def _tested(sandbox: Sandbox) -> str:
    """Run one test, in an image with pytest."""
    from codetape.states.values import BuildFailure, ImageSpec, Limits

    image = await sandbox.build(ImageSpec(base="", requirements=("pytest",)))
    if isinstance(image, BuildFailure):
        return f"none ran: pytest cannot be installed: {image.message}"
    outcome = await _run(sandbox, image, Limits(), "def one():\n    return 1\n", TINY)
    report = outcome.report
    if report and report.finished and [each.outcome for each in report.results] == ["passed"]:
        return f"one ran and passed, in {outcome.seconds or 0:.1f} s"
    return f"none passed: {_said(outcome)}"


async def _run(
    sandbox: Sandbox, image: ImageRef, limits: Limits, solution: str, tests: str = ""
) -> RunOutcome:
    from codetape.states.values import RunSpec, TextFile

    files = [TextFile(name="solution.py", text=solution)]
    files += [TextFile(name="test_solution.py", text=tests)] if tests else []
    purpose: Any = "tests" if tests else "script"
    spec = RunSpec(purpose=purpose, image=image, files=tuple(files), limits=limits)
    return await sandbox.run(spec)


def _said(outcome: RunOutcome) -> str:
    lines = outcome.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {outcome.exit_status}, signal {outcome.signal}"
