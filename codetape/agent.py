"""AutoCoderAgent: the auto-coder as a Python object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from codetape import composition, validation
from codetape.adapters.system import SystemClock, SystemIds
from codetape.both import both
from codetape.description.samples import Choice, samples_of
from codetape.engine.loop import Engine
from codetape.engine.ports import Clock, EventStore, Ids, Llm, Sandbox
from codetape.engine.tape import Recorded, fold, read
from codetape.notebook import table
from codetape.result import Result
from codetape.states.job import Budget, Declared, Job, Sample
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER
from codetape.values import ImageConfig, Resources, Secret

Progress = Callable[[Recorded, Session], None]
Watcher = Callable[[Engine], None]


@dataclass(kw_only=True)
class AutoCoderAgent:
    """Writes Python code that passes its tests in a sandbox, and keeps a tape of how it got there.

    `model` is a LiteLLM name such as "gpt-4.1" or "ollama/qwen3-coder:30b"; `models` names others for
    kinds of calls (plan, code, tests, diagnosis, …), and `fallback_models` those that take over, one
    after the other, when a model gives no answer. `api_key` is the name of
    the environment variable that holds the key (None: the provider's own). `timeout` is the limit of
    one run in the sandbox, in seconds. `store` is the file of the tapes, or a store. `sandbox` is
    auto, podman, bubblewrap, process, or a sandbox. `llm` replaces the model, for tests. `on_event` is
    called with each recorded event and the session after it, `on_engine` with the engine of each run
    before it starts, so that one can see what is in flight. `seed` makes random choices repeatable.
    `cache` says what `result.run` does with equal runs: "auto" takes them from the cache, "override"
    runs and keeps anew, "disable" does neither.

    Arguments are checked when a session starts; ValueError names the one that is wrong.
    """

    model: str
    models: Mapping[str, str] = field(default_factory=dict)
    fallback_models: Iterable[str] = ()
    name: str = "auto-coder"
    system_prompt: str = ""
    api_key: str | None = None
    api_base: str | None = None
    litellm_params: Mapping[str, Any] = field(default_factory=dict)
    base_packages: Iterable[str] = ()
    resources: Resources = field(default_factory=Resources)
    image_config: ImageConfig = field(default_factory=ImageConfig)
    max_iterations: int = 10
    max_sample_rows: int = 100
    skip_tests: bool = False
    network_access: bool = False
    sandbox_retries: int = 1
    timeout: float = 120.0
    env_vars: Mapping[str, str] = field(default_factory=dict)
    secrets: Iterable[Secret | str] = ()
    cache: str = "auto"
    plan: bool = True
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    store: str | Path | EventStore = composition.DEFAULT_STORE
    sandbox: str | Sandbox = "auto"
    llm: Llm | None = None
    on_event: Progress | None = None
    on_engine: Watcher | None = None
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        facts = {
            "model": self.model,
            "sandbox": self._sandbox_name(),
            "attempts": f"at most {self.max_iterations}",
            "store": self.store
            if isinstance(self.store, str | Path)
            else type(self.store).__name__,
        }
        return table(self.name, facts)

    @both
    async def generate(
        self,
        prompt: str,
        *,
        samples: Mapping[str, Any] | None = None,
        schema: str | None = None,
        constraints: Iterable[str] | None = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
    ) -> Result:
        """Run a session to its end or its next pause and return what came of it.

        `samples` are data frames or paths by name; each is an input of type File too. `inputs` and
        `outputs` map names to str, int, float, bool, datetime, timedelta, File, Dir or their names.
        Raises ValueError before anything happens if an argument is wrong. A session that fails is a
        result, not an exception.
        """
        job = self._job(prompt, schema, constraints, inputs, outputs)
        self._check_model(job)
        session_id = self.ids.new()
        folder = composition.session_folder(session_id)
        choice = Choice(self.max_sample_rows, self.seed, folder / "samples")
        described = samples_of(samples or {}, choice)
        job = _with_samples(job, described)
        async with _Run(self, job) as run:
            session = await run.engine.start(session_id, job)
            return Result.of(session, run.store, sandbox=self.sandbox, samples=samples)

    @both
    async def resume(self, session: str, *, budget: Budget | None = None) -> Result:
        """Go on with a session from the end of its tape; what is on the tape is not paid again.

        Raises UnknownSession, SessionOwned if somebody is running it, DamagedTape.
        """
        store = composition.open_store(self.store)
        before = fold(AUTOCODER, session, read(store, session))
        answered = composition.answered(store, session)
        job = before.job.model_copy(update={"sandbox": before.sandbox_name})
        async with _Run(self, job, store, answered) as run:
            after = await run.engine.resume(session, budget)
            return Result.of(after, store, sandbox=self.sandbox)

    def _job(
        self,
        prompt: str,
        schema: str | None,
        constraints: Iterable[str] | None,
        inputs: Mapping[str, Any] | None,
        outputs: Mapping[str, Any] | None,
    ) -> Job:
        """Check every argument and return the job. Raises ValueError."""
        check = validation
        return Job(
            prompt=check.prompt(prompt),
            name=self.name,
            model=self.model,
            models=check.kinds("models", self.models),
            fallback_models=tuple(self.fallback_models),
            api_key=check.variable("api_key", self.api_key) if self.api_key else None,
            api_base=self.api_base,
            sandbox=self._sandbox_name(),
            cache=check.one_of("cache", self.cache, ("auto", "override", "disable")),
            system_prompt=self.system_prompt,
            parameters=dict(self.litellm_params),
            schema_text=schema or "",
            constraints=tuple(constraints or ()),
            inputs=check.declared("inputs", inputs or {}),
            outputs=check.declared("outputs", outputs or {}),
            base_packages=check.base_packages(self.base_packages),
            base_image=self.image_config.base_image,
            python=self.image_config.python,
            system_packages=check.system_packages(self.image_config.system_packages),
            commands=tuple(self.image_config.commands),
            limits=check.limits(self.resources, self.timeout),
            max_iterations=check.at_least("max_iterations", self.max_iterations, 1),
            skip_tests=self.skip_tests,
            plan=self.plan,
            network_access=self.network_access,
            sandbox_retries=check.at_least("sandbox_retries", self.sandbox_retries, 0),
            environment=check.variables("env_vars", self.env_vars),
            secrets=tuple(check.variable("secrets", _secret_name(s)) for s in self.secrets),
            budget=self.budget,
            seed=self.seed,
        )

    def _sandbox_name(self) -> str:
        if not isinstance(self.sandbox, str):
            return type(self.sandbox).__name__
        name: str = validation.one_of("sandbox", self.sandbox, composition.SANDBOXES)
        return name

    def _check_model(self, job: Job) -> None:
        validation.at_least("max_sample_rows", self.max_sample_rows, 1)
        if self.llm is not None:
            return
        if job.model.startswith(composition.SCRIPTED):
            composition.make_llm(None, job)  # there is no model to ask but this one
            return
        from codetape.adapters.llm.litellm import check_model

        for model in (job.model, *job.models.values(), *job.fallback_models):
            check_model(model)
            self._check_price(model)

    def _check_price(self, model: str) -> None:
        """A limit of money can be kept only if the price of each model is known."""
        from codetape.adapters.llm.litellm import price

        if self.budget.usd is not None and price(model) is None:
            raise ValueError(
                f"budget: the price of {model} is unknown, so a limit in US dollars cannot be kept; "
                "limit tokens or calls instead"
            )


class _Run:
    """The adapters of one run, opened together and closed in order: sandbox first, then the store."""

    def __init__(
        self,
        agent: AutoCoderAgent,
        job: Job,
        store: EventStore | None = None,
        answered: Mapping[str, int] | None = None,
    ) -> None:
        self._agent, self._job, self._answered = agent, job, answered
        self._stack = AsyncExitStack()
        self.store = store or composition.open_store(agent.store)

    async def __aenter__(self) -> Self:
        agent, job = self._agent, self._job
        given = agent.sandbox if not isinstance(agent.sandbox, str) else job.sandbox
        sandbox = composition.make_sandbox(given)
        if sandbox is not agent.sandbox:
            self._stack.push_async_callback(sandbox.close)
        self.engine = Engine(
            AUTOCODER,
            store=self.store,
            llm=composition.make_llm(agent.llm, job, self._answered),
            sandbox=sandbox,
            clock=agent.clock,
            boundary=composition.boundary_for(job),
            on_event=agent.on_event,
            owner=composition.owner(),
        )
        if agent.on_engine:
            agent.on_engine(self.engine)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._stack.aclose()
        if kind is not None and self.store is not self._agent.store:
            self.store.close()  # there is no result that could read from it


def _with_samples(job: Job, samples: tuple[Sample, ...]) -> Job:
    """Return the job with its samples, each of them an input of type File unless it is declared."""
    for sample in samples:
        validation.declared("inputs", {sample.name: "File"})
    known = {d.name for d in job.inputs}
    extra = tuple(Declared(name=s.name, type="File") for s in samples if s.name not in known)
    return job.model_copy(update={"samples": samples, "inputs": (*extra, *job.inputs)})


def _secret_name(secret: Secret | str) -> str:
    return secret.name if isinstance(secret, Secret) else secret
