"""Names and paths that a tape brings: each stays in the folder that it belongs to."""

from __future__ import annotations

import os
from pathlib import Path

from codetape import validation
from codetape.engine.visible import in_one_line
from codetape.states.job import Job, Sample

LONGEST = 255
"""Bytes of a name that file systems take."""


def check_names(job: Job) -> None:
    """Check the names of files in a job that others wrote. Raises ValueError."""
    validation.declared("inputs", {d.name: d.type for d in job.inputs})
    validation.declared("outputs", {d.name: d.type for d in job.outputs})
    validation.sample_names({sample.name: sample for sample in job.samples})
    for sample in job.samples:
        _check_file(sample)


def _check_file(sample: Sample) -> None:
    """A sample is named in the sandbox as its input is, with the ending of its file."""
    if not is_plain(sample.file) or not sample.file.startswith(sample.name):
        raise ValueError(f"sample {sample.name}: {_told(sample.file)} is no name of its file")


def folder_below(name: str, here: Path) -> Path:
    """Return a folder that a tape of others names, below `here`. Raises ValueError."""
    parts = [] if name == "." else name.split("/")
    if not all(map(is_plain, parts)):
        raise ValueError(
            f"project: {_told(name)} comes from a tape that was not made here, "
            "and is no plain path below this folder"
        )
    below = here.joinpath(*parts)
    check_inside(below, here)
    return below


def check_inside(path: Path, folder: Path) -> None:
    """Raise ValueError if a link leads `path` out of its folder."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"project: a link leads {_told(str(path))} out of {_told(str(folder))}")


def is_plain(name: str) -> bool:
    """Say whether a text is the name of a file that is not hidden, in one visible line."""
    return (
        in_one_line(name) == name
        and not {"/", "\\"} & set(name)
        and not name.startswith((".", "~", "-"))
        and name == name.strip()
        and 0 < len(os.fsencode(name)) <= LONGEST
    )


def _told(text: str) -> str:
    return in_one_line(text if len(text) <= LONGEST else f"{text[:LONGEST]} …")
