"""The composition root: the one place where adapters are chosen. Entry points build here and call."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from codetape.engine.boundary import Boundary
from codetape.engine.ports import EventStore, Llm, Sandbox
from codetape.engine.tape import read, request_of
from codetape.states.job import Job
from codetape.states.packages import KINDS, name_of, permission
from codetape.states.values import Answer, CallFailure

if TYPE_CHECKING:
    from codetape.adapters.sandbox.gate import Policy
    from codetape.adapters.sandbox.kept import Storeroom
    from codetape.adapters.store.sqlite import SqliteStore
    from codetape.cache import Use

DEFAULT_STORE = "codetape.db"
SANDBOXES = ("auto", "podman", "bubblewrap", "process")
"""The sandboxes that have a name; auto is the first of podman and bubblewrap that works."""

POLICIES = ("known", "cautious", "ask")
"""The policies for packages that have a name."""

SCRIPTED = "scripted/"
"""The prefix of models whose answers are shipped with codetape."""


def store_path(given: str | None = None) -> str:
    """Where the tapes are: what was given, else the variable CODETAPE_STORE, else ./codetape.db."""
    return given or os.environ.get("CODETAPE_STORE") or DEFAULT_STORE


def open_store(given: str | Path | EventStore) -> EventStore:
    """Return a store as it is, or open the one at a path. Raises StoreUnusable."""
    if not isinstance(given, str | os.PathLike):
        return given
    from codetape.adapters.store.sqlite import SqliteStore

    return SqliteStore(given)


@contextmanager
def lent(given: str | Path | EventStore) -> Iterator[EventStore]:
    """Open a store for a while; one that was given open stays so.

    A file that is used later, by a result that reads from it, is opened again.
    """
    store = open_store(given)
    try:
        yield store
    finally:
        if store is not given:
            store.close()


def open_file(path: str | Path) -> SqliteStore:
    """Open the store at a path, for the care of its file. Raises StoreUnusable."""
    from codetape.adapters.store.sqlite import SqliteStore

    return SqliteStore(path)


def make_sandbox(
    given: str | Sandbox, *, session: str = "", registry_secret: str | None = None
) -> Sandbox:
    """Return a sandbox as it is, or make the one of a name. Nothing is started yet.

    What is made carries the name of the `session`; `registry_secret` is that of the job.
    """
    if not isinstance(given, str):
        return given
    from codetape.adapters.sandbox.auto import FirstWorking

    makers: dict[str, Callable[[], Sandbox]] = {
        "podman": partial(_podman, session, registry_secret),
        "bubblewrap": partial(_bubblewrap, session),
        "process": partial(_process, session),
    }
    if given == "auto":
        return FirstWorking({name: makers[name] for name in ("podman", "bubblewrap")})
    if given not in makers:
        raise ValueError(f"sandbox: {given!r} is none of {', '.join(SANDBOXES)}")
    return makers[given]()


def storerooms() -> dict[str, Storeroom]:
    """Return the places where builds are kept, by what they belong to."""
    from codetape.adapters.sandbox.environments import default_folder
    from codetape.adapters.sandbox.kept import EnvironmentRoom
    from codetape.adapters.sandbox.podman.storeroom import ImageRoom

    return {"podman": ImageRoom(), "environments": EnvironmentRoom(default_folder())}


def remembering(sandbox: Sandbox, use: Use) -> Sandbox:
    """Return a sandbox that takes equal runs of all sessions from the cache, if the caller wants it."""
    from codetape.cache import Remembering, RunCache

    return Remembering(sandbox, RunCache(_data_home() / "runs"), use)


def gated(
    sandbox: Sandbox, policy: str | Policy | None, job: Job, commands: Iterable[str] = ()
) -> Sandbox:
    """Return a sandbox that builds only what a policy allows; what the job lists is trusted, and so
    are these commands.

    Without a policy only commands are asked about, and no index.
    """
    from codetape.adapters.sandbox.gate import POLICIES, Gate, commands_asked
    from codetape.adapters.sandbox.index import NoIndex, UvIndex

    trusted = {
        *("pytest", *map(name_of, job.base_packages)),
        *(permission("system_package", name) for name in job.system_packages),
        *(permission("command", command) for command in (*job.commands, *commands)),
    }
    if policy is None:
        return Gate(sandbox, commands_asked, NoIndex(), trusted)
    chosen = POLICIES[policy] if isinstance(policy, str) else policy
    return Gate(sandbox, chosen, UvIndex(), trusted)


def gated_anew(sandbox: Sandbox, policy: str | Policy | None, packages: Iterable[str]) -> Sandbox:
    """Return a sandbox for a session that others opened: only `packages` are trusted, and no word of
    its tape. Without a policy only commands are asked about."""
    from codetape.adapters.sandbox.gate import POLICIES, Forgetting, Gate, commands_asked
    from codetape.adapters.sandbox.index import NoIndex, UvIndex

    trusted = {"pytest"}
    for name in packages:
        trusted |= {name, *(permission(kind, name) for kind in KINDS)}
    if policy is None:
        return Forgetting(Gate(sandbox, commands_asked, NoIndex(), trusted))
    chosen = POLICIES[policy] if isinstance(policy, str) else policy
    return Forgetting(Gate(sandbox, chosen, UvIndex(), trusted))


def _podman(session: str, registry_secret: str | None) -> Sandbox:
    from codetape.adapters.sandbox.podman import PodmanSandbox

    return PodmanSandbox(session=session, registry_secret=registry_secret)


def _bubblewrap(session: str) -> Sandbox:
    from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox

    return BubblewrapSandbox(session=session)


def _process(session: str) -> Sandbox:
    from codetape.adapters.sandbox.process import ProcessSandbox

    return ProcessSandbox(session=session)


def make_llm(given: Llm | None, job: Job, answered: Mapping[str, int] | None = None) -> Llm:
    """Return a model as it is, or make the one that the job names.

    `answered` counts the answers of each kind that are on the tape already; a scripted model goes on
    after them.
    """
    if given is not None:
        return given
    if job.model.startswith(SCRIPTED):
        from codetape.adapters.llm.scripted import ScriptedLlm
        from codetape.demo import script

        answers = script(job.model.removeprefix(SCRIPTED))
        return ScriptedLlm(answers, used=answered, model=job.model, cost=0.0)
    from codetape.adapters.llm.litellm import LiteLlm

    return LiteLlm(api_key_env=job.api_key, api_base=job.api_base, timeout=job.call_seconds)


def answered(store: EventStore, session: str) -> dict[str, int]:
    """Count the calls of each kind whose outcome is on a tape."""
    kinds: Counter[str] = Counter()
    for record in read(store, session):
        if record.request_key and isinstance(record.event.outcome, Answer | CallFailure):
            kinds[request_of(store, record)["call"]["kind"]] += 1
    return dict(kinds)


def boundary_for(job: Job) -> Boundary:
    """Return the boundary that knows the secrets of a job: the values behind its variable names."""
    names = [*job.secrets, *filter(None, (job.api_key, job.registry_secret))]
    known = {name: value for name in names if (value := os.environ.get(name))}
    return Boundary({**_provider_keys(), **known})


def _provider_keys() -> dict[str, str]:
    """Keys that providers' libraries read by themselves: whatever the environment calls a key."""
    endings = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_PASSWORD", "_ACCESS_KEY")
    return {name: value for name, value in os.environ.items() if name.endswith(endings) and value}


def owner() -> str:
    """Return who this process is, as a store names the owner of a session."""
    from codetape.adapters.owner import current_owner

    return current_owner()


def session_folder(session: str) -> Path:
    """Return the private folder of a session, for frames that were given and files that came out.

    An id that was imported may be anything, as `../..`: it is never a path by itself.
    """
    plain = re.fullmatch(r"[A-Za-z0-9_-]+", session)
    name = session if plain else hashlib.sha256(session.encode()).hexdigest()
    return _data_home() / "sessions" / name


def _data_home() -> Path:
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "codetape"
