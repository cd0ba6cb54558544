"""What a tape may do here. A tape is data and grants no authority.

A session that this user opened here may do what its job says. For any other one each field that
touches the host is told, and needs an explicit yes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetape.confining import check_names, folder_below
from codetape.engine.ports import EventStore
from codetape.engine.visible import in_one_line
from codetape.marks import has_marked_budget, is_marked, mark_job
from codetape.needs import Act, Need, needs, of_events
from codetape.states.job import Job
from codetape.states.session import Session
from codetape.states.values import ImageRef

MOST = 20
"""Fields that one refusal tells; the next one tells the others."""


@dataclass(frozen=True, kw_only=True)
class Authority:
    """What the tape of another user or machine may do here; nothing if nothing is named.

    `sandbox` names one that isolates nothing. `network` gives its code a network. `secrets` are the
    variables whose values are used, keys of models and registries among them. `files` reads the samples
    that it names and writes into the folder of its tool: all, or those at or below these paths.
    `address` sends calls where it says: anywhere, or to these addresses. `environment` sets its
    variables. `image` takes its base image and its commands. `limits` lets a run use more
    than by default, `budget` a session spend what it says. `packages` may be installed; a policy
    decides on all others.
    """

    sandbox: str | None = None
    network: bool = False
    secrets: Iterable[str] = ()
    files: bool | str | Path | Iterable[str | Path] = False
    address: bool | str | Iterable[str] = False
    environment: bool = False
    image: bool = False
    limits: bool = False
    budget: bool = False
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


class NotGranted(ValueError):
    """A tape that was not made here wants what it was not allowed: `session`, `needs`."""

    def __init__(self, session: str, needs: tuple[Need, ...]) -> None:
        more = f"\nand {len(needs) - MOST} more" if len(needs) > MOST else ""
        told = "\n".join(map(str, needs[:MOST])) + more
        super().__init__(
            f"session {in_one_line(session)} is not as you opened it here, and it wants:\n{told}\n"
            f"Nothing was run, read or sent. If you trust it, add: {shlex.join(options(needs[:MOST]))}"
        )
        self.session = session
        self.needs = needs


def options(needs: Iterable[Need]) -> list[str]:
    """Return the words that grant these on a command line: each package or command stands alone."""
    grants = dict.fromkeys(in_one_line(need.grant) for need in needs)
    listed = ",".join(grant for grant in grants if _is_listed(grant))
    alone = [grant for grant in grants if not _is_listed(grant)]
    return [word for text in (listed, *alone) if text for word in ("--allow", text)]


def permit(
    store: object,
    session: Session,
    authority: Authority | None,
    acts: Iterable[Act],
    job: Job | None = None,
    uses: Job | None = None,
) -> bool:
    """Say whether this user opened the session here; check what another one was granted.

    `job` is the one on its tape, where the session's was changed since; `uses` is what is used of it.
    Raises NotGranted, and ValueError for names and paths of another one that lead out of their folders.
    """
    asked = job or session.job
    ours = is_marked(store, session.id, asked, session.allowed)
    spends = has_marked_budget(store, session.id, asked.budget)
    admit(session, authority, tuple(acts), uses or asked, ours=ours, spends=spends)
    if not ours:
        check_names(asked)
    return ours


def admit(
    session: Session,
    authority: Authority | None,
    acts: tuple[Act, ...],
    job: Job,
    *,
    ours: bool,
    spends: bool,
) -> None:
    """Check what a session was granted; `ours` is one of this user, and `spends` its budget too.

    Raises as `permit` does.
    """
    if missing := lacking(session, authority, acts, job, ours=ours, spends=spends):
        raise NotGranted(session.id, missing)
    if ours:
        return
    check_names(job)
    if "folder" in acts:
        folder_below(job.name, Path.cwd())


def lacking(
    session: Session,
    authority: Authority | None,
    acts: tuple[Act, ...],
    job: Job,
    *,
    ours: bool,
    spends: bool,
) -> tuple[Need, ...]:
    """Return what a session wants and was not granted; see `admit`."""
    given, wanted = authority or Authority(), of_events if ours else needs
    missing = (need for need in wanted(session, acts, job) if not _granted(need, given))
    return tuple(need for need in missing if not (spends and need.grant == "budget"))


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
        mark_job(store, session.id, session.job, (*session.allowed, *commands))


def _granted(need: Need, given: Authority) -> bool:
    kind, _, value = need.grant.partition("=")
    if need.field in ("package", "command") and kind != "image":
        return need.grant in given.packages
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


FLAGS = ("network", "files", "address", "environment", "image", "limits", "budget")
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
        listed = _is_listed(words[0].strip())
        yield from (filter(None, map(str.strip, words)) if listed else (text,))


def _is_listed(word: str) -> bool:
    """Say whether a word may stand with others between commas."""
    return word in FLAGS or word.startswith(NAMED)
