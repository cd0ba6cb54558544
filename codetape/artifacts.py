"""What a tool maker leaves in its project's folder: the tool, and a report of how it was made."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from codetape.confining import check_inside
from codetape.engine.ports import EventStore, StoreError
from codetape.engine.visible import in_one_line
from codetape.learning import library_of
from codetape.states.framing import cut, fenced
from codetape.states.tools.ending import harness_status, status
from codetape.states.tools.session import ToolSession

_log = logging.getLogger(__name__)

FOLDER = "implementation"


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The paths of the tool and of its report; None where there was nothing to write."""

    tool: Path | None
    report: Path | None


def paths(project: Path, began: str) -> tuple[Path, Path]:
    """Return where the tool and its report of a session go that began then, in ISO 8601.

    A tape of others may have anything there: what is no time is never a part of a path.
    """
    stamp = re.sub(r"[-:]", "", began[:26]).replace("T", "_").replace(".", "_")
    if not re.fullmatch(r"[0-9]{8}_[0-9]{6}(_[0-9]{1,6})?", stamp):
        stamp = hashlib.sha256(began.encode("utf-8", "replace")).hexdigest()[:16]
    folder = project / FOLDER
    return folder / f"{stamp}_tool.py", folder / f"{stamp}_tool_implementation.md"


def found(project: Path, began: str) -> Artifacts:
    """Return which of the files of a session are there."""
    tool, report = paths(project, began)
    return Artifacts(tool if _exists(tool) else None, report if _exists(report) else None)


def _exists(path: Path) -> bool:
    """A tape of others may name a path that can not be."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def check(project: Path) -> None:
    """Make the folder for the files of a project, as long as nothing is paid. Raises ValueError."""
    folder = project / FOLDER
    check_inside(folder, project)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"project: {folder} cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"project: {folder} cannot be written")


def kept(session: ToolSession, project: Path, began: str) -> Artifacts:
    """Write what there is; a session writes the same files again.

    What cannot be written is None, and the log says so: the tape has it all the same.
    """
    tool, report = paths(project, began)
    return Artifacts(
        _kept(tool, session.code.source) if session.code else None,
        _kept(report, in_words(session)) if session.findings else None,
    )


def _kept(path: Path, text: str) -> Path | None:
    try:
        check_inside(path.parent, path.parent.parent)
        write_whole(path, text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        _log.warning("%s could not be written: %s", in_one_line(str(path)), reason)
        return None
    return path


def listed(store: EventStore, session: str, made: Artifacts, at: str) -> None:
    """List the files in the store; where that cannot be, say so: the files are there."""
    try:
        with library_of(store) as library:
            for kind, path in (("tool", made.tool), ("report", made.report)):
                if path is not None:
                    library.add_artifact(session, kind, str(path.absolute()), at)
    except StoreError as error:
        _log.warning("the files of session %s are not listed: %s", session, error)


def write_whole(path: Path, text: str) -> None:
    """Put `text` in the place of a file, so that nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def in_words(session: ToolSession) -> str:
    """Return the report: the request, what each persona found, and how the execution went."""
    parts = [f"# {_title(session.job.prompt)}", f"## Request\n\n{session.job.prompt.strip()}"]
    parts += [f"## {f.persona}\n\n{f.text.strip()}" for f in session.findings]
    parts.append(f"## Execution\n\n{_execution(session)}")
    return "\n\n".join(parts) + "\n"


def _title(prompt: str) -> str:
    return prompt.strip().split("\n")[0][:100]


def _execution(session: ToolSession) -> str:
    reason = session.ending.reason if session.ending else session.paused or "it was interrupted"
    facts = {
        "status": status(session) or "not done",
        "why": reason,
        "fix cycles": session.fixes,
        "logic repairs": session.logic_repairs,
        "harness": harness_status(session),
        "session": session.id,
    }
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    return "\n".join(lines) + _printed(session)


def _printed(session: ToolSession) -> str:
    """What the tool printed when it last ran, without its harness."""
    run = session.script_run
    said = {"stdout": run.stdout.strip(), "stderr": run.stderr.strip()} if run else {}
    return "".join(
        f"\n\nIt printed on {name}:\n\n{_block(text)}" for name, text in said.items() if text
    )


def _block(text: str) -> str:
    return fenced(f"{cut(text)}\n").replace("python", "text", 1)
