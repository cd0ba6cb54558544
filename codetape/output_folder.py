"""The folder that outputs of a run are put into, where nothing that lies there is lost unasked."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from codetape.states.values import OutputFile, RunOutcome


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder, and a new one inside it in which outputs are gathered before they are named."""

    path: Path
    gathered: Path
    overwrite: bool

    def take(self, outcome: RunOutcome) -> RunOutcome:
        """Move all outputs here. Raises ValueError that says where they are if that fails."""
        try:
            for file in outcome.outputs:
                shutil.move(file.path, self.gathered / file.name)
        except OSError as error:
            shutil.rmtree(self.gathered, ignore_errors=True)
            raise _unusable(self.path, error) from None
        moved = tuple(self._placed(file) for file in outcome.outputs)
        shutil.rmtree(self.gathered, ignore_errors=True)
        return outcome.model_copy(update={"outputs": moved})

    def _placed(self, file: OutputFile) -> OutputFile:
        """Name an output. What came to lie there since the run began is not replaced unasked."""
        place = self.path / file.name
        try:
            if os.path.lexists(place):
                self._set_aside(place)
            (self.gathered / file.name).rename(place)
        except (OSError, ValueError) as error:
            raise ValueError(f"{error}; outputs of the run are in {self.gathered}") from None
        return file.model_copy(update={"path": str(place)})

    def _set_aside(self, place: Path) -> None:
        """Move away what lies there; of a link, the link alone."""
        if not self.overwrite:
            raise _taken(place)
        place.rename(Path(tempfile.mkdtemp(prefix=".old-", dir=self.gathered)) / place.name)


@contextmanager
def opened(
    given: str | Path | None, names: Iterable[str], inputs: Iterable[Path], *, overwrite: bool
) -> Iterator[OutputFolder]:
    """Make the folder for outputs, before the run: afterwards what came out would be lost.

    Raises ValueError if an output would replace something, which `overwrite` allows, unless an input
    or the working directory lies there.
    """
    folder = Path(given) if given else Path(tempfile.mkdtemp(prefix="codetape-outputs-"))
    kept = [Path.cwd(), *(file.resolve() for file in inputs)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            _check(folder, name, kept, overwrite=overwrite)
        gathered = Path(tempfile.mkdtemp(prefix=".outputs-", dir=folder))
    except OSError as error:
        raise _unusable(folder, error) from None
    try:
        yield OutputFolder(folder, gathered, overwrite)
    finally:
        if gathered.exists() and not any(gathered.iterdir()):
            gathered.rmdir()


def _check(folder: Path, name: str, kept: Iterable[Path], *, overwrite: bool) -> None:
    if name in {"", ".", ".."} or "\0" in name or Path(name).name != name:
        raise ValueError(f"output {name!r} is no name of a file")
    place = folder / name
    if not os.path.lexists(place):
        return
    if not overwrite:
        raise _taken(place)
    real = folder.resolve() / name
    for path in kept:
        if path == real or real in path.parents:
            raise ValueError(f"output_dir: {place} would be replaced, and {path} is needed")


def _taken(place: Path) -> ValueError:
    kind = "folder" if place.is_dir() else "file"
    return ValueError(
        f"output_dir: the {kind} {place} is there already; overwrite (--overwrite) replaces it"
    )


def _unusable(folder: Path, error: OSError) -> ValueError:
    return ValueError(f"output_dir: {folder}: {error.strerror or error}")
