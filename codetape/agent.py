"""AutoCoderAgent: the auto-coder as a Python object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from codetape import composition, validation
from codetape.adapters.system import SystemClock, SystemIds
from codetape.both import both
from codetape.description.samples import Choice, samples_of
from codetape.engine.loop import Engine
from codetape.engine.ports import Clock, EventStore, Ids, Llm, Sandbox
from codetape.engine.tape import Recorded, fold, read
from codetape.notebook import table
from codetape.result import Result
from codetape.states.budget import worst_answer
from codetape.states.events import Resumed
from codetape.states.job import Budget, Declared, Job, Price, Sample
from codetape.states.session import Session
from codetape.states.workflow import AUTOCODER
from codetape.tapes import find_session
from codetape.values import ImageConfig, Resources, Secret

if TYPE_CHECKING:
    from codetape.adapters.sandbox.gate import Policy

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
    `package_policy` decides which packages may be installed beyond those that are listed here: "known"
    (what the index has), "cautious" (a person is asked about young packages and names that resemble a
    popular one), "ask" (about all), or a function of a Package that returns "allow", "deny", "ask" or
    a Decision. A session that has to ask pauses; `resume(…, allow=…, deny=…)` answers.
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
    package_policy: str | Policy = "known"
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
        job = job.model_copy(update={"prices": self._prices(job)})
        session_id = self.ids.new()
        folder = composition.session_folder(session_id)
        choice = Choice(self.max_sample_rows, self.seed, folder / "samples")
        described = samples_of(samples or {}, choice)
        job = _with_samples(job, described)
        async with _Run(self, session_id, job) as run:
            session = await run.engine.start(session_id, job)
            return Result.of(session, run.store, sandbox=self.sandbox, samples=samples)

    @both
    async def resume(
        self,
        session: str,
        *,
        budget: Budget | None = None,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
    ) -> Result:
        """Go on with a session from the end of its tape; what is on the tape is not paid again.

        `budget` replaces the old one. `allow` and `deny` decide on the packages that the session
        waits for (see `package_policy`); what neither names is asked again. Raises UnknownSession,
        SessionOwned if somebody is running it, DamagedTape.
        """
        store = composition.open_store(self.store)
        session = find_session(store, session)
        before = fold(AUTOCODER, session, read(store, session))
        answered = composition.answered(store, session)
        job = before.job.model_copy(update={"sandbox": before.sandbox_name})
        async with _Run(self, session, job, store, answered) as run:
            after = await run.engine.resume(
                session, Resumed(budget=budget, allow=tuple(allow), deny=tuple(deny))
            )
            return Result.of(after, store, sandbox=self.sandbox)

    def load(self, session: str) -> Result:
        """Return the result of a session in the store: its id, a unique prefix of it, or "last".

        Raises UnknownSession, DamagedTape.
        """
        store = composition.open_store(self.store)
        return Result.load(find_session(store, session), store, sandbox=self.sandbox)

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
            cache=check.one_of("cache", self.cache, check.CACHES),
            system_prompt=self.system_prompt,
            parameters=dict(self.litellm_params),
            schema_text=schema or "",
            constraints=tuple(constraints or ()),
            inputs=check.declared("inputs", inputs or {}),
            outputs=check.declared("outputs", outputs or {}),
            base_packages=check.base_packages(self.base_packages),
            base_image=check.base_image(self.image_config),
            registry_secret=check.registry_secret(self.image_config),
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
            secrets=check.secrets(self.secrets),
            budget=self.budget,
            seed=self.seed,
            package_policy=self._policy_name(),
        )

    def _policy_name(self) -> str:
        if callable(self.package_policy):
            return "custom"
        name: str = validation.one_of("package_policy", self.package_policy, composition.POLICIES)
        return name

    def _sandbox_name(self) -> str:
        if not isinstance(self.sandbox, str):
            return type(self.sandbox).__name__
        name: str = validation.one_of("sandbox", self.sandbox, composition.SANDBOXES)
        return name

    def _prices(self, job: Job) -> dict[str, Price]:
        """Check that each model can be asked, and return what is known of their prices."""
        validation.at_least("max_sample_rows", self.max_sample_rows, 1)
        if self.llm is not None:
            return {}
        if job.model.startswith(composition.SCRIPTED):
            composition.make_llm(None, job)  # there is no model to ask but this one
            return {}
        from codetape.adapters.llm.litellm import check_model, price

        models = dict.fromkeys((job.model, *job.models.values(), *job.fallback_models))
        for model in models:
            check_model(model)
        prices = {model: found for model in models if (found := price(model))}
        self._check_prices(job, tuple(models), prices)
        return prices

    def _check_prices(self, job: Job, models: tuple[str, ...], prices: dict[str, Price]) -> None:
        """A limit of money can be kept only if each price is known and a call fits into it."""
        if (most := job.budget.usd) is None:
            return
        for model in models:
            if model not in prices:
                raise ValueError(
                    f"budget: the price of {model} is unknown, so a limit in US dollars cannot be "
                    "kept; limit tokens or calls instead"
                )
            if (least := worst_answer(job.model_copy(update={"prices": prices}), model)) > most:
                raise ValueError(
                    f"budget: one answer of {model} may cost {least:.2f} US dollars, more than "
                    f'{most:g}; raise the limit, or set litellm_params={{"max_tokens": …}}'
                )


class _Run:
    """The adapters of one run, opened together and closed in order: sandbox first, then the store."""

    def __init__(
        self,
        agent: AutoCoderAgent,
        session: str,
        job: Job,
        store: EventStore | None = None,
        answered: Mapping[str, int] | None = None,
    ) -> None:
        self._agent, self._session, self._job, self._answered = agent, session, job, answered
        self._stack = AsyncExitStack()
        self.store = store or composition.open_store(agent.store)

    async def __aenter__(self) -> Self:
        agent, job = self._agent, self._job
        given = agent.sandbox if not isinstance(agent.sandbox, str) else job.sandbox
        sandbox = composition.make_sandbox(
            given, session=self._session, registry_secret=job.registry_secret
        )
        if sandbox is not agent.sandbox:
            self._stack.push_async_callback(sandbox.close)
        policy = self._policy()
        if policy != "known" or sandbox is not agent.sandbox:
            sandbox = composition.gated(sandbox, policy, job)
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

    def _policy(self) -> str | Policy:
        """The caller's policy. A session whose own was a function asks where there is none."""
        given, recorded = self._agent.package_policy, self._job.package_policy
        if callable(given) or given != "known":
            return given
        return "ask" if recorded == "custom" else recorded

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
