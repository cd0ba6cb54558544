"""What a tape may do here. A tape is data and grants no authority.

A session that this user opened here may do what its job says. For any other one each field that
touches the host is told, and needs an explicit yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codetape.composition import SANDBOXES
from codetape.confining import check_names, folder_below
from codetape.engine.ports import EventStore
from codetape.engine.visible import in_one_line
from codetape.marks import is_marked, mark
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.values import ImageRef, Limits

Act = Literal["sandbox", "run", "model", "folder", "image"]
"""A thing that a command does: run code in the sandbox that the tape names, or in the caller's own;
ask a model, write into the folder of a tool, run in the image that the tape names."""

LONGEST = 200
"""Characters of a value that are told."""

MOST = 20
"""Fields that one refusal tells; the next one tells the others."""

HARMLESS = {
    *("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "stop"),
    *("presence_penalty", "frequency_penalty", "reasoning_effort", "verbosity"),
}
"""Parameters of a model that say nothing of where a call goes, and with which key."""


@dataclass(frozen=True, kw_only=True)
class Authority:
    """What the tape of another user or machine may do here; nothing if nothing is named.

    `sandbox` names one that isolates nothing. `network` gives its code a network. `secrets` are the
    variables whose values are used, keys of models and registries among them. `files` reads the samples
    that it names and writes into the folder of its tool: all, or those at or below these paths.
    `address` sends calls where it says: anywhere, or to these addresses. `environment` sets its
    variables. `image` takes its image, its base image and its commands. `limits` lets a run use more
    than by default. `packages` may be installed; a policy decides on all others.
    """

    sandbox: str | None = None
    network: bool = False
    secrets: Iterable[str] = ()
    files: bool | str | Path | Iterable[str | Path] = False
    address: bool | str | Iterable[str] = False
    environment: bool = False
    image: bool = False
    limits: bool = False
    packages: Iterable[str] = ()

    def __post_init__(self) -> None:
        """Take one name for a list of one. Raises ValueError: a name is never a part of another."""
        for name in ("secrets", "packages", "files", "address"):
            given = getattr(self, name)
            if isinstance(given, bool):
                if name in ("secrets", "packages"):
                    raise ValueError(f"authority: {name} are granted by their names")
                continue
            listed = (given,) if isinstance(given, str | Path) else tuple(given)
            object.__setattr__(self, name, tuple(map(str, listed)))


@dataclass(frozen=True, slots=True)
class Need:
    """A field of a tape that touches the host, its value, and the grant that it needs."""

    grant: str
    field: str
    value: Any

    def __str__(self) -> str:
        """One line, escaped and bounded."""
        value = str(self.value)
        told = value if len(value) <= LONGEST else f"{value[:LONGEST]} …"
        return f"{in_one_line(self.field)}: {in_one_line(told)}"


class NotGranted(ValueError):
    """A tape that was not made here wants what it was not allowed: `session`, `needs`."""

    def __init__(self, session: str, needs: tuple[Need, ...]) -> None:
        more = f"\nand {len(needs) - MOST} more" if len(needs) > MOST else ""
        told = "\n".join(map(str, needs[:MOST])) + more
        grants = ",".join(dict.fromkeys(in_one_line(need.grant) for need in needs[:MOST]))
        super().__init__(
            f"session {in_one_line(session)} is not as you opened it here, and it wants:\n{told}\n"
            f"Nothing was run, read or sent. If you trust it, add: --allow {_quoted(grants)}"
        )
        self.session = session
        self.needs = needs


def _quoted(grants: str) -> str:
    import shlex

    return shlex.quote(grants)


def permit(
    store: object,
    session: Session,
    authority: Authority | None,
    acts: Iterable[Act],
    job: Job | None = None,
) -> bool:
    """Say whether this user opened the session here; check what another one was granted.

    `job` is the one on its tape, where the session's was changed since. Raises NotGranted, and
    ValueError for names and paths of another one that lead out of their folders.
    """
    asked, given, done = job or session.job, authority or Authority(), tuple(acts)
    ours = is_marked(store, session.id, asked, session.allowed)
    wanted = _widened(session, asked, done) if ours else needs(session, done, asked)
    if missing := tuple(need for need in wanted if not _granted(need, given)):
        raise NotGranted(session.id, missing)
    if not ours:
        check_names(asked)
    if not ours and "folder" in done:
        folder_below(asked.name, Path.cwd())
    return ours


def allowed_anyway(
    store: object, session: Session, authority: Authority | None, job: Job | None = None
) -> tuple[str, ...]:
    """Return the packages and commands that an image may have, whatever its events say.

    They are granted now, or commands that the gate let through in a run of this user.
    """
    given, commands = authority or Authority(), session.spec.commands
    marked = is_marked(store, session.id, job or session.job, (*session.allowed, *commands))
    return (*given.packages, *(commands if given.image or marked else ()))


def mark_image(store: EventStore, before: ImageRef | None, session: Session) -> None:
    """Mark the commands of an image that this process has built: its gate let them through.

    `before` is the image that the session began with here.
    """
    built, commands = session.image, session.spec.commands
    new = built is not None and (before is None or before.spec_key != built.spec_key)
    if (
        new
        and built
        and built.spec_key == session.spec.key
        and set(commands) - {*session.job.commands}
    ):
        mark(store, session.id, session.job, (*session.allowed, *commands))


def needs(session: Session, acts: tuple[Act, ...], job: Job) -> Iterator[Need]:
    """Yield the fields that these acts would use and that touch the host."""
    if "sandbox" in acts:
        yield from _of_a_sandbox(session, job)
    if "sandbox" in acts or "run" in acts:
        yield from _of_a_run(session, job)
    if "image" in acts and session.image is not None:
        yield Need("image", "its image", session.image.ref)
    if "model" in acts:
        yield from _of_a_call(job)
    if "folder" in acts:
        yield Need("files", "folder of the tool", job.name)


def _widened(session: Session, job: Job, acts: tuple[Act, ...]) -> Iterator[Need]:
    """Yield the sandbox of an event, if the marked job does not name it: no key covers events."""
    if "sandbox" in acts:
        yield from (need for need in _of_a_sandbox(session, job) if need.value != job.sandbox)


def _of_a_sandbox(session: Session, job: Job) -> Iterator[Need]:
    for name in dict.fromkeys((session.sandbox_name, job.sandbox)):
        if name not in SANDBOXES or name == "process":
            yield Need(f"sandbox={name}", "sandbox", name)


def _of_a_run(session: Session, job: Job) -> Iterator[Need]:
    if job.network_access:
        yield Need("network", "network_access", "yes")
    for name in job.secrets:
        yield Need(f"secrets={name}", "secret", name)
    for sample in job.samples:
        yield Need("files", f"sample {sample.name}", sample.path)
    for name, value in job.environment.items():
        yield Need("environment", f"variable {name}", value)
    if job.base_image:
        yield Need("image", "base_image", job.base_image)
    if job.registry_secret:
        yield Need(f"secrets={job.registry_secret}", "registry_secret", job.registry_secret)
    for limit, usual in Limits():
        value = getattr(job.limits, limit)
        if value is None or value > usual:
            yield Need("limits", f"limit of {limit}", "none" if value is None else value)
    for command in dict.fromkeys((*job.commands, *session.asked_commands)):
        yield Need("image", "command", command)


def _of_a_call(job: Job) -> Iterator[Need]:
    if job.api_base:
        yield Need("address", "api_base", job.api_base)
    if job.api_key:
        yield Need(f"secrets={job.api_key}", "api_key", job.api_key)
    for model in dict.fromkeys(_models(job)):
        if "://" in model:  # for some providers a name is an address, to which their key is sent
            yield Need("address", "model", model)
    for name, value in job.parameters.items():
        if name not in HARMLESS:
            yield Need("address", f"parameter {name}", value)


def _granted(need: Need, given: Authority) -> bool:
    kind, _, value = need.grant.partition("=")
    if kind == "sandbox":
        return given.sandbox == value
    if kind == "secrets":
        return value in given.secrets
    allowed = getattr(given, kind)
    if isinstance(allowed, bool):
        return allowed
    if kind == "files":
        return any(_is_below(Path(str(need.value)), Path(each)) for each in allowed)
    return need.value in allowed


def _is_below(path: Path, folder: Path) -> bool:
    """Say whether a path leads to a folder or into it; what is no path leads nowhere."""
    try:
        return path.expanduser().resolve().is_relative_to(folder.expanduser().resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def _models(job: Job) -> Iterator[str]:
    yield from (job.model, *job.models.values(), *job.fallback_models)
    yield from (persona.model for persona in job.personas)


FLAGS = ("network", "files", "address", "environment", "image", "limits")
NAMED = ("sandbox=", "secrets=", "files=", "address=")


def read_grants(texts: Iterable[str]) -> Authority:
    """Return what the words of `--allow` grant: `sandbox=process,network,secrets=DB_PASSWORD,files`.

    A word that is no grant's name is a package: `network>=0` is the package of that name.
    """
    granted: dict[str, Any] = {"secrets": (), "packages": ()}
    for word in _words(texts):
        name, equals, value = word.partition("=")
        if word in FLAGS:
            granted[word] = True
        elif name + equals in NAMED and value and value[0] != "=":
            granted[name] = value if name == "sandbox" else _added(granted.get(name, ()), value)
        else:
            granted["packages"] = (*granted["packages"], word)
    return Authority(**granted)


def _added(known: bool | tuple[str, ...], value: str) -> bool | tuple[str, ...]:
    """Add a value to those that are granted; all of them are more."""
    return known if isinstance(known, bool) else (*known, value)


def _words(texts: Iterable[str]) -> Iterator[str]:
    """Yield the grants of a list; a text that begins with none is a package or a command, as it is."""
    for text in texts:
        words = text.split(",")
        first = words[0].strip()
        listed = first in FLAGS or first.startswith(NAMED)
        yield from (filter(None, map(str.strip, words)) if listed else (text,))
