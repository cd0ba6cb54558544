"""Running a finished solution on data, in the sandbox that it was tested in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from codetape import composition
from codetape.cache import Remembering, RunCache
from codetape.engine.ports import Sandbox
from codetape.outputs import typed
from codetape.states.job import Declared, Job
from codetape.states.session import Session
from codetape.states.values import (
    BuildFailure,
    HostFile,
    ImageRef,
    OutputFile,
    RunOutcome,
    RunSpec,
    TextFile,
)
from codetape.values import Dir, File

INPUTS = "/var/inputs"


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
) -> tuple[Any, RunOutcome]:
    """Run the newest code of a session on `inputs` and return the typed outputs and the outcome.

    Raises ValueError for a wrong input, RunFailed for code that fails, SandboxBroken.
    """
    job = session.job
    arguments, files = _arguments(job, inputs)
    made = composition.make_sandbox(
        sandbox, session=session.id, registry_secret=job.registry_secret
    )
    cache = RunCache(composition.session_folder(session.id) / "runs")
    runs = Remembering(made, cache, job.cache)
    try:
        spec = _spec(session, await _image(runs, session), arguments, files)
        outcome = _moved(await runs.run(spec), output_dir)
    finally:
        await (runs.forget() if made is sandbox else runs.close())
    _check(outcome)
    try:
        return typed(job.outputs, {file.name: file for file in outcome.outputs}), outcome
    except ValueError as error:
        raise RunFailed(str(error), outcome) from None


async def _image(sandbox: Sandbox, session: Session) -> ImageRef:
    """Find the image again, or build it if it was pruned."""
    built = await sandbox.build(session.spec)
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


def _arguments(job: Job, given: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[HostFile, ...]]:
    known = {d.name for d in job.inputs}
    for name in given:
        if name not in known:
            raise ValueError(f"{name}: there is no such input; there are {_listed(known)}")
    arguments: list[str] = []
    files: list[HostFile] = []
    for declared in job.inputs:
        value, file = _argument(declared, job, given)
        arguments += [f"--{declared.name}", value]
        files += [file] if file else []
    return tuple(arguments), tuple(files)


def _argument(
    declared: Declared, job: Job, given: Mapping[str, Any]
) -> tuple[str, HostFile | None]:
    samples = {sample.name: sample.path for sample in job.samples}
    value = given.get(declared.name, samples.get(declared.name))
    if value is None:
        raise ValueError(f"{declared.name}: this input has no value and no sample")
    if declared.type in {"File", "Dir"}:
        file = _host_file(declared, value)
        return f"{INPUTS}/{file.name}", file
    return _text(declared, value), None


def _host_file(declared: Declared, value: Any) -> HostFile:
    path = value.path if isinstance(value, File | Dir) else Path(value).expanduser()
    if not path.exists():
        raise ValueError(f"{declared.name}: there is no file {path}")
    return HostFile(name=declared.name + path.suffix, path=str(path.resolve()))


def _text(declared: Declared, value: Any) -> str:
    """Return a value as the text of an option, after checking that it has its type."""
    try:
        match declared.type:
            case "int":
                return str(int(value))
            case "float":
                return repr(float(value))
            case "bool":
                return str(value).lower() if isinstance(value, bool) else _bool_text(value)
            case "datetime":
                return (value if isinstance(value, datetime) else _moment(value)).isoformat()
            case "timedelta":
                seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
                return repr(seconds)
    except (TypeError, ValueError):
        raise ValueError(f"{declared.name}: {value!r} is no {declared.type}") from None
    return str(value)


def _bool_text(value: Any) -> str:
    if str(value).lower() not in {"true", "false"}:
        raise ValueError
    return str(value).lower()


def _moment(value: Any) -> datetime:
    return datetime.fromisoformat(str(value))


def _moved(outcome: RunOutcome, output_dir: str | Path | None) -> RunOutcome:
    """Put outputs where the caller wants them, before the sandbox goes away."""
    target = Path(output_dir) if output_dir else Path(tempfile.mkdtemp(prefix="codetape-outputs-"))
    target.mkdir(parents=True, exist_ok=True)
    moved = tuple(_moved_file(file, target) for file in outcome.outputs)
    return outcome.model_copy(update={"outputs": moved})


def _moved_file(file: OutputFile, target: Path) -> OutputFile:
    place = target / file.name
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    shutil.move(file.path, place)
    return file.model_copy(update={"path": str(place)})


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


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
