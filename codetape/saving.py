"""A solution as a folder that works without codetape."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from codetape.adapters.sandbox.installers import acceptable
from codetape.engine.visible import escaped, in_one_line, safe
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.values import Declared

BASE = "docker.io/library/python:{}-slim"
"""The base of a saved Containerfile whose job names none that others have; a Python goes in."""

PYTHON = "3.12"
"""The Python of a saved Containerfile whose session had no image."""

VENV = "/opt/venv"
"""Where packages go, as in the sandbox: the Python of a Linux system takes none itself."""


def save(session: Session, folder: Path) -> tuple[Path, ...]:
    """Write the newest code with its tests, requirements, Containerfile and README.

    Returns the files, which replace older ones of the same name. Raises ValueError if there is no
    code yet.
    """
    if session.code is None:
        raise ValueError(f"session {session.id} has no code to save")
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "solution.py": session.code.source,
        "test_solution.py": session.tests.source if session.tests else "",
        "requirements.txt": "".join(map(_required, session.spec.requirements)),
        "Containerfile": containerfile(session),
        "README.md": readme(session),
    }
    return tuple(_written(folder / name, text) for name, text in texts.items() if text)


def _required(name: str) -> str:
    """A line of requirements.txt. What is no plain requirement, as an option of pip, is left out."""
    return f"{name}\n" if acceptable(name) else f"# left out: {in_one_line(name)}\n"


def _written(file: Path, text: str) -> Path:
    if file.is_symlink():
        file.unlink()
    file.write_text(text, encoding="utf-8")
    return file


def containerfile(session: Session) -> str:
    """Return a Containerfile for the image that the code was tested in, with the code in it."""
    spec = session.spec
    lines = [
        f"FROM {_base(session)}",
        f"RUN python3 -m venv --system-site-packages {VENV}",
        f"ENV PATH={VENV}/bin:$PATH",
    ]
    if spec.system_packages:
        names = " ".join(map(_word, spec.system_packages))
        lines.append(
            "RUN apt-get update && apt-get install -y --no-install-recommends "
            f"{names} && rm -rf /var/lib/apt/lists/*"
        )
    if spec.requirements:
        lines.append("COPY requirements.txt /tmp/requirements.txt")
        lines.append("RUN pip install --no-cache-dir -r /tmp/requirements.txt")
    lines += [f"RUN {_command(command)}" for command in spec.commands]
    lines.append("COPY *.py /app/")
    lines.append('ENTRYPOINT ["python", "/app/solution.py"]')
    return "\n".join(lines) + "\n"


def _command(text: str) -> str:
    """A command in one line of a Containerfile, and the same command where it has several."""
    return text if in_one_line(text) == text else json.dumps(["/bin/sh", "-c", text])


def _base(session: Session) -> str:
    """Return the job's own base, or one with the Python that the code was tested with."""
    spec, image = session.spec, session.image
    if spec.base and not spec.base.startswith("localhost/"):
        return in_one_line(spec.base)
    return BASE.format(spec.python or (image and image.python) or PYTHON)


def readme(session: Session) -> str:
    """Return a README that says what this is and how to test and run it."""
    job = session.job
    parts = [
        f"# {_title(job.name)}",
        _quoted(job.prompt),
        _interface(job),
        "## Test it",
        _testing(session),
    ]
    parts += ["## Run it", *_variables(job), _running(job)]
    return "\n\n".join(parts) + "\n"


def _title(name: str) -> str:
    """A name is one line, and no markup."""
    line = " ".join(safe(name).split())
    return line.replace("&", "&amp;").replace("<", "&lt;").replace("[", "&#91;")


def _quoted(text: str) -> str:
    """A request that could be markup stands there as code."""
    indent = "    " if set(text) & {"<", "["} else ""
    return "\n".join(f"> {indent}{line}".rstrip() for line in escaped(text).split("\n"))


def _interface(job: Job) -> str:
    lines = [f"- input {_name(f'--{d.name}')}: {d.type}" for d in job.inputs]
    lines += [f"- output {_name(f'/var/outputs/{d.name}')}: {d.type}" for d in job.outputs]
    return "\n".join(lines) or "It declares no inputs and outputs."


def _testing(session: Session) -> str:
    if session.tests is None:
        return "Tests were not asked for."
    state = "passed" if session.ending and session.ending.failure is None else "did not all pass"
    return (
        f"    pip install -r requirements.txt\n    pytest test_solution.py\n\n"
        f"These tests {state} when the code was written."
    )


def _variables(job: Job) -> list[str]:
    """Say what has to be set: the values are not in this folder, for they may be secret."""
    names = (*job.environment, *job.secrets)
    return (
        [f"It reads the variables {', '.join(map(_plain_name, names))}; set them first."]
        if names
        else []
    )


def _running(job: Job) -> str:
    network = "" if job.network_access else " --network none"
    variables = "".join(f" -e {_word(name)}" for name in (*job.environment, *job.secrets))
    options = " ".join(f"{_word(f'--{d.name}')} {_example(job, d)}" for d in job.inputs)
    return (
        "    mkdir -p inputs outputs && chmod 777 outputs    # put the input files into inputs/\n"
        "    podman build -t solution .\n"
        f"    podman run --rm{network}{variables} \\\n"
        "        -v ./inputs:/var/inputs:ro -v ./outputs:/var/outputs \\\n"
        f"        solution {options}".rstrip()
    )


def _example(job: Job, declared: Declared) -> str:
    files = {sample.name: sample.file for sample in job.samples}
    if declared.type in {"File", "Dir"}:
        return _word(f"/var/inputs/{files.get(declared.name, declared.name)}")
    return f"<{declared.type}>"


def _name(text: str) -> str:
    """A name as code, in one line that it cannot end."""
    line = in_one_line(text).replace("`", "'")
    return f"`{line}`"


def _plain_name(text: str) -> str:
    """A name as it stands; what is none of a variable, as code."""
    return text if text.isidentifier() else _name(text)


def _word(text: str) -> str:
    """A word of a command, in one line."""
    return shlex.quote(in_one_line(text))
