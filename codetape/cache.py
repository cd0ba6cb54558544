"""Finished runs kept by content: the same code on the same data need not run twice."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from codetape.states.values import HostFile, OutputFile, RunOutcome, RunSpec, canonical

PIECE = 1 << 20
"""Bytes of a file that are read at a time."""


class RunCache:
    """Outcomes of runs below a folder, which is made when it is needed. Safe for many processes.

    A run that failed, or that might have used the network, is never kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, spec: RunSpec) -> RunOutcome | None:
        """Return the outcome of an equal run, with copies of its outputs, or None."""
        entry = self._folder / key_of(spec)
        try:
            outcome = RunOutcome.model_validate_json((entry / "outcome.json").read_bytes())
        except FileNotFoundError:
            return None
        place = Path(tempfile.mkdtemp(prefix="codetape-cached-"))
        outputs = tuple(_copied(file, entry / "outputs", place) for file in outcome.outputs)
        return outcome.model_copy(update={"outputs": outputs, "cached": True})

    def keep(self, spec: RunSpec, outcome: RunOutcome) -> None:
        """Keep a run, whole or not at all."""
        if outcome.exit_status != 0 or outcome.timed_out or spec.network:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(dir=self._folder, prefix=".new-"))
        (made / "outputs").mkdir()
        for file in outcome.outputs:
            _copied(file, Path(file.path).parent, made / "outputs")
        (made / "outcome.json").write_text(outcome.model_dump_json(), encoding="utf-8")
        entry = self._folder / key_of(spec)
        shutil.rmtree(entry, ignore_errors=True)
        try:
            made.rename(entry)
        except OSError:  # another process was faster, with an equal run
            shutil.rmtree(made, ignore_errors=True)


def _copied(file: OutputFile, source: Path, target: Path) -> OutputFile:
    if file.is_folder:
        shutil.copytree(source / file.name, target / file.name, symlinks=True)
    else:
        shutil.copyfile(source / file.name, target / file.name)
    return file.model_copy(update={"path": str(target / file.name)})


def key_of(spec: RunSpec) -> str:
    """Return the key of a run: all that it says, and the content of the files that it is given.

    The values of secrets count, by their hash alone.
    """
    facts = spec.model_dump(
        mode="json", exclude={"host_files": True, "image": {"cached", "seconds"}}
    )
    facts["host_files"] = {file.name: _content(file) for file in spec.host_files}
    secrets = [os.environ.get(name, "") for name in spec.secrets]
    facts["secret_values"] = [hashlib.sha256(value.encode()).hexdigest() for value in secrets]
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
