"""Running a finished solution on data, in the sandbox that it was tested in."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from codetape import composition, output_folder
from codetape.arguments import arguments_of
from codetape.cache import Remembering, RunCache
from codetape.engine.boundary import Boundary
from codetape.engine.ports import Sandbox
from codetape.output_folder import OutputFolder
from codetape.outputs import typed
from codetape.states.session import Session
from codetape.states.values import (
    BuildFailure,
    HostFile,
    ImageRef,
    RunOutcome,
    RunSpec,
    TextFile,
)


class RunFailed(RuntimeError):
    """The solution did not run to its end: `outcome` has exit status, stdout, stderr."""

    def __init__(self, reason: str, outcome: RunOutcome) -> None:
        super().__init__(reason)
        self.outcome = outcome


async def run_solution(
    session: Session,
    sandbox: str | Sandbox,
    inputs: Mapping[str, Any],
    output_dir: str | Path | None = None,
    *,
    overwrite: bool = False,
    allowed: tuple[str, ...] = (),
    foreign: bool = False,
) -> tuple[Any, RunOutcome]:
    """Run the newest code of a session on `inputs` and return the typed outputs and the outcome.

    `allowed` are packages and commands that its image may have beyond what its gate lets through; of a
    `foreign` session, which others opened, its own lists count for nothing. Raises ValueError for a
    wrong input, RunFailed for code that fails, SandboxBroken.
    """
    job = session.job
    boundary = composition.boundary_for(job)
    with tempfile.TemporaryDirectory(prefix="codetape-inputs-") as folder:
        arguments, files = arguments_of(job, inputs, Path(folder))
        names = [d.name for d in job.outputs]
        read = [Path(file.path) for file in files]
        with output_folder.opened(output_dir, names, read, overwrite=overwrite) as target:
            built = partial(_image, session, allowed, foreign=foreign)
            ran = await _ran(session, sandbox, arguments, files, target, built)
    outcome = _without_secrets(boundary, ran)
    _check(outcome)
    try:
        return typed(job.outputs, {file.name: file for file in outcome.outputs}), outcome
    except ValueError as error:
        raise RunFailed(boundary.text(str(error)), outcome) from None


async def _ran(
    session: Session,
    sandbox: str | Sandbox,
    arguments: tuple[str, ...],
    files: tuple[HostFile, ...],
    target: OutputFolder,
    built: Callable[..., Awaitable[ImageRef]],
) -> RunOutcome:
    job = session.job
    made = composition.make_sandbox(
        sandbox, session=session.id, registry_secret=job.registry_secret
    )
    cache = RunCache(composition.session_folder(session.id) / "runs")
    runs = Remembering(made, cache, job.cache)
    try:
        image = await built(runs, named=made is not sandbox)
        spec = _spec(session, image, arguments, files)
        return target.take(await runs.run(spec))
    finally:
        await (runs.forget() if made is sandbox else runs.close())


def _without_secrets(boundary: Boundary, ran: RunOutcome) -> RunOutcome:
    """Clean what the code said, which may end in a log; files of outputs stay as they are."""
    cleaned = boundary.clean(ran)
    pairs = zip(ran.outputs, cleaned.outputs, strict=True)
    outputs = tuple(file.model_copy(update={"text": clean.text}) for file, clean in pairs)
    return cleaned.model_copy(update={"outputs": outputs})


async def _image(
    session: Session, allowed: tuple[str, ...], sandbox: Sandbox, *, foreign: bool, named: bool
) -> ImageRef:
    """Find the image again, or build it if it was pruned.

    Packages that the session itself built have passed its gate. Commands pass one now, for no key
    covers the events that say they have, and so does all that it still waits for or others built.
    """
    known = session.image is not None and session.image.spec_key == session.spec.key
    recorded = session.job.package_policy
    policy = recorded if recorded in composition.POLICIES else "ask"
    gate = composition.gated(sandbox, None if known else policy, session.job, allowed)
    if foreign:
        gate = composition.gated_anew(sandbox, "ask" if named else None, allowed)
    built = await gate.build(session.spec)
    if isinstance(built, BuildFailure):
        raise RunFailed(f"the image could not be built: {built.message}", RunOutcome())
    return built


def _spec(
    session: Session, image: ImageRef, arguments: tuple[str, ...], files: tuple[HostFile, ...]
) -> RunSpec:
    if session.code is None:
        raise ValueError(f"session {session.id} has no code to run")
    job = session.job
    return RunSpec(
        purpose="script",
        image=image,
        files=(TextFile(name="solution.py", text=session.code.source),),
        host_files=files,
        arguments=arguments,
        outputs=tuple(d.name for d in job.outputs),
        environment=job.environment,
        secrets=job.secrets,
        network=job.network_access,
        limits=job.limits,
    )


def _check(outcome: RunOutcome) -> None:
    if outcome.timed_out:
        raise RunFailed("the code did not end within its time limit", outcome)
    if outcome.out_of_memory:
        raise RunFailed("the code ran out of memory", outcome)
    if outcome.too_much_output:
        raise RunFailed("the code printed without end", outcome)
    if outcome.disk_full and outcome.exit_status != 0:
        raise RunFailed("the code filled the disk that it may use", outcome)
    if outcome.exit_status != 0:
        tail = outcome.stderr.strip()[-2000:]
        raise RunFailed(f"the code ended with exit status {outcome.exit_status}\n{tail}", outcome)
