"""Finished runs kept by content: the same code on the same data need not run twice."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from codetape.adapters.sandbox.leftovers import Outputs
from codetape.adapters.sandbox.runner import archive
from codetape.engine.ports import Sandbox
from codetape.states.values import (
    BuildFailure,
    HostFile,
    ImageRef,
    ImageSpec,
    OutputFile,
    RunOutcome,
    RunSpec,
    canonical,
)

PIECE = 1 << 20
"""Bytes of a file that are read at a time."""

MOST = 500
"""Runs that are kept; beyond that the one goes that was not asked for the longest."""

NEW = ".new-"
"""How the name of an entry begins while it is made."""

HALVES = 64
"""More are not made at the same time; the others were left by processes that were killed."""

Use = Literal["auto", "override", "disable"]


class RunCache:
    """Outcomes of runs below a folder, which is made when it is needed. Safe for many processes.

    A run that failed, that might have used the network, or that was given secrets is never kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, spec: RunSpec, place: Path) -> RunOutcome | None:
        """Return the outcome of an equal run, with copies of its outputs in `place`, or None."""
        entry = self._folder / key_of(spec)
        try:
            outcome = RunOutcome.model_validate_json((entry / "outcome.json").read_bytes())
            outputs = tuple(_copied(file, entry / "outputs", place) for file in outcome.outputs)
            os.utime(entry)
        except (OSError, ValueError):  # none, or one that another process takes away
            return None
        return outcome.model_copy(update={"outputs": outputs, "cached": True})

    def keep(self, spec: RunSpec, outcome: RunOutcome) -> None:
        """Keep a run, whole or not at all. Where nothing can be written, it is not kept."""
        ends = [outcome.exit_status, *([outcome.script.exit_status] if outcome.script else [])]
        if any(ends) or None in ends or outcome.timed_out or spec.network or spec.secrets:
            return
        with contextlib.suppress(OSError):
            self._keep(spec, outcome)
            self._forget()

    def _keep(self, spec: RunSpec, outcome: RunOutcome) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(dir=self._folder, prefix=NEW))
        try:
            (made / "outputs").mkdir()
            for file in outcome.outputs:
                _copied(file, _parent(file), made / "outputs")
            (made / "outcome.json").write_text(outcome.model_dump_json(), encoding="utf-8")
            entry = self._folder / key_of(spec)
            shutil.rmtree(entry, ignore_errors=True)
            made.rename(entry)
        except OSError:  # a full disk; or another process was faster, with an equal run
            shutil.rmtree(made, ignore_errors=True)

    def _forget(self) -> None:
        """Let go of the oldest, and of what killed processes have left half-made."""
        entries = sorted(self._folder.iterdir(), key=lambda entry: entry.stat().st_mtime)
        halves = [entry for entry in entries if entry.name.startswith(NEW)]
        whole = [entry for entry in entries if not entry.name.startswith(NEW)]
        for entry in (*whole[: max(0, len(whole) - MOST)], *halves[: max(0, len(halves) - HALVES)]):
            shutil.rmtree(entry, ignore_errors=True)


class Remembering:
    """A sandbox that takes equal runs from a cache, and says so in their outcomes; see RunCache.

    `use` "auto" takes them from there, "override" runs and keeps anew, "disable" does neither.
    """

    def __init__(self, sandbox: Sandbox, cache: RunCache, use: Use) -> None:
        self._sandbox = sandbox
        self._cache = cache
        self._use = use
        self._copies = Outputs(None, "")

    async def build(self, spec: ImageSpec) -> ImageRef | BuildFailure:
        """Build; see Sandbox."""
        return await self._sandbox.build(spec)

    async def run(self, spec: RunSpec) -> RunOutcome:
        """Run, unless an equal run is known."""
        if self._use == "auto" and (known := await asyncio.to_thread(self._find, spec)):
            return known
        outcome = await self._sandbox.run(spec)
        if self._use != "disable":
            await asyncio.to_thread(self._cache.keep, spec, outcome)
        return outcome

    def _find(self, spec: RunSpec) -> RunOutcome | None:
        return self._cache.find(spec, self._copies.place(uuid.uuid4().hex))

    async def close(self) -> None:
        """Close the sandbox, and remove the copies of outputs."""
        await self._sandbox.close()
        await self.forget()

    async def forget(self) -> None:
        """Remove the copies of outputs."""
        await asyncio.to_thread(self._copies.close)


def _copied(file: OutputFile, source: Path, target: Path) -> OutputFile:
    (target / file.name).parent.mkdir(parents=True, exist_ok=True)
    if file.is_folder:
        shutil.copytree(source / file.name, target / file.name, symlinks=True)
    else:
        shutil.copyfile(source / file.name, target / file.name)
    return file.model_copy(update={"path": str(target / file.name)})


def _parent(file: OutputFile) -> Path:
    """Return the folder in which the name of an output leads to it."""
    return Path(file.path.removesuffix(file.name))


def key_of(spec: RunSpec) -> str:
    """Return the key of a run: all that it says, the files that it is given, and who judges it."""
    facts = spec.model_dump(
        mode="json", exclude={"host_files": True, "image": {"cached", "seconds", "tool"}}
    )
    facts["host_files"] = {file.name: _content(file) for file in spec.host_files}
    facts["runner"] = hashlib.sha256(archive()).hexdigest()
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


def _content(file: HostFile) -> dict[str, str]:
    root = Path(file.path)
    return {str(path.relative_to(root)): _sha(path) for path in _files(root)}


def _files(root: Path) -> Iterator[Path]:
    if root.is_dir():
        yield from sorted(path for path in root.rglob("*") if path.is_file())
    else:
        yield root


def _sha(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
