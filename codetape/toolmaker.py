"""ToolMaker: small self-contained Python tools, made from a question."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetape import artifacts, composition, engines, jobs, shapes, validation
from codetape.adapters.aside import aside
from codetape.adapters.system import SystemClock, SystemIds
from codetape.authority import Authority
from codetape.both import both
from codetape.cancelling import AskingClock, Cancel, Cancelling
from codetape.engine.loop import Engine
from codetape.engine.ports import Clock, EventStore, Ids, Llm, Sandbox, StoreError
from codetape.engine.tape import Recorded, read
from codetape.models import prices
from codetape.progress import Progress, progress
from codetape.states.job import Budget, Job, Persona
from codetape.states.session import Session
from codetape.states.texts import well_formed
from codetape.states.tools.personas import PERSONAS
from codetape.states.tools.session import ToolSession
from codetape.states.workflow import TOOLMAKER
from codetape.tool import Tool
from codetape.values import ImageConfig, Resources, Secret

if TYPE_CHECKING:
    from codetape.adapters.sandbox.gate import Policy

_log = logging.getLogger(__name__)

OnProgress = Callable[[Progress], None]


@dataclass(kw_only=True)
class ToolMaker:
    """Makes a tool from a question: personas write it, it has to run, and its logic has to hold.

    `project` is the folder that tools and reports go to, below `implementation/`. `personas` are
    asked in order, each given what the ones before found; see Persona for who writes the code.
    `research_context` is what is known already. `fix_cycles` is the most repairs of a crash,
    `timeout` the limit of one run in seconds. `cancel` is asked before every request, a function or
    a threading.Event: the session ends, also if the function raises, and what was made so far is
    kept. `on_event` is called with each Progress; what it raises is logged and harms nothing.
    `models` names models by lane (orchestrator, coder), by the name of a persona, or by kind of
    call (fix_crash, harness, fix_logic). The other arguments are those of AutoCoderAgent.
    """

    model: str
    project: str | Path = "."
    models: Mapping[str, str] = field(default_factory=dict)
    fallback_models: Iterable[str] = ()
    research_context: str = ""
    personas: Iterable[Persona] = PERSONAS
    fix_cycles: int = 3
    timeout: float = 30.0
    api_key: str | None = None
    api_base: str | None = None
    litellm_params: Mapping[str, Any] = field(default_factory=dict)
    base_packages: Iterable[str] = ()
    resources: Resources = field(default_factory=Resources)
    image_config: ImageConfig = field(default_factory=ImageConfig)
    network_access: bool = False
    sandbox_retries: int = 1
    env_vars: Mapping[str, str] = field(default_factory=dict)
    secrets: Iterable[Secret | str] = ()
    package_policy: str | Policy = "known"
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    lessons: bool = True
    store: str | Path | EventStore = composition.DEFAULT_STORE
    sandbox: str | Sandbox = "auto"
    llm: Llm | None = None
    cancel: Cancel | None = None
    on_event: OnProgress | None = None
    on_engine: engines.OnEngine | None = None
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)

    @both
    async def make(self, question: str) -> Tool:
        """Make a tool. Raises ValueError before anything happens if an argument is wrong.

        A tool that could not be made is a result, not an exception; an interruption leaves what was
        made so far in the project's folder, and a session that `resume` goes on with.
        """
        job = self._job(question)
        job = job.model_copy(update={"prices": await aside(prices, job, self.llm)})
        artifacts.check(Path(job.name))
        making = _Making(self)
        with making.kept():
            stands = await engines.start(making.adapters, TOOLMAKER, self.ids.new(), job)
        return making.tool(stands)

    @both
    async def resume(
        self,
        session: str,
        *,
        budget: Budget | None = None,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        authority: Authority | None = None,
    ) -> Tool:
        """Go on with a session from the end of its tape; see AutoCoderAgent.resume.

        Its files go to the folder that it began with; a relative one is looked for where this is
        called. Raises ValueError for a session that is not of a tool.
        """
        resumed = engines.decision(budget, allow, deny)
        making = _Making(self)
        name = making.goes_on_with(session)
        with making.kept():
            stands = await engines.resume(making.adapters, name, resumed, authority)
        return making.tool(stands)

    def load(self, session: str) -> Tool:
        """Return the tool of a session in the store. Raises UnknownSession, DamagedTape."""
        stands = engines.standing(composition.open_store(self.store), session)
        folded = _of_a_tool(stands)
        project, began = Path(folded.job.name), _began(stands)
        return Tool(folded, stands.store, artifacts.found(project, began))

    def _job(self, question: str) -> Job:
        """Check every argument and return the job. Raises ValueError."""
        check = validation
        personas = check.personas(self.personas)
        if not isinstance(self.cancel, threading.Event):
            shapes.function("cancel", self.cancel)
        return jobs.job(
            prompt=check.prompt(question),
            name=_folder(self.project),
            models=check.kinds("models", self.models, [p.name for p in personas]),
            context=shapes.text("research_context", self.research_context),
            today=self.clock.now()[:10],
            personas=personas,
            fix_cycles=shapes.whole("fix_cycles", self.fix_cycles, 0),
            **jobs.shared(self),
        )


class _Making:
    """One run of a tool maker: it listens to the engine, asks whether to go on, and keeps the files."""

    def __init__(self, maker: ToolMaker) -> None:
        self._maker = maker
        self._last: Session | None = None
        self._began = ""
        self._cancelling = Cancelling(maker.cancel)
        self.adapters = engines.Adapters(
            store=maker.store,
            sandbox=maker.sandbox,
            llm=maker.llm,
            clock=AskingClock(maker.clock, self._cancelling),
            package_policy=maker.package_policy,
            on_event=self._on_event,
            on_engine=self._on_engine,
            lessons=maker.lessons,
        )

    def goes_on_with(self, session: str) -> str:
        """Look at a session that is to be resumed, and return its id. Raises ValueError."""
        with composition.lent(self._maker.store) as store:
            stands = engines.standing(store, session)
            self._began = _began(stands)
            return _of_a_tool(stands).id

    def _on_engine(self, engine: Engine) -> None:
        self._cancelling.of(engine)
        if self._began:
            self._cancelling.ask()  # no event may come before the first request of a resumed session
        if self._maker.on_engine:
            self._maker.on_engine(engine)

    def _on_event(self, recorded: Recorded, session: Session) -> None:
        """Ask before the next request whether to go on, and tell of the event."""
        self._last = session
        self._began = self._began or recorded.at
        if not session.done:
            self._cancelling.ask()
        if self._maker.on_event:
            self._maker.on_event(progress(recorded, session))

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """An interruption leaves the files of what was made so far."""
        try:
            yield
        except BaseException:
            if isinstance(self._last, ToolSession):
                self._keep(self._last)
            raise

    def _keep(self, session: ToolSession) -> None:
        made = artifacts.kept(session, Path(session.job.name), self._began)
        try:
            with composition.lent(self._maker.store) as store:
                artifacts.listed(store, session.id, made, self._began)
        except StoreError as error:
            _log.warning("the files of session %s are not listed: %s", session.id, error)

    def tool(self, stands: engines.Standing) -> Tool:
        """Write the files and return the tool."""
        session = _of_a_tool(stands)
        began = _began(stands)
        made = artifacts.kept(session, Path(session.job.name), began)
        artifacts.listed(stands.store, session.id, made, began)
        return Tool(session, stands.store, made)


def _of_a_tool(stands: engines.Standing) -> ToolSession:
    if isinstance(stands.session, ToolSession):
        return stands.session
    raise ValueError(f"session {stands.session.id} is one of {stands.workflow.name}, not of a tool")


def _began(stands: engines.Standing) -> str:
    """When the session began: its files are named after that, whenever they are written.

    What a fork shares began before it, and has files of its own.
    """
    records = read(stands.store, stands.session.id)
    return next(record.at for record in records if record.session == stands.session.id)


def _folder(project: object) -> str:
    """Return the path of a project as text. Raises ValueError."""
    path = str(project)
    if not isinstance(project, str | Path) or "\0" in path or well_formed(path) != path:
        raise ValueError(f"project: {project!r} is no path of a folder")
    return path
